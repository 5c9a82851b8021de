use std::time::Duration;

use model::{Amount, Assignment, Grant, Granted, NodeName, ObjectKind, Phase};

use super::World;
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder, corridor};
use crate::{Event, Watched, WatchedKind};

fn c1() -> CorridorBuilder {
    CorridorBuilder::new("c1", 100)
}

fn asks(name: &str, gbps: u32) -> PodBuilder {
    PodBuilder::new(name).needs("c1", Some(gbps))
}

#[test]
fn a_held_pod_is_bound_the_moment_bandwidth_returns() {
    let mut world = World::with_nodes(5);
    world.corridor(c1().achievable(40.0).phase(Phase::Degraded));
    world.see(asks("p1", 60).build());
    assert_eq!(world.bind_all(), Vec::<String>::new());
    assert_eq!(
        world.message("p1"),
        "0/5 nodes are available: corridor team-a/c1 (Degraded): needs 60 Gbps, 0 of 100 Gbps \
         free, short by 60 Gbps, achievable 40 Gbps is below the floor."
    );
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["p1"]);
}

#[test]
fn the_message_has_the_promised_form() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("p1", 60).build());
    world.see(asks("p2", 100).build());
    world.bind_all();
    assert_eq!(
        world.message("p2"),
        "0/5 nodes are available: corridor team-a/c1 (Ready): needs 100 Gbps, 40 of 100 Gbps \
         free, short by 60 Gbps."
    );
}

#[test]
fn a_decision_carries_the_grant_and_its_preconditions() {
    let mut world = World::with_nodes(1);
    world.corridor(c1());
    world.see(asks("p1", 40).build());
    let bind = world.decide().remove(0);
    let granted = Granted { uid: "uid-c1".into(), amount: Amount::from_whole(40) };
    assert_eq!(bind.grant, Some(Grant { corridor: Some(granted), bundle: None }));
    assert_eq!(bind.handles, [(ObjectKind::Corridor, "cor-1".into())]);
    assert_eq!(bind.resource_version.as_deref(), Some("1"));
}

#[test]
fn held_pods_go_in_order_of_priority_then_arrival() {
    let mut world = World::with_nodes(5);
    world.corridor(c1().achievable(0.0));
    for name in ["a", "b", "c"] {
        world.see(asks(name, 30).build());
    }
    world.see(asks("vip", 30).priority(7).build());
    assert!(world.bind_all().is_empty());
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["vip", "a", "b"]);
    world.end("a");
    assert_eq!(world.bind_all(), ["c"]);
}

#[test]
fn smaller_pods_pass_the_head_a_bounded_number_of_times() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("holder", 50).build());
    world.bind_all();
    world.see(asks("head", 80).build());
    for number in 0..30 {
        let name = format!("small{number}");
        world.see(asks(&name, 1).build());
        let passed = world.bind_all() == [name.clone()];
        assert_eq!(passed, number < 16, "after {number} passes");
    }
    assert_eq!(
        world.message("small20"),
        "0/5 nodes are available: corridor team-a/c1 (Ready): needs 1 Gbps, 34 of 100 Gbps free, \
         kept for team-a/head, which was passed 16 times."
    );
    world.end("holder");
    assert_eq!(world.bind_all()[0], "head");
}

#[test]
fn nothing_is_kept_for_a_head_that_fits_on_no_node() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("holder", 50).build());
    world.bind_all();
    world.see(asks("head", 80).cpu_milli(64_000).build());
    for number in 0..30 {
        let name = format!("small{number}");
        world.see(asks(&name, 1).build());
        assert_eq!(world.bind_all(), [name]);
    }
}

#[test]
fn a_pod_that_asks_more_than_the_floor_waits_for_the_spec_and_blocks_no_other() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("greedy", 200).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("greedy").contains("asks 200 Gbps, the floor is 100."));
    for number in 0..20 {
        world.see(asks(&format!("small{number}"), 1).build());
    }
    assert_eq!(world.bind_all().len(), 20);
    world.corridor(CorridorBuilder::new("c1", 300).generation(2));
    assert_eq!(world.bind_all(), ["greedy"]);
}

#[test]
fn a_pod_waits_when_the_raised_floor_is_not_confirmed_yet() {
    let mut world = World::with_nodes(5);
    let raised = || CorridorBuilder::new("c1", 200).generation(2).achievable(250.0);
    world.corridor(raised().confirmed(100.0));
    world.see(asks("p1", 150).build());
    assert!(world.bind_all().is_empty());
    world.corridor(raised().confirmed(200.0));
    assert_eq!(world.bind_all(), ["p1"]);
}

