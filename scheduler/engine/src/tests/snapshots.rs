//! An engine that is brought back from a snapshot is the same engine: it answers every later call alike, byte by
//! byte, and ends in the same state.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{
    Assignment, Deletion, Effect, LabelSelector, NodeName, ObjectKey, PodAffinityTerm, PodUid,
    Taint, WeightedPodAffinityTerm,
};
use proptest::prelude::*;

use super::properties::{History, step};
use super::{World, json};
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder};
use crate::{Action, ClusterObject, Engine, Event, EvictionStep, Report, Snapshot, Watched};

/// Written down and read again, as a journal does it.
fn brought_back(engine: &Engine) -> Engine {
    let written = json(&engine.snapshot());
    let read: Snapshot = serde_json::from_str(&written).unwrap();
    assert_eq!(json(&read), written, "what is read is what was written");
    let twin = Engine::restore(read);
    assert_eq!(json(&twin.snapshot()), written, "what is brought back is what was written");
    twin
}

impl World {
    pub(super) fn gets_a_twin(&mut self) {
        self.twin = Some(brought_back(&self.engine));
    }

    /// Beyond what was told: everything that is known.
    pub(super) fn twin_is_the_same(&self) {
        let twin = self.twin.as_ref().unwrap();
        assert_eq!(json(&twin.snapshot()), json(&self.engine.snapshot()));
        assert_eq!(twin.observed.cluster, self.engine.observed.cluster);
        assert_eq!(twin.stats(), self.engine.stats());
        assert_eq!(twin.poll_timeout(), self.engine.poll_timeout());
        for record in self.engine.observed.pods.values() {
            let pod = &record.pod.key;
            assert_eq!(twin.explain(pod), self.engine.explain(pod));
        }
    }
}

proptest! {
    #[test]
    fn a_history_goes_on_as_if_it_had_not_been_written_down(
        before in prop::collection::vec(step(), 1..80),
        after in prop::collection::vec(step(), 0..60),
    ) {
        let mut history = History::new();
        for step in &before {
            history.apply(step);
        }
        history.world.gets_a_twin();
        for step in &after {
            history.apply(step);
        }
        history.world.twin_is_the_same();
        history.settle();
        history.world.twin_is_the_same();
    }
}

/// What random histories have none of: other schedulers, closed Nodes, evictions half way, gates, controllers.
fn rich() -> World {
    let mut world = World::with_nodes(2);
    world.handle(Event::seen(NodeBuilder::new("closed").label("zone", "z1").build()));
    world.handle(Event::PodUnreadable { pod: "odd".into(), node: "closed".into() });
    world.handle(Event::seen(ClusterObject::Namespace(
        "team-b".into(),
        [(model::SECURITY_DOMAIN_LABEL.into(), "red".into())].into(),
    )));
    world.handle(Event::Seen(Watched::Policy {
        policy: ObjectKey::new("team-a", "p"),
        allowed_tenants: ["team-b".into()].into(),
    }));
    let selector: model::Labels = [("app".into(), "a".into())].into();
    world.handle(Event::seen(ClusterObject::Service(
        ObjectKey::new("team-a", "web"),
        LabelSelector::of_labels(&selector),
    )));
    world.handle(Event::seen(ClusterObject::ReplicaSet(
        ObjectKey::new("team-a", "web"),
        LabelSelector::of_labels(&selector),
    )));
    world.corridor(CorridorBuilder::new("c1", 100).ticket_hash("abc"));
    world.corridor(CorridorBuilder::bundle("b1", 10).exclusive());
    for number in 0..2 {
        let low = PodBuilder::new(&format!("low{number}")).cpu_milli(3500).label("app", "a");
        world.see(low.build());
    }
    world.bind_all();
    let turned_away = PodBuilder::new("away").cpu_milli(100);
    world.see(turned_away.build());
    world.bind_all();
    world.handle(Event::KubeletRejected { pod: "uid-away".into(), why: "OutOfcpu".into() });
    world.end("away");
    world.see(PodBuilder::new("urgent").cpu_milli(3000).priority(9).build());
    world.see(PodBuilder::new("refused").needs("team-b/none", Some(5)).build());
    world.see(PodBuilder::new("impatient").needs("gone", None).fail_fast().build());
    world.see(PodBuilder::new("greedy").needs("c1", Some(200)).build());
    world.see(PodBuilder::new("half").needs("c1", Some(60)).needs_bundle("b1", Some(4)).build());
    world.see(PodBuilder::new("rest").needs("c1", Some(60)).build());
    let gates = vec!["wait".into()];
    world.see(PodBuilder::new("gated").assigned(Assignment::Gated { gates }).build());
    let foreign = PodBuilder::new("foreign").cpu_milli(100).nominated("n1");
    world.see(foreign.assigned(Assignment::Foreign).build());
    world
}

/// All that is to be told; evictions are answered, and the victims go.
fn tell_all(world: &mut World) {
    while let Some(Action::Evict(eviction)) = world.poll_action() {
        let (victim, step) = (eviction.uid.clone(), eviction.step);
        world.handle(Event::EvictionStepDone { victim: victim.clone(), step });
        if step == EvictionStep::Delete {
            world.handle(Event::gone(victim));
        }
    }
    while let Some(report) = world.poll_report() {
        match report {
            Report::Unschedulable(it) => world.handle(Event::ReportWritten(it.uid)),
            Report::Used(_) | Report::Scheduled { .. } => {}
        }
    }
}

