//! Random histories with preemptions: no victim is deleted in vain, and no nomination outlives its
//! use.

use std::ops::Range;

use model::{Assignment, Deletion, Pod, PodUid};
use proptest::prelude::*;

use super::properties::{History, Step};
use crate::record::Record;
use crate::{Engine, Event, Eviction, EvictionStep, Unschedulable};

/// Steps that were handed out and have not ended, and victims that are leaving.
#[derive(Default)]
pub(super) struct Evictions {
    open: Vec<Eviction>,
    leaving: Vec<PodUid>,
    pub deleted: usize,
}

impl History {
    /// A step is handed out. A victim is deleted only for a Pod that can start then.
    pub(super) fn evicts(&mut self, eviction: Eviction) {
        if eviction.step == EvictionStep::Delete {
            let preemptor = self.world.engine.observed.pods.get(&eviction.preemptor_uid);
            let why = preemptor.map_or(Some("it is gone".to_owned()), |it| self.why_not(it));
            assert_eq!(
                why, None,
                "{} is deleted in vain for {}",
                eviction.victim, eviction.preemptor
            );
            self.evictions.deleted += 1;
        }
        self.evictions.open.push(eviction);
    }

    pub(super) fn evict(&mut self, outcomes: &[u8]) {
        self.take_reports();
        for outcome in outcomes {
            if self.evictions.open.is_empty() {
                return;
            }
            let eviction = self.evictions.open.remove(0);
            let (victim, step) = (eviction.uid.clone(), eviction.step);
            match outcome {
                0 => self.world.handle(Event::EvictionFailed { victim }),
                1 => self.evictions.open.push(eviction),
                2 if step == EvictionStep::Delete => {
                    self.world.handle(Event::EvictionDelayed { victim });
                }
                3 => self.world.handle(Event::EvictionPutOff { victim }),
                _ => {
                    if step == EvictionStep::Delete {
                        self.evictions.leaving.push(victim.clone());
                    }
                    self.world.handle(Event::EvictionStepDone { victim: victim.clone(), step });
                    self.leaves(&victim, step);
                }
            }
        }
    }

    /// The watch shows that the victim is going.
    fn leaves(&mut self, victim: &PodUid, step: EvictionStep) {
        let Some(record) = self.world.engine.observed.pods.get(victim) else { return };
        let Some(reservation) =
            record.reservation.as_ref().filter(|_| step == EvictionStep::Delete)
        else {
            return;
        };
        let assignment = Assignment::Bound { node: reservation.node.clone(), grant: None };
        let deletion = Deletion::TerminatingByPreemption;
        let pod = Pod { assignment, deletion, ..Pod::clone(&record.pod) };
        self.world.see(pod);
    }

    pub(super) fn victims_end(&mut self) {
        for victim in std::mem::take(&mut self.evictions.leaving) {
            self.pod_has_gone(&victim);
        }
    }

    /// The condition was written, and the watch shows it.
    pub(super) fn written(&mut self, report: Unschedulable) {
        let known =
            self.world.engine.observed.pods.get(&report.uid).filter(|it| it.stage.is_waiting());
        if let Some(record) = known {
            let nominated_node = report.nominated_node;
            let pod = Pod { nominated_node, ..Pod::clone(&record.pod) };
            if pod.assignment == Assignment::Waiting {
                self.world.see(pod);
            }
        }
        self.world.handle(Event::ReportWritten(report.uid));
    }

    /// The calls of the former term have ended, one way or the other.
    pub(super) fn term_begins(&mut self) {
        self.evictions.open.clear();
        self.world.handle(Event::TermBegan);
    }

    /// Why the Pod could not start where it is nominated if its victims were gone. Asked of a copy of the engine, and
    /// of the plain rules.
    fn why_not(&self, record: &Record) -> Option<String> {
        let Some(nomination) = record.nominated.as_deref() else {
            return Some("it is not nominated".to_owned());
        };
        let mut copy = Engine::restore(self.world.engine.snapshot());
        let priority = record.pod.spec.scheduling.priority;
        let on_node = self.world.engine.observed.cluster.pods_on(&nomination.place.node);
        for other in on_node.filter(|other| other.priority < priority) {
            let is_going = other.deletion == Deletion::TerminatingByPreemption;
            if is_going || nomination.victims.contains(&other.uid) {
                copy.handle(self.world.engine.now, Event::gone(other.uid.clone()));
            }
        }
        // That its last Binding was refused does not say that it could not start.
        if let Some(record) = copy.observed.pods.get_mut(&record.pod.uid) {
            record.rejection = None;
        }
        let explained = copy.explain(&record.pod.key).unwrap();
        let fits = explained.nodes.best == [nomination.place.node.clone()];
        (explained.dominant.is_some() || !fits).then_some(explained.message)
    }

