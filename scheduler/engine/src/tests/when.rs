//! Estimates of when a Pod could start.

use model::{Assignment, PodUid};

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder, key};
use crate::{Basis, Confidence, Estimate, Event};

const NOW: i64 = 1_000;

fn when(world: &World, pod: &str) -> Estimate {
    world.engine.when(&key(pod), NOW).unwrap()
}

fn ends(estimate: &Estimate) -> Vec<&str> {
    let pods = estimate.basis.iter().filter_map(|basis| match basis {
        Basis::End { pod, .. } => Some(&*pod.name),
        Basis::Fact(_) => None,
    });
    pods.collect()
}

/// Three Pods hold the whole of c1; two of them declare their ends.
fn full_corridor() -> World {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("late").needs("c1", Some(30)).ends_at(9_000).build());
    world.see(PodBuilder::new("soon").needs("c1", Some(30)).ends_at(2_000).build());
    world.see(PodBuilder::new("silent").needs("c1", Some(40)).build());
    assert_eq!(world.bind_all().len(), 3);
    world
}

#[test]
fn the_ends_that_free_enough_bandwidth_are_named() {
    let mut world = full_corridor();
    world.see(PodBuilder::new("p").needs("c1", Some(50)).build());
    assert!(world.bind_all().is_empty());
    let estimate = when(&world, "p");
    assert_eq!(estimate.earliest_unix_s, Some(9_000));
    assert_eq!(estimate.confidence, Confidence::Declared);
    assert_eq!(ends(&estimate), ["soon", "late"]);
}

#[test]
fn pods_before_it_in_the_queue_make_it_a_bound_only() {
    let mut world = full_corridor();
    world.see(PodBuilder::new("first").needs("c1", Some(30)).build());
    world.see(PodBuilder::new("second").needs("c1", Some(30)).build());
    assert!(world.bind_all().is_empty());
    let first = when(&world, "first");
    assert_eq!((first.earliest_unix_s, first.confidence), (Some(2_000), Confidence::Declared));
    let second = when(&world, "second");
    assert_eq!((second.earliest_unix_s, second.confidence), (Some(9_000), Confidence::Partial));
}

#[test]
fn nothing_is_invented_where_nothing_is_declared() {
    let mut world = full_corridor();
    world.see(PodBuilder::new("p").needs("c1", Some(100)).build());
    assert!(world.bind_all().is_empty());
    let estimate = when(&world, "p");
    assert_eq!((estimate.earliest_unix_s, estimate.confidence), (None, Confidence::Unknown));
    let told = Basis::Fact("1 Pods that use corridor team-a/c1 do not declare their end".into());
    assert!(estimate.basis.contains(&told), "{:?}", estimate.basis);
    world.corridor(CorridorBuilder::new("c1", 100).achievable(10.0));
    assert_eq!(when(&world, "p").confidence, Confidence::Unknown, "light returns when it returns");
}

#[test]
fn a_node_has_room_when_enough_of_its_pods_have_ended() {
    let mut world = World::with_nodes(1);
    for (name, end) in [("a", 3_000), ("b", 2_000)] {
        world.see(PodBuilder::new(name).cpu_milli(2_000).ends_at(end).build());
    }
    assert_eq!(world.bind_all().len(), 2);
    world.see(PodBuilder::new("small").cpu_milli(1_000).build());
    world.see(PodBuilder::new("big").cpu_milli(4_000).build());
    world.see(PodBuilder::new("huge").cpu_milli(40_000).build());
    assert!(world.bind_all().is_empty());
    assert_eq!(when(&world, "small").earliest_unix_s, Some(2_000));
    let big = when(&world, "big");
    assert_eq!((big.earliest_unix_s, big.confidence), (Some(3_000), Confidence::Partial));
    assert_eq!(when(&world, "huge").confidence, Confidence::Unknown);
}

#[test]
fn a_pod_that_waits_for_nothing_could_start_now() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").build());
    let estimate = when(&world, "p");
    assert_eq!((estimate.earliest_unix_s, estimate.confidence), (Some(NOW), Confidence::Declared));
    world.bind_all();
    assert_eq!(when(&world, "p").earliest_unix_s, None, "it has started");
    world.see(
        PodBuilder::new("gated").assigned(Assignment::Gated { gates: vec!["g".into()] }).build(),
    );
    assert_eq!(when(&world, "gated").confidence, Confidence::Unknown);
    world.handle(Event::gone(PodUid::from("uid-p")));
    assert!(world.engine.when(&key("p"), NOW).is_none());
}