fn go_on(world: &mut World) {
    let steps: [fn(&mut World); 6] = [
        |world| world.handle(Event::gone(PodUid::from("odd"))),
        |world| world.corridor(CorridorBuilder::new("gone", 10)),
        |world| world.corridor(CorridorBuilder::new("c1", 300).generation(2)),
        |world| world.pass(Duration::from_mins(6)),
        |world| world.handle(Event::TermBegan),
        |world| world.see(PodBuilder::new("low0").deletion(Deletion::Terminating).build()),
    ];
    for step in steps {
        step(world);
        world.bind_all();
        tell_all(world);
        world.pass(Duration::from_secs(11));
        world.handle(Event::Seen(Watched::Backend {
            kind: model::ObjectKind::Corridor,
            age: Duration::ZERO,
        }));
    }
}

#[test]
fn everything_that_can_be_under_way_goes_on() {
    // Written down at every point of the story up to its end.
    for calls in 0..40 {
        let mut world = rich();
        world.decide();
        for _ in 0..calls {
            if world.poll_report().is_none() {
                break;
            }
        }
        world.gets_a_twin();
        go_on(&mut world);
        world.twin_is_the_same();
    }
}

#[test]
fn a_rebuilt_engine_is_written_down_like_any_other() {
    let mut world = rich();
    world.decide();
    world.engine.trying = Some("uid-rest".into());
    world.gets_a_twin();
    let culprits = (world.engine.recover(), world.twin.as_mut().unwrap().recover());
    assert_eq!(culprits, (Some("uid-rest".into()), Some("uid-rest".into())));
    world.twin_is_the_same();
    go_on(&mut world);
    world.twin_is_the_same();
}

/// A term that means the Pods `app=web` of a namespace.
fn web_of(namespace: &str) -> PodAffinityTerm {
    let web = LabelSelector::of_labels(&[("app".into(), "web".into())].into());
    PodAffinityTerm::new(&namespace.into(), "zone", web, BTreeSet::new(), None)
}

fn bound(name: &str, node: usize) -> PodBuilder {
    let node = format!("n{node}").as_str().into();
    PodBuilder::new(name).assigned(Assignment::Bound { node, grant: None })
}

/// Equal Nodes in two zones with room for small Pods only, and the twin of an engine that has seen more than is there now.
fn full_after(past: impl FnOnce(&mut World)) -> World {
    let mut world = World::with_nodes(0);
    for number in 0..8 {
        world.handle(Event::seen(zoned(number)));
        world.see(bound(&format!("low{number}"), number).cpu_milli(3000).build());
    }
    // Matches no later Pod, but keeps their label from being left out.
    let reader =
        bound("reader", 0).scheduling(|it| it.pod_affinity.required.push(web_of("team-b")));
    world.see(reader.build());
    past(&mut world);
    world.gets_a_twin();
    world
}

fn zoned(number: usize) -> model::ClusterNode {
    let zone = format!("z{}", number % 2);
    NodeBuilder::new(&format!("n{number}")).label("zone", &zone).build()
}

#[test]
fn a_term_whose_last_carrier_is_gone_does_not_bear_on_the_victims() {
    let mut world = full_after(|world| {
        let lonely = bound("lonely", 0);
        let lonely = lonely.scheduling(|it| it.pod_affinity.anti_required.push(web_of("team-a")));
        world.see(lonely.build());
        world.end("lonely");
    });
    for number in 0..6 {
        let urgent = PodBuilder::new(&format!("urgent{number}")).label("app", "web");
        world.see(urgent.cpu_milli(3000).priority(9).build());
        assert!(world.bind_all().is_empty());
        tell_all(&mut world);
        world.twin_is_the_same();
    }
    assert_eq!(world.engine.stats().preemptions, 6);
}

#[test]
fn a_preference_whose_last_carrier_is_gone_does_not_bear_on_the_choice() {
    let mut world = full_after(|world| {
        let shy = bound("shy", 0).scheduling(|it| {
            let term = WeightedPodAffinityTerm { weight: 10, term: web_of("team-a") };
            it.pod_affinity.anti_preferred.push(term);
        });
        world.see(shy.build());
        world.see(PodBuilder::new("web").label("app", "web").build());
        assert_eq!(world.bind_all(), ["web"]);
        world.end("shy");
        world.end("web");
    });
    for number in 0..8 {
        world.see(PodBuilder::new(&format!("web{number}")).label("app", "web").build());
        assert_eq!(world.bind_all().len(), 1);
        world.twin_is_the_same();
    }
}

#[test]
fn a_taint_that_is_gone_does_not_bear_on_the_choice() {
    let mut world = full_after(|world| {
        let taint = Taint { key: "k".into(), value: "v".into(), effect: Effect::PreferNoSchedule };
        let mut tainted = zoned(7);
        tainted.node.taints.push(taint);
        world.handle(Event::seen(tainted));
        world.handle(Event::gone(NodeName::from("n2")));
        world.see(PodBuilder::new("one").build());
        assert_eq!(world.bind_all(), ["one"]);
        world.end("one");
        world.handle(Event::seen(zoned(7)));
    });
    for number in 0..8 {
        world.see(PodBuilder::new(&format!("one{number}")).build());
        assert_eq!(world.bind_all().len(), 1);
        world.twin_is_the_same();
    }
}

#[test]
fn a_label_that_was_read_before_a_pod_waited_joins_no_class_later() {
    let mut world = World::with_nodes(1);
    let reader = bound("reader", 0).cpu_milli(4000);
    let reader = reader.scheduling(|it| it.pod_affinity.anti_required.push(web_of("team-b")));
    world.see(reader.build());
    world.see(PodBuilder::new("plain").cpu_milli(4000).build());
    world.see(PodBuilder::new("web").cpu_milli(4000).label("app", "web").build());
    assert!(world.bind_all().is_empty());
    world.gets_a_twin();
    world.end("reader");
    world.twin_is_the_same();
}