    /// Whatever has just happened, no Pod is nominated for nothing.
    pub(super) fn every_nomination_can_be_of_use(&self) {
        for record in self.world.engine.observed.pods.values() {
            let Some(nomination) = &record.nominated else { continue };
            // One that was read from the Pod is judged when the Pod is tried.
            if record.stage.is_waiting() && nomination.is_reserved {
                let why = self.why_not(record);
                assert_eq!(why, None, "{} is nominated in vain", record.pod.key);
            }
        }
    }

    /// When all victims have gone, a nominated Pod has started or does not count on it any more, and the API
    /// server knows.
    pub(super) fn no_nomination_is_left(&self) {
        for record in self.world.engine.observed.pods.values().filter(|it| it.stage.is_waiting()) {
            let (key, pod) = (&record.pod.key, &record.pod);
            assert!(record.nominated.is_none(), "{key}: {:?}", record.nominated);
            assert_eq!(pod.nominated_node, None, "the API server still shows it of {key}");
        }
    }
}

/// Few Nodes, a corridor and a bundle that are most often Ready, and Pods of all priorities.
fn crowded_step() -> impl Strategy<Value = Step> {
    let outcomes = |max: u8| prop::collection::vec(0..max, 0..6);
    let asks = |object: u8| prop::option::weighted(0.4, (Just(object), 0..60_u32));
    prop_oneof![
        12 => (0..24_u8, 15..40_i64, asks(0), asks(2), 0..8_i32).prop_map(
            |(number, cpu, corridor, bundle, priority)| {
                Step::Pod { number, cpu: cpu * 100, asks: [corridor, bundle], priority }
            }
        ),
        4 => (0..24_u8).prop_map(Step::PodGone),
        1 => (0..24_u8).prop_map(Step::PodRests),
        1 => (prop::sample::select(vec![0_u8, 2]), 90..130_u8, 0..6_u8, Just(100_u32)).prop_map(
            |(number, achievable, phase, floor)| {
                Step::Object { number, achievable, phase: phase > 0, floor }
            }
        ),
        2 => (0..4_u8, 30..50_i64).prop_map(|(number, cpu)| Step::Node { number, cpu: cpu * 100 }),
        1 => Just(Step::NodeGone(3)),
        4 => Just(Step::Backend),
        1 => (0..9_u8).prop_map(Step::Pass),
        3 => outcomes(4).prop_map(|outcomes| Step::Reports { outcomes }),
        8 => outcomes(8).prop_map(|outcomes| Step::Bind { outcomes }),
        5 => outcomes(8).prop_map(|outcomes| Step::Evictions { outcomes }),
        2 => Just(Step::VictimsEnd),
        1 => Just(Step::TermBegan),
    ]
}

/// The corridor and the bundle are there from the beginning.
fn crowded(steps: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let ready = |number| Step::Object { number, achievable: 120, phase: true, floor: 100 };
    prop::collection::vec(crowded_step(), steps)
        .prop_map(move |steps| [ready(0), ready(2)].into_iter().chain(steps).collect())
}

proptest! {
    #[test]
    fn no_victim_is_deleted_in_vain_and_no_nomination_outlives_its_use(
        steps in crowded(20..120)
    ) {
        History::run(&steps);
    }
}

#[test]
fn the_histories_do_send_pods_away() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let histories = crowded(60..120);
    let deleted: usize = (0..40)
        .map(|_| {
            let mut history = History::new();
            for step in histories.new_tree(&mut runner).unwrap().current() {
                history.apply(&step);
            }
            history.settle();
            history.evictions.deleted
        })
        .sum();
    assert!(deleted > 50, "{deleted} deletions in 40 histories prove little");
}
