//! Waiting Pods that differ in nothing that a rule reads are one class; a class goes with its last Pod; and a change asks only
//! the classes that it can concern.

use std::time::Duration;

use model::{Assignment, LabelSelector, Labels, ObjectKey, PodAffinityTerm};

use super::World;
use crate::testkit::{NodeBuilder, PodBuilder};
use crate::{CacheLimit, ClusterObject, ClusterObjectId, Engine, EngineConfig, Event};

/// More than a Node has.
const MUCH_CPU_MILLI: i64 = 5_000;
const SWEEP: Duration = Duration::from_secs(61);

impl World {
    fn kinds_waiting(&self) -> usize {
        self.engine.queues.parked.classes().count()
    }
}

fn indexed(index: i64) -> PodBuilder {
    let pod = PodBuilder::new(&format!("job-{index}")).cpu_milli(MUCH_CPU_MILLI);
    pod.label("app", &format!("a{}", index % 3)).label("index", &index.to_string())
}

/// Keeps Pods with this label away from its Node.
fn loner(name: &str, label: (&str, &str)) -> PodBuilder {
    let selector: Labels = [(label.0.into(), label.1.into())].into();
    let selector = LabelSelector::of_labels(&selector);
    let term = PodAffinityTerm::new(
        &"team-a".into(),
        "kubernetes.io/hostname",
        selector,
        std::collections::BTreeSet::new(),
        None,
    );
    let node = "n0".into();
    PodBuilder::new(name)
        .scheduling(|scheduling| scheduling.pod_affinity.anti_required.push(term))
        .assigned(Assignment::Bound { node, grant: None })
}

#[test]
fn pods_that_differ_in_labels_that_no_selector_reads_are_one_kind() {
    let mut world = World::with_nodes(2);
    for index in 0..50 {
        world.see(indexed(index).build());
    }
    assert!(world.bind_all().is_empty());
    assert_eq!(world.kinds_waiting(), 1);
    assert_eq!(world.engine.placing.remembered().0, 1);
}

#[test]
fn selectors_that_come_and_go_tell_waiting_pods_apart_and_no_longer() {
    let mut world = World::with_nodes(2);
    for index in 0..9 {
        world.see(indexed(index).build());
    }
    world.bind_all();
    world.see(loner("one", ("app", "a1")).build());
    assert_eq!(world.kinds_waiting(), 2, "a1, and all the others");
    world.see(loner("other", ("index", "7")).build());
    assert_eq!(world.kinds_waiting(), 3, "one of a1 by itself");
    let selector: Labels = [("app".into(), "a2".into())].into();
    let service = ObjectKey::new("team-a", "web");
    world.handle(Event::seen(ClusterObject::Service(
        service.clone(),
        LabelSelector::of_labels(&selector),
    )));
    assert_eq!(world.kinds_waiting(), 4);
    world.end("one");
    world.end("other");
    world.handle(Event::gone(ClusterObjectId::Service(service)));
    world.pass(SWEEP);
    world.bind_all();
    assert_eq!(world.kinds_waiting(), 1, "what has gone tells nobody apart");
    world.handle(Event::seen(NodeBuilder::new("big").cpu_milli(100_000).build()));
    world.pass(SWEEP);
    assert_eq!(world.bind_all().len(), 9, "and everybody is still there");
}

#[test]
fn a_kind_goes_with_its_last_pod() {
    let mut world = World::with_nodes(2);
    for index in 0..20 {
        world.see(indexed(index).cpu_milli(MUCH_CPU_MILLI + index).build());
    }
    world.bind_all();
    assert_eq!(world.kinds_waiting(), 20);
    for index in 0..20 {
        world.end(&format!("job-{index}"));
    }
    assert_eq!(world.kinds_waiting(), 0);
    assert_eq!(world.engine.queues.wake_index.classes().count(), 0);
    for _ in 0..2 {
        world.pass(SWEEP);
        world.bind_all();
    }
    assert_eq!(world.engine.placing.remembered(), (0, 0));
}

#[test]
fn a_change_of_a_node_asks_only_the_kinds_that_it_has_room_for() {
    let mut world = World::with_nodes(3);
    for index in 0..500 {
        world.see(indexed(index).cpu_milli(MUCH_CPU_MILLI + index).build());
    }
    world.bind_all();
    let before = world.engine.placing.questions();
    for index in 0..10 {
        world.see(PodBuilder::new(&format!("plain-{index}")).cpu_milli(100).build());
    }
    assert_eq!(world.bind_all().len(), 10);
    for index in 0..10 {
        world.end(&format!("plain-{index}"));
    }
    let asked = world.engine.placing.questions() - before;
    assert!(asked <= 20, "{asked} questions for 10 Pods that came and went");
    // Room for the smallest three of them.
    let node = NodeBuilder::new("n0").cpu_milli(MUCH_CPU_MILLI + 2);
    world.handle(Event::seen(node.build()));
    assert_eq!(world.kinds_waiting(), 497);
    world.pass(Duration::from_secs(11));
    assert_eq!(world.bind_all(), ["job-0"]);
}

#[test]
fn what_waiting_kinds_remember_is_bounded_and_changes_no_decision() {
    let run = |bytes: u64| {
        let cache = CacheLimit { bytes };
        let mut world = World::with_nodes(0);
        world.engine = Engine::new(EngineConfig { cache, ..EngineConfig::default() });
        for kind in crate::WatchedKind::ALL {
            world.handle(Event::Synced(kind));
        }
        for number in 0..40 {
            world.handle(Event::seen(NodeBuilder::new(&format!("n{number}")).build()));
        }
        let mut bound = Vec::new();
        for index in 0..300 {
            world.see(indexed(index).cpu_milli(MUCH_CPU_MILLI + index).build());
            world.see(PodBuilder::new(&format!("p{index}")).cpu_milli(index).build());
            for bind in world.decide() {
                world.handle(Event::BindDone(bind.uid));
                bound.push((bind.pod, bind.node));
            }
        }
        (bound, world.engine.placing.remembered().1)
    };
    let (bound, ample) = run(1 << 30);
    let (bound_with_little, little) = run(1 << 10);
    assert_eq!(bound, bound_with_little);
    assert!(little < ample / 4, "{little} bytes of {ample}");
}