#[test]
fn a_lowered_floor_blocks_pods_that_ask_too_much() {
    let mut world = World::with_nodes(5);
    world.corridor(c1().achievable(0.0));
    world.see(asks("big", 90).build());
    world.see(asks("small", 10).build());
    world.bind_all();
    world.corridor(CorridorBuilder::new("c1", 50).generation(2));
    assert_eq!(world.bind_all(), ["small"]);
    assert!(world.message("big").contains("asks 90 Gbps, the floor is 50."));
}

#[test]
fn a_silent_backend_holds_pods_and_its_voice_frees_them() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.pass(Duration::from_secs(15));
    world.see(asks("p1", 10).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("p1").contains("corrd has not reported for 15 s"));
    world.handle(Event::Seen(Watched::Backend {
        kind: ObjectKind::Corridor,
        age: Duration::from_secs(14),
    }));
    assert_eq!(world.bind_all(), ["p1"]);
}

#[test]
fn a_pod_without_an_amount_needs_only_the_floor_met() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("holder", 100).build());
    world.bind_all();
    world.see(PodBuilder::new("reader").needs("c1", None).build());
    assert_eq!(world.bind_all(), ["reader"]);
    world.corridor(c1().achievable(10.0));
    world.see(PodBuilder::new("late").needs("c1", None).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("late").contains("needs the floor of 100 Gbps met"));
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["late"]);
}

#[test]
fn a_corridor_of_another_namespace_is_refused() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("team-b/secret", 100));
    world.see(PodBuilder::new("spy").needs("team-b/secret", Some(1)).build());
    assert!(world.bind_all().is_empty());
    let message = world.message("spy");
    assert!(message.contains("team-b/secret belongs to another namespace"), "{message}");
    assert!(!message.contains("100"), "nothing is told of a corridor one may not use");
}

#[test]
fn fail_fast_is_tried_again_when_the_corridor_enters_ready() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("holder", 100).build());
    world.bind_all();
    world.see(asks("hasty", 50).fail_fast().build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("hasty").starts_with("FailFast: 0/5 nodes are available: "));
    world.end("holder");
    assert!(world.bind_all().is_empty(), "free bandwidth alone does not bring it back");
    world.corridor(c1().phase(Phase::Degraded));
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["hasty"]);
}

#[test]
fn a_corridor_under_its_old_name_owes_nothing_to_the_old_ones_pods() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(asks("old", 100).build());
    world.bind_all();
    world.handle(Event::gone(corridor("c1")));
    world.see(asks("new", 100).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("new").contains("corridor team-a/c1 not found"));
    world.corridor(c1().uid("other"));
    assert_eq!(world.bind_all(), ["new"]);
}

#[test]
fn an_edit_of_a_bound_pod_never_changes_its_grant() {
    let mut world = World::with_nodes(1);
    world.corridor(c1());
    world.see(asks("p1", 60).build());
    world.bind_all();
    for grant in [None, Some(Box::new(Grant::default()))] {
        let bound = Assignment::Bound { node: "n0".into(), grant };
        world.see(asks("p1", 60).assigned(bound).build());
        assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::from_whole(60)));
    }
}

#[test]
fn grants_of_bound_pods_are_the_ledger_after_a_restart() {
    let mut world = World::with_nodes(5);
    let granted = Granted { uid: "uid-c1".into(), amount: Amount::from_whole(70) };
    let grant = Some(Box::new(Grant { corridor: Some(granted), bundle: None }));
    let bound = Assignment::Bound { node: "n3".into(), grant };
    world.see(PodBuilder::new("old").assigned(bound.clone()).build());
    world.corridor(c1());
    world.see(asks("new", 40).build());
    assert!(world.bind_all().is_empty());
    // A forged, smaller grant on the bound Pod changes nothing.
    let forged = Assignment::Bound { node: "n3".into(), grant: None };
    world.see(PodBuilder::new("old").assigned(forged).build());
    assert!(world.bind_all().is_empty());
    assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::from_whole(70)));
    world.see(PodBuilder::new("old").assigned(Assignment::Finished).build());
    assert_eq!(world.bind_all(), ["new"]);
}

#[test]
fn a_releasing_corridor_takes_no_new_pods() {
    let mut world = World::with_nodes(5);
    world.corridor(c1().deleting());
    world.see(asks("p1", 10).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("p1").contains("is being released"));
}

#[test]
fn an_uninstalled_crd_holds_only_pods_that_refer_to_it() {
    let mut world = World::with_nodes(5);
    world.handle(Event::Absent(WatchedKind::Objects(ObjectKind::Corridor)));
    world.see(asks("p1", 10).build());
    world.see(PodBuilder::new("plain").build());
    assert_eq!(world.bind_all(), ["plain"]);
    assert!(world.message("p1").contains("CRD corridors.corridoros.io is not installed"));
    world.handle(Event::Synced(WatchedKind::Objects(ObjectKind::Corridor)));
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["p1"]);
}

