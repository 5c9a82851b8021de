//! What the engine counts for metrics.

use std::time::Duration;

use model::Assignment;

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder, corridor};
use crate::{BindRefusal, BindRefusalCause, Event, FailedAttempts, Queue, QueuedBy};

#[test]
fn attempts_in_vain_are_counted_by_profile_and_tries_by_pod() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("a").cpu_milli(9_000).build());
    world.see(PodBuilder::new("b").cpu_milli(9_000).profile("other").build());
    world.see(PodBuilder::new("c").build());
    world.bind_all();
    let failed_attempts: Vec<_> = world.engine.queue_metrics().failed_attempts().collect();
    let one = FailedAttempts { unschedulable: 1, failed: 0 };
    assert_eq!(failed_attempts, [(&"corridor-scheduler".into(), one), (&"other".into(), one)]);
    assert_eq!(world.engine.queue_metrics().failed_preemptions, 2);
    let attempts = world.engine.attempts(&"uid-c".into()).unwrap();
    assert_eq!((attempts.count, attempts.first), (1, Some(world.now)));
}

#[test]
fn a_pod_whose_binding_is_refused_is_tried_a_second_time() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("a").build());
    let began = world.now;
    let bind = world.decide().remove(0);
    let refusal = BindRefusal { cause: BindRefusalCause::Conflict, message: "conflict".into() };
    world.handle(Event::BindRefused { pod: bind.uid, refusal });
    world.pass(Duration::from_secs(1));
    world.bind_all();
    let attempts = world.engine.attempts(&"uid-a".into()).unwrap();
    assert_eq!((attempts.count, attempts.first), (2, Some(began)));
    let queue_metrics = world.engine.queue_metrics();
    assert_eq!(queue_metrics.queued(Queue::Active, QueuedBy::PodAdd), 1);
    assert_eq!(queue_metrics.queued(Queue::Backoff, QueuedBy::AttemptFailure), 1);
    assert_eq!(queue_metrics.queued(Queue::Active, QueuedBy::BackoffComplete), 1);
}

#[test]
fn a_summary_says_what_pods_wait_for_and_since_when() {
    let mut world = World::with_nodes(2);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("holder").needs("c1", Some(100)).build());
    world.bind_all();
    world.see(PodBuilder::new("short").needs("c1", Some(10)).cpu_milli(2_000).build());
    world.see(PodBuilder::new("greedy").needs("c1", Some(200)).cpu_milli(3_000).build());
    world.see(PodBuilder::new("twice").needs("c1", Some(1)).needs("none", None).build());
    world.see(PodBuilder::new("big").cpu_milli(9_000).build());
    let gates = vec!["wait".into()];
    world.see(PodBuilder::new("gated").assigned(Assignment::Gated { gates }).build());
    let began = world.now;
    world.bind_all();
    world.pass(Duration::from_secs(5));
    let summary = world.engine.pending_summary();
    let plugins: Vec<_> =
        summary.by_plugin.iter().map(|((plugin, _), pods)| (plugin.as_str(), *pods)).collect();
    assert_eq!(plugins, [("Corridor", 3), ("NodeResourcesFit", 1), ("SchedulingGates", 1)]);
    let held: Vec<_> = summary.held.iter().map(|((_, why), pods)| (why.as_str(), *pods)).collect();
    assert_eq!(held, [("MoreThanFloor", 1), ("Short", 2)]);
    assert_eq!(summary.oldest["Short"], began);
    let stranded: Vec<_> = summary.stranded_cpu_milli.into_iter().collect();
    assert_eq!(stranded, [(corridor("c1"), 2_000)], "who lacks more, or asks too much, does not");
}

#[test]
fn another_reason_begins_another_wait() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    world.bind_all();
    world.pass(Duration::from_secs(5));
    assert!(world.engine.pending_summary().oldest.contains_key("NotFound"));
    world.corridor(CorridorBuilder::new("c1", 100).achievable(1.0));
    world.bind_all();
    world.held_reports();
    let summary = world.engine.pending_summary();
    assert_eq!(summary.oldest.get("BelowFloor"), Some(&world.now), "{summary:?}");
    assert_eq!(summary.oldest.len(), 1);
}
