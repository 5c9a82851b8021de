//! Preemption: nominations, victims, the two steps of an eviction.

use std::time::Duration;

use model::{
    Assignment, Deletion, LabelSelector, ObjectKey, PodDisruptionBudget, PreemptionPolicy,
};

use super::World;
use crate::testkit::{NodeBuilder, PodBuilder, key};
use crate::{Action, ClusterObject, Event, Eviction, EvictionStep, Report};

pub(super) fn bound(name: &str, node: &str, priority: i32) -> PodBuilder {
    let assignment = Assignment::Bound { node: node.into(), grant: None };
    PodBuilder::new(name).cpu_milli(2000).priority(priority).assigned(assignment)
}

/// Two Nodes of 4 CPUs, full of Pods of 2 CPUs; those on n1 are more important.
fn full() -> World {
    let mut world = World::with_nodes(2);
    for (name, node, priority) in [("a", "n0", 1), ("b", "n0", 1), ("c", "n1", 5), ("d", "n1", 5)] {
        world.see(bound(name, node, priority).build());
    }
    world
}

fn urgent() -> PodBuilder {
    PodBuilder::new("urgent").cpu_milli(2000).priority(9)
}

impl World {
    /// Evictions, and what the condition of a waiting Pod says of its nomination.
    pub(super) fn steps(&mut self) -> (Vec<Eviction>, Vec<(ObjectKey, Option<String>)>) {
        let (mut evictions, mut nominations) = (Vec::new(), Vec::new());
        while let Some(Action::Evict(eviction)) = self.engine.poll_action() {
            evictions.push(eviction);
        }
        while let Some(report) = self.engine.poll_report() {
            match report {
                Report::Unschedulable(it) => {
                    self.handle(Event::ReportWritten(it.uid));
                    nominations.push((it.pod, it.nominated_node.map(|node| node.to_string())));
                }
                Report::Used(_) | Report::Scheduled { .. } => {}
            }
        }
        (evictions, nominations)
    }

    pub(super) fn one_eviction(&mut self) -> Eviction {
        let (evictions, _) = self.steps();
        assert_eq!(evictions.len(), 1, "{evictions:?}");
        evictions[0].clone()
    }

    pub(super) fn step_done(&mut self, eviction: &Eviction) {
        let (victim, step) = (eviction.uid.clone(), eviction.step);
        self.handle(Event::EvictionStepDone { victim, step });
    }
}

#[test]
fn the_least_loss_is_announced_then_deleted_and_its_place_goes_to_the_preemptor() {
    let mut world = full();
    world.see(urgent().build());
    assert!(world.bind_all().is_empty());
    let (evictions, nominations) = world.steps();
    assert_eq!(nominations, [(key("urgent"), Some("n0".to_owned()))]);
    let [announced] = evictions.as_slice() else { panic!("{evictions:?}") };
    assert_eq!(announced.step, EvictionStep::Announce);
    assert_eq!(announced.node, "n0".into());
    assert_eq!(announced.preemptor, key("urgent"));
    world.step_done(announced);
    let deleted = world.one_eviction();
    assert_eq!((deleted.step, &deleted.uid), (EvictionStep::Delete, &announced.uid));
    world.step_done(&deleted);
    let name = announced.victim.name.to_string();
    world.see(bound(&name, "n0", 1).deletion(Deletion::TerminatingByPreemption).build());
    assert!(world.bind_all().is_empty(), "it waits for its victim");
    world.pass(Duration::from_secs(2));
    world.end(&name);
    assert_eq!(world.bind_all(), ["urgent"]);
    assert_eq!(world.engine.stats().preemption_victims, 1);
}

#[test]
fn a_victim_stays_when_its_place_is_no_longer_needed() {
    let mut world = full();
    world.see(urgent().build());
    world.bind_all();
    let announced = world.one_eviction();
    world.pass(Duration::from_secs(2));
    world.handle(Event::seen(NodeBuilder::new("new").build()));
    assert_eq!(world.bind_all(), ["urgent"]);
    world.step_done(&announced);
    let withdrawn = world.one_eviction();
    assert_eq!(withdrawn.step, EvictionStep::Withdraw, "its place is not needed any more");
    world.step_done(&withdrawn);
    assert!(world.steps().0.is_empty());
}

#[test]
fn who_may_not_preempt_does_not() {
    let mut world = full();
    let never =
        urgent().scheduling(|scheduling| scheduling.preemption_policy = PreemptionPolicy::Never);
    world.see(never.build());
    world.bind_all();
    let (evictions, nominations) = world.steps();
    assert!(evictions.is_empty());
    assert_eq!(nominations, [(key("urgent"), None)]);
    let told = world.message("urgent");
    let never = "2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to \
                 preemptionPolicy=Never.";
    assert!(told.ends_with(never), "{told}");
    let explained = world.engine.explain(&key("urgent")).unwrap().preemption.unwrap();
    assert_eq!(explained.message.unwrap(), "not eligible due to preemptionPolicy=Never.");
}

#[test]
fn a_nomination_is_kept_from_lesser_pods_and_withdrawn_when_the_victim_cannot_go() {
    let mut world = full();
    world.see(urgent().build());
    world.bind_all();
    let announced = world.one_eviction();
    world.pass(Duration::from_secs(20));
    world.end("a");
    world.see(PodBuilder::new("lesser").cpu_milli(2000).build());
    assert_eq!(world.bind_all(), ["urgent"], "the freed place was promised");
    let mut world = full();
    world.see(urgent().build());
    world.bind_all();
    world.one_eviction();
    world.handle(Event::EvictionFailed { victim: announced.uid });
    world.pass(Duration::from_secs(2));
    assert!(world.bind_all().is_empty());
    assert_eq!(world.steps().0.len(), 1, "it tries again");
}

