use std::time::Duration;

use model::{Assignment, Effect, ObjectKind, PodUid, Taint};

use super::World;
use crate::testkit::{NodeBuilder, PodBuilder};
use crate::{Event, WatchedKind};

#[test]
fn a_pod_that_fits_nowhere_says_why_and_is_bound_when_a_node_comes() {
    let mut world = World::with_nodes(2);
    for name in ["t1", "t2", "t3"] {
        let taint = Taint { key: "k".into(), value: "v".into(), effect: Effect::NoSchedule };
        world.handle(Event::seen(NodeBuilder::new(name).taint(taint).build()));
    }
    world.see(PodBuilder::new("big").cpu_milli(8000).build());
    assert!(world.bind_all().is_empty());
    assert_eq!(
        world.message("big"),
        "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s). no new claims to \
         deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    );
    world.pass(Duration::from_secs(2));
    world.handle(Event::seen(NodeBuilder::new("large").cpu_milli(16_000).build()));
    assert_eq!(world.bind_all(), ["big"]);
}

#[test]
fn a_pod_woken_early_waits_out_its_back_off() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("big").cpu_milli(8000).build());
    world.bind_all();
    world.handle(Event::seen(NodeBuilder::new("large").cpu_milli(16_000).build()));
    assert!(world.bind_all().is_empty());
    assert_eq!(world.engine.poll_timeout(), Some(world.now + Duration::from_secs(1)));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.bind_all(), ["big"]);
}

#[test]
fn freed_room_wakes_as_many_as_fit() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("holder").cpu_milli(4000).build());
    world.bind_all();
    for number in 0..6 {
        world.see(PodBuilder::new(&format!("p{number}")).cpu_milli(1000).build());
    }
    world.bind_all();
    world.pass(Duration::from_secs(11));
    let attempts = world.engine.stats().attempts_unschedulable;
    world.end("holder");
    assert_eq!(world.bind_all(), ["p0", "p1", "p2", "p3"]);
    assert_eq!(world.engine.stats().attempts_unschedulable, attempts, "no vain attempt");
}

#[test]
fn pods_spread_over_equal_nodes() {
    let mut world = World::with_nodes(5);
    for number in 0..50 {
        let key = format!("team-{}/p{number}", number % 5);
        world.see(PodBuilder::new(&key).cpu_milli(300).build());
    }
    let mut per_node = std::collections::BTreeMap::new();
    for bind in world.decide() {
        *per_node.entry(bind.node.to_string()).or_insert(0) += 1;
    }
    assert!(per_node.values().all(|pods| *pods == 10), "{per_node:?}");
}

#[test]
fn nothing_is_decided_before_every_kind_is_synced() {
    let mut world = World::with_nodes(0);
    world.engine = crate::Engine::new(crate::EngineConfig::default());
    world.handle(Event::seen(NodeBuilder::new("n").build()));
    world.see(PodBuilder::new("p").build());
    let (absent, synced) = (WatchedKind::Objects(ObjectKind::Corridor), WatchedKind::ALL);
    for kind in synced.into_iter().filter(|kind| *kind != absent) {
        world.handle(Event::Synced(kind));
        assert!(world.decide().is_empty());
    }
    world.handle(Event::Absent(absent));
    assert_eq!(world.decide().len(), 1);
}

#[test]
fn pods_of_other_schedulers_count_as_usage() {
    let mut world = World::with_nodes(1);
    let bound = Assignment::Bound { node: "n0".into(), grant: None };
    world.see(PodBuilder::new("foreign").cpu_milli(3950).assigned(bound).build());
    world.see(PodBuilder::new("ours").build());
    assert!(world.bind_all().is_empty());
    world.pass(Duration::from_secs(2));
    world.see(PodBuilder::new("foreign").assigned(Assignment::Finished).build());
    assert_eq!(world.bind_all(), ["ours"]);
}

#[test]
fn gated_and_leaving_pods_are_not_placed() {
    let mut world = World::with_nodes(1);
    world.see(
        PodBuilder::new("gated").assigned(Assignment::Gated { gates: vec!["g".into()] }).build(),
    );
    assert!(world.bind_all().is_empty());
    world.see(PodBuilder::new("gated").build());
    assert_eq!(world.bind_all(), ["gated"]);
}

#[test]
fn a_pod_recreated_under_its_name_is_another_pod() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").cpu_milli(4000).build());
    world.bind_all();
    world.see(PodBuilder::new("p").uid("second").cpu_milli(4000).build());
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_freed_place_is_not_stormed() {
    let mut world = World::with_nodes(1);
    for number in 0..300 {
        world.see(PodBuilder::new(&format!("p{number:03}")).cpu_milli(4000).build());
    }
    world.bind_all();
    let (mut bound, mut ended) = (1, 0);
    for _ in 0..60 {
        if ended < bound {
            world.end(&format!("p{ended:03}"));
            ended += 1;
        }
        bound += world.bind_all().len();
        world.pass(Duration::from_secs(2));
    }
    assert!(bound > 20, "{bound}");
    let vain = world.engine.stats().attempts_unschedulable;
    assert!(vain < 400, "{vain} attempts in vain for {bound} places");
}

#[test]
fn nothing_is_put_where_a_pod_cannot_be_read_until_it_can() {
    let mut world = World::with_nodes(1);
    let unreadable = |pod: &str| Event::PodUnreadable { pod: pod.into(), node: "n0".into() };
    world.handle(unreadable("x"));
    world.handle(unreadable("y"));
    world.see(PodBuilder::new("p").build());
    assert!(world.bind_all().is_empty());
    // Whatever else becomes of the Node, and though a Pod may tolerate everything.
    world.handle(Event::seen(NodeBuilder::new("n0").label("a", "b").build()));
    world.handle(Event::gone(PodUid::from("x")));
    world.pass(Duration::from_secs(20));
    assert!(world.bind_all().is_empty(), "there is another");
    let y = Assignment::Bound { node: "n0".into(), grant: None };
    world.see(PodBuilder::new("y").uid("y").cpu_milli(3_900).assigned(y).build());
    world.see(PodBuilder::new("big").cpu_milli(2_000).build());
    assert_eq!(world.bind_all(), ["p"], "and what it uses counts");
}

#[test]
fn a_pod_that_cannot_be_read_excludes_its_node_unless_it_was_known_to_be_there() {
    let mut world = World::with_nodes(1);
    let unreadable = |pod: &str| Event::PodUnreadable { pod: pod.into(), node: "n0".into() };
    let bound = Assignment::Bound { node: "n0".into(), grant: None };
    world.see(PodBuilder::new("known").cpu_milli(100).assigned(bound).build());
    world.handle(unreadable("uid-known"));
    world.see(PodBuilder::new("first").cpu_milli(100).build());
    assert_eq!(world.bind_all(), ["first"], "its last good version counts");
    // Of this one, the last good version was on no Node.
    world.see(PodBuilder::new("foreign").assigned(Assignment::Foreign).build());
    world.handle(unreadable("uid-foreign"));
    world.see(PodBuilder::new("second").cpu_milli(100).build());
    assert_eq!(world.bind_all(), [""; 0]);
    world.end("foreign");
    world.pass(Duration::from_secs(10));
    assert_eq!(world.bind_all(), ["second"]);
}