#[test]
fn a_corridors_node_selector_limits_its_pods() {
    let mut world = World::with_nodes(3);
    world.handle(Event::seen(NodeBuilder::new("lit").label("fabric", "a").build()));
    world.corridor(c1().on_nodes("fabric", "a"));
    world.see(asks("p1", 10).build());
    assert_eq!(world.decide()[0].node.as_str(), "lit");
    world.corridor(c1().on_nodes("fabric", "b").generation(2));
    world.see(asks("p2", 10).build());
    assert!(world.decide().is_empty());
    assert_eq!(
        world.message("p2"),
        "0/4 nodes are available: 4 node(s) didn't match the node selector of corridor team-a/c1. no new claims to \
         deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    );
    world.pass(Duration::from_secs(2));
    world.corridor(c1().generation(3));
    assert_eq!(world.decide().len(), 1);
}

#[test]
fn a_pod_released_by_its_queue_leaves_its_bandwidth_to_the_next_if_no_node_takes_it() {
    let mut world = World::with_nodes(1);
    world.corridor(c1().achievable(0.0));
    world.see(asks("first", 100).cpu_milli(64_000).build());
    world.see(asks("second", 100).build());
    assert!(world.bind_all().is_empty());
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["second"]);
}

#[test]
fn a_deleted_pod_in_the_queue_makes_room_for_the_next() {
    let mut world = World::with_nodes(1);
    world.corridor(c1());
    world.see(asks("holder", 60).build());
    world.bind_all();
    world.see(asks("head", 90).build());
    for number in 0..20 {
        world.see(asks(&format!("s{number:02}"), 1).build());
    }
    assert_eq!(world.bind_all().len(), 16);
    world.end("head");
    assert_eq!(world.bind_all().len(), 4);
}

/// A head that may be passed once, with room for others behind it.
fn world_with_a_kept_head(head: PodBuilder) -> World {
    let mut world = World::with_nodes(1);
    world.engine.config.bypass.times_max = 1;
    world.handle(Event::seen(NodeBuilder::new("big").cpu_milli(64_000).build()));
    world.corridor(c1());
    world.see(asks("holder", 50).build());
    world.bind_all();
    world.see(head.build());
    world.see(asks("passes", 10).build());
    assert_eq!(world.bind_all(), ["passes"]);
    world.see(asks("waits", 10).build());
    assert!(world.bind_all().is_empty(), "kept for the head");
    world
}

#[test]
fn what_was_kept_is_given_on_when_the_heads_last_node_goes() {
    let mut world = world_with_a_kept_head(asks("head", 60).cpu_milli(32_000));
    world.handle(Event::gone(NodeName::from("big")));
    assert_eq!(world.bind_all(), ["waits"]);
}

#[test]
fn what_was_kept_is_given_on_when_another_pod_takes_the_heads_last_node() {
    let mut world = world_with_a_kept_head(asks("head", 60).cpu_milli(32_000));
    world.see(PodBuilder::new("other").cpu_milli(60_000).build());
    assert_eq!(world.bind_all(), ["other", "waits"]);
}

#[test]
fn a_pod_that_reserves_nothing_is_not_held_up_by_the_head() {
    let mut world = world_with_a_kept_head(asks("head", 60));
    world.corridor(c1().achievable(1.0));
    world.see(PodBuilder::new("reader").needs("c1", None).build());
    assert!(world.bind_all().is_empty());
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["reader"]);
}

#[test]
fn nothing_is_kept_for_a_head_that_asks_more_than_is_confirmed() {
    let mut world = World::with_nodes(1);
    world.engine.config.bypass.times_max = 1;
    world.corridor(CorridorBuilder::new("c1", 200).confirmed(100.0).achievable(100.0));
    world.see(asks("head", 150).build());
    for name in ["a", "b", "c"] {
        world.see(asks(name, 10).build());
        assert_eq!(world.bind_all(), [name]);
    }
}

#[test]
fn a_hasty_pod_is_tried_again_when_the_crd_is_installed() {
    let mut world = World::with_nodes(1);
    world.handle(Event::Absent(WatchedKind::Objects(ObjectKind::Corridor)));
    world.see(asks("hasty", 50).fail_fast().build());
    assert!(world.bind_all().is_empty());
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["hasty"]);
}

#[test]
fn no_queue_is_left_when_no_pod_waits() {
    let mut world = world_with_a_kept_head(asks("head", 60));
    world.end("holder");
    world.bind_all();
    for pod in ["head", "passes", "waits"] {
        world.end(pod);
    }
    assert!(world.engine.observed.objects.queue(&corridor("c1")).is_none());
}