#[test]
fn the_nomination_of_a_lesser_pod_gives_way() {
    let mut world = World::with_nodes(1);
    world.see(bound("low", "n0", 0).cpu_milli(4000).build());
    world.see(PodBuilder::new("middle").cpu_milli(4000).priority(5).build());
    world.bind_all();
    world.one_eviction();
    world.see(PodBuilder::new("high").cpu_milli(4000).priority(9).build());
    world.bind_all();
    let (evictions, nominations) = world.steps();
    assert!(evictions.is_empty(), "its victim is on its way already");
    let of =
        |name: &str| nominations.iter().find(|(pod, _)| *pod == key(name)).map(|(_, node)| node);
    assert_eq!(of("high"), Some(&Some("n0".to_owned())));
    assert_eq!(of("middle"), Some(&None));
}

#[test]
fn a_budget_chooses_other_victims() {
    let mut world = World::with_nodes(1);
    world.see(bound("guarded", "n0", 1).label("app", "db").build());
    world.see(bound("other", "n0", 1).label("app", "web").build());
    let app = [("app".into(), "db".into())].into();
    world.handle(Event::seen(ClusterObject::PodDisruptionBudget(
        key("budget"),
        PodDisruptionBudget {
            key: key("budget"),
            selector: LabelSelector::of_labels(&app),
            disruptions_allowed: 0,
            disrupted_pods: std::collections::BTreeSet::new(),
        },
    )));
    world.see(urgent().build());
    world.bind_all();
    assert_eq!(world.one_eviction().victim, key("other"));
}

#[test]
fn nominations_of_other_schedulers_count_until_they_age() {
    let mut world = World::with_nodes(1);
    let foreign = |node: &str| {
        let pod = PodBuilder::new("foreign").cpu_milli(3000).priority(1).nominated(node);
        pod.assigned(Assignment::Foreign).build()
    };
    world.see(foreign("n0"));
    world.see(PodBuilder::new("ours").cpu_milli(2000).build());
    assert!(world.bind_all().is_empty(), "the Node was promised to somebody more important");
    world.see(PodBuilder::new("more").cpu_milli(2000).priority(2).build());
    assert_eq!(world.bind_all(), ["more"], "who is more important need not care");
    world.end("more");
    world.pass(Duration::from_mins(4));
    assert!(world.bind_all().is_empty());
    let due = world.engine.poll_timeout().unwrap();
    assert!(due <= world.now + Duration::from_mins(1));
    world.pass(Duration::from_mins(1));
    assert_eq!(world.bind_all(), ["ours"]);
    world.end("ours");
    world.see(foreign("n0"));
    world.see(PodBuilder::new("again").cpu_milli(2000).build());
    assert_eq!(world.bind_all(), ["again"], "an old promise does not become new");
    assert_eq!(world.engine.stats().woken_by_sweep, 0);
}

#[test]
fn a_restarted_scheduler_keeps_its_nominations() {
    let mut world = full();
    world.end("a");
    world.see(urgent().nominated("n0").build());
    world.see(PodBuilder::new("second").cpu_milli(2000).priority(9).build());
    assert_eq!(world.bind_all(), ["urgent"]);
}

#[test]
fn a_pod_that_is_nominated_for_a_node_that_is_gone_looks_elsewhere() {
    let mut world = World::with_nodes(1);
    world.see(urgent().nominated("gone").build());
    assert_eq!(world.bind_all(), ["urgent"]);
}

#[test]
fn a_rebuilt_engine_knows_the_same_cluster_and_the_same_nominations() {
    let mut world = full();
    world.see(urgent().build());
    world.see(PodBuilder::new("poison").cpu_milli(9000).build());
    world.bind_all();
    let announced = world.one_eviction();
    let before = world.engine.observed.cluster.clone();
    // As a panic in its attempt leaves it.
    world.engine.trying = Some("uid-poison".into());
    assert_eq!(world.engine.recover().unwrap().as_str(), "uid-poison");
    assert_eq!(world.engine.observed.cluster, before);
    assert!(world.bind_all().is_empty());
    assert!(world.message("poison").contains("has set it aside"), "{}", world.message("poison"));
    assert_eq!(world.engine.stats().quarantined, 1);
    world.pass(Duration::from_secs(20));
    world.step_done(&announced);
    let deleted = world.one_eviction();
    assert_eq!(deleted.step, EvictionStep::Delete, "what was begun goes on");
    world.end(&announced.victim.name);
    assert_eq!(world.bind_all(), ["urgent"]);
    assert_eq!(world.engine.stats().woken_by_sweep, 0);
}

#[test]
fn a_new_leader_keeps_the_nominations_of_the_former_one() {
    let mut world = full();
    world.see(urgent().build());
    // The former leader promised n0, and its victim is on its way; we only watch.
    world.see(urgent().nominated("n0").build());
    world.see(bound("a", "n0", 1).deletion(Deletion::TerminatingByPreemption).build());
    world.handle(Event::TermBegan);
    assert!(world.bind_all().is_empty());
    let (evictions, nominations) = world.steps();
    assert!(evictions.is_empty(), "nobody else has to go: {evictions:?}");
    assert!(nominations.iter().all(|(_, node)| node.as_deref() == Some("n0")), "{nominations:?}");
    world.see(PodBuilder::new("lesser").cpu_milli(2000).build());
    world.pass(Duration::from_secs(20));
    world.end("a");
    assert_eq!(world.bind_all(), ["urgent"], "the freed place was promised");
}
