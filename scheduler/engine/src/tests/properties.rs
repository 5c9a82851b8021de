//! Random histories: nothing is ever over its limit, no Pod that fits is left waiting, and the
//! same history gives the same decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Amount, Assignment, NodeName, ObjectKind, ObjectRef, Phase, PodUid};
use proptest::prelude::*;

use super::evictions::Evictions;
use super::{World, refused};
use crate::record::{BindingStep, Stage};
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder, bundle, corridor, key};
use crate::{Action, Bind, Event, Report, Unschedulable, Watched};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Pod {
        number: u8,
        cpu: i64,
        /// Which corridor (0, 1) and bundle (2, 3), and how much of them.
        asks: [Option<(u8, u32)>; 2],
        priority: i32,
    },
    PodGone(u8),
    /// It gets a gate, or a deletionTimestamp.
    PodRests(u8),
    PodFinished(u8),
    /// Its kubelet turns it away, if it is on a Node.
    PodTurnedAway(u8),
    Object {
        number: u8,
        achievable: u8,
        phase: bool,
        floor: u32,
    },
    ObjectGone(u8),
    Node {
        number: u8,
        cpu: i64,
    },
    NodeGone(u8),
    Backend,
    Pass(u8),
    /// Reports are taken out; each is written or lost, or stays open.
    Reports {
        outcomes: Vec<u8>,
    },
    /// Steps of evictions end well or not, or stay open.
    Evictions {
        outcomes: Vec<u8>,
    },
    /// Victims that were deleted are gone.
    VictimsEnd,
    TermBegan,
    /// Decides this many, then lets each Binding succeed, fail or stay open.
    Bind {
        outcomes: Vec<u8>,
    },
}

fn asks(first: u8) -> impl Strategy<Value = Option<(u8, u32)>> {
    prop::option::of((first..first + 2, 0..120_u32))
}

/// Two corridors, a bundle that can be shared, one that cannot.
fn object(number: u8) -> ObjectRef {
    if number < 2 { corridor(&format!("o{number}")) } else { bundle(&format!("o{number}")) }
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..24_u8, 1..40_i64, asks(0), asks(2), 0..3_i32).prop_map(
            |(number, cpu, corridor, bundle, priority)| {
                Step::Pod { number, cpu: cpu * 100, asks: [corridor, bundle], priority }
            }
        ),
        2 => (0..24_u8).prop_map(Step::PodGone),
        1 => (0..24_u8).prop_map(Step::PodFinished),
        1 => (0..24_u8).prop_map(Step::PodTurnedAway),
        1 => (0..24_u8).prop_map(Step::PodRests),
        4 => (0..4_u8, 0..130_u8, any::<bool>(), prop::sample::select(vec![50_u32, 100])).prop_map(
            |(number, achievable, phase, floor)| Step::Object { number, achievable, phase, floor }
        ),
        1 => (0..4_u8).prop_map(Step::ObjectGone),
        2 => (0..4_u8, 1..50_i64).prop_map(|(number, cpu)| Step::Node { number, cpu: cpu * 100 }),
        1 => (0..4_u8).prop_map(Step::NodeGone),
        2 => Just(Step::Backend),
        2 => (0..20_u8).prop_map(Step::Pass),
        3 => prop::collection::vec(0..4_u8, 0..6).prop_map(|outcomes| Step::Reports { outcomes }),
        5 => prop::collection::vec(0..4_u8, 0..8).prop_map(|outcomes| Step::Bind { outcomes }),
        4 => prop::collection::vec(0..8_u8, 0..6).prop_map(|outcomes| Step::Evictions { outcomes }),
        2 => Just(Step::VictimsEnd),
        1 => Just(Step::TermBegan),
    ]
}

/// A history under way, with what an onlooker knows of it.
pub(super) struct History {
    pub world: World,
    generations: BTreeMap<u8, (i64, u32)>,
    /// How often each Pod was deleted: its successor has another UID.
    deleted: BTreeMap<u8, u32>,
    open: Vec<Bind>,
    open_reports: Vec<Unschedulable>,
    pub(super) evictions: Evictions,
    decided: Vec<(String, String)>,
}

impl History {
    pub fn new() -> Self {
        let mut world = World::with_nodes(2);
        // Often enough to see what being kept does.
        world.engine.config.bypass.times_max = 2;
        Self {
            world,
            generations: BTreeMap::new(),
            deleted: BTreeMap::new(),
            open: Vec::new(),
            open_reports: Vec::new(),
            evictions: Evictions::default(),
            decided: Vec::new(),
        }
    }

    pub fn run(steps: &[Step]) -> Vec<(String, String)> {
        let mut history = Self::new();
        for step in steps {
            history.apply(step);
            history.nothing_is_over_its_limit();
            history.every_nomination_can_be_of_use();
        }
        history.settle();
        history.no_nomination_is_left();
        history.no_pod_that_fits_is_left_waiting();
        history.every_pod_is_counted_once();
        history.nothing_is_left_of_pods_that_are_gone();
        history.decided
    }

    pub fn apply(&mut self, step: &Step) {
        let name = |number: &u8| format!("p{number}");
        match step {
            Step::Pod { number, cpu, asks, priority } => {
                let mut pod = PodBuilder::new(&name(number))
                    .uid(&self.uid(*number))
                    .cpu_milli(*cpu)
                    .priority(*priority);
                for (number, amount) in asks.iter().flatten() {
                    let (name, amount) = (format!("o{number}"), (*amount > 0).then_some(*amount));
                    pod = if *number < 2 {
                        pod.needs(&name, amount)
                    } else {
                        pod.needs_bundle(&name, amount)
                    };
                }
                self.world.see(pod.build());
            }
            Step::PodGone(number) => {
                self.pod_has_gone(&self.uid(*number).as_str().into());
            }
            Step::PodFinished(number) => self.reassign(*number, Assignment::Finished),
            Step::PodTurnedAway(number) => {
                let pod = self.uid(*number).as_str().into();
                self.world.handle(Event::KubeletRejected { pod, why: "OutOfcpu".into() });
                self.reassign(*number, Assignment::Finished);
            }
            Step::PodRests(number) => self.reassign(*number, Assignment::Leaving),
            Step::Reports { outcomes } => self.report(outcomes),
            Step::Object { number, achievable, phase, floor } => {
                let entry = self.generations.entry(*number).or_insert((0, 0));
                if entry.1 != *floor {
                    *entry = (entry.0 + 1, *floor);
                }
                let phase = if *phase { Phase::Ready } else { Phase::Degraded };
                let name = format!("o{number}");
                let mut built = if *number < 2 {
                    CorridorBuilder::new(&name, *floor)
                } else {
                    CorridorBuilder::bundle(&name, *floor)
                };
                if *number == 3 {
                    built = built.exclusive();
                }
                let object =
                    built.generation(entry.0).phase(phase).achievable(f64::from(*achievable));
                self.world.corridor(object);
            }
            Step::ObjectGone(number) => {
                self.world.handle(Event::gone(object(*number)));
            }
            Step::Node { number, cpu } => {
                let node = NodeBuilder::new(&format!("n{number}")).cpu_milli(*cpu).build();
                self.world.handle(Event::seen(node));
            }
            Step::NodeGone(number) => {
                self.world.handle(Event::gone(NodeName::from(format!("n{number}").as_str())));
            }
            Step::Backend => self.backends_speak(),
            Step::Pass(seconds) => self.world.pass(Duration::from_secs(u64::from(*seconds))),
            Step::Bind { outcomes } => self.bind(outcomes),
            Step::Evictions { outcomes } => self.evict(outcomes),
            Step::VictimsEnd => self.victims_end(),
            Step::TermBegan => self.term_begins(),
        }
    }

    fn reassign(&mut self, number: u8, assignment: Assignment) {
        let name = format!("p{number}");
        if self.world.engine.observed.pods.named(&key(&name)).is_some() {
            let pod = PodBuilder::new(&name).uid(&self.uid(number)).assigned(assignment);
            self.world.see(pod.build());
        }
    }

    fn report(&mut self, outcomes: &[u8]) {
        self.take_reports();
        for outcome in outcomes {
            if self.open_reports.is_empty() {
                return;
            }
            let it = self.open_reports.remove(0);
            match outcome {
                0 => self.world.handle(Event::ReportLost(it.uid)),
                1 => self.open_reports.push(it),
                _ => self.written(it),
            }
        }
    }

    pub(super) fn take_reports(&mut self) {
        while let Some(Action::Evict(eviction)) = self.world.poll_action() {
            self.evicts(eviction);
        }
        while let Some(report) = self.world.poll_report() {
            match report {
                Report::Unschedulable(it) => {
                    let open = self.open.iter().any(|open| open.uid == it.uid);
                    assert!(!open, "{} is told that it waits while it is being bound", it.pod);
                    self.open_reports.push(it);
                }
                Report::Used(_) | Report::Scheduled { .. } => {}
            }
        }
    }

    fn backends_speak(&mut self) {
        for kind in ObjectKind::ALL {
            self.world.handle(Event::Seen(Watched::Backend { kind, age: Duration::ZERO }));
        }
    }

    pub(super) fn pod_has_gone(&mut self, uid: &PodUid) {
        self.world.handle(Event::gone(uid.clone()));
        let number = uid.as_str().split_once('-').and_then(|(number, _)| number.parse().ok());
        if let Some(number) = number.filter(|number| self.uid(*number) == uid.as_str()) {
            *self.deleted.entry(number).or_default() += 1;
        }
    }

    fn uid(&self, number: u8) -> String {
        format!("{number}-{}", self.deleted.get(&number).copied().unwrap_or_default())
    }

    fn bind(&mut self, outcomes: &[u8]) {
        let binds = self.world.decide();
        for bind in &binds {
            self.decided.push((bind.pod.to_string(), bind.node.to_string()));
            let open = self.open.iter().any(|open| open.uid == bind.uid);
            assert!(!open, "{} was decided while its Binding is open", bind.pod);
            let told = self.open_reports.iter().any(|it| it.uid == bind.uid);
            assert!(!told, "{} was decided while a report on it is open", bind.pod);
        }
        self.open.extend(binds);
        for outcome in outcomes {
            if self.open.is_empty() {
                return;
            }
            let bind = self.open.remove(0);
            match outcome {
                0 => self.world.handle(refused(bind.uid)),
                1 => {
                    self.world.handle(Event::BindUnclear(bind.uid.clone()));
                    self.open.push(bind);
                }
                _ => self.world.handle(Event::BindDone(bind.uid)),
            }
        }
    }

    /// Everything open is answered, corrd speaks, back-offs pass.
    pub fn settle(&mut self) {
        for _ in 0..40 {
            self.backends_speak();
            self.report(&[2; 64]);
            self.evict(&[7; 64]);
            self.victims_end();
            self.bind(&[2; 64]);
            self.world.pass(Duration::from_secs(11));
        }
        self.backends_speak();
        self.bind(&[2; 64]);
        assert!(self.open.is_empty());
    }

    /// Counted from the Pods themselves, not from the ledger. What shrank under the Pods on it
    /// (a Node, a floor) is no fault; taking on more there would be.
    fn nothing_is_over_its_limit(&self) {
        let engine = &self.world.engine;
        let mut cpu: BTreeMap<String, i64> = BTreeMap::new();
        let mut gbps: BTreeMap<String, Amount> = BTreeMap::new();
        for record in engine.observed.pods.values() {
            let Some(reservation) = &record.reservation else { continue };
            *cpu.entry(reservation.node.to_string()).or_default() +=
                record.pod.spec.scheduling.requests.effective.cpu_milli;
            for granted in &reservation.granted {
                let sum = gbps.entry(granted.uid.to_string()).or_default();
                *sum = sum.saturating_add(granted.amount);
            }
        }
        for (node, used) in &cpu {
            let name = node.as_str().into();
            let on_node = engine.observed.cluster.pods_on(&name);
            let counted: i64 = on_node.map(|pod| pod.requests.effective.cpu_milli).sum();
            assert_eq!(counted, *used, "what the Pods on {node} hold");
        }
        for (object, used) in &gbps {
            assert_eq!(engine.ledger.reserved(&object.as_str().into()), *used, "{object}");
            assert!(*used <= Amount::from_whole(100), "{object} has promised {used}");
        }
        let sole = engine.ledger.object(&"uid-o3".into()).map_or(0, |used| used.users.len());
        assert!(sole <= 1, "{sole} Pods share what is not shareable");
    }

    fn nothing_is_left_of_pods_that_are_gone(&mut self) {
        let pods = self.world.engine.observed.pods.sorted().into_iter();
        let pods: Vec<PodUid> = pods.map(|(uid, _)| uid.clone()).collect();
        for pod in pods {
            self.world.handle(Event::gone(pod));
        }
        let engine = &self.world.engine;
        assert_eq!(engine.observed.objects.with_queues(), [], "lines in which nobody stands");
        assert_eq!(engine.stats().active, 0);
        assert!(engine.ledger.is_empty(), "{:?}", engine.ledger);
        assert!(engine.observed.cluster.pods().is_empty(), "{:?}", engine.observed.cluster.pods());
        assert_eq!(engine.stats().woken_by_sweep, 0, "every wake-up has its event");
    }

    fn no_pod_that_fits_is_left_waiting(&self) {
        let engine = &self.world.engine;
        for record in engine.observed.pods.values().filter(|record| record.stage.is_waiting()) {
            let explanation = engine.explain(&record.pod.key).unwrap();
            assert_ne!(explanation.state, "active");
            let kept = explanation.message.contains("kept for");
            assert!(
                explanation.dominant.is_some() || kept,
                "{} waits as {:?}, but: {}",
                record.pod.key,
                record.stage,
                explanation.message
            );
        }
    }

    fn every_pod_is_counted_once(&self) {
        let engine = &self.world.engine;
        let mut stats = engine.stats();
        let total: usize = [
            Stage::Gated,
            Stage::Finished,
            Stage::Active,
            Stage::Backoff,
            Stage::Parked,
            Stage::InQueue(Box::new(object(0))),
            Stage::OnHold,
            Stage::Blocked(Box::new(object(0))),
            Stage::Binding(BindingStep::SENT),
            Stage::Bound,
        ]
        .iter()
        .map(|stage| *stats.of_stage(stage))
        .sum();
        assert_eq!(total, engine.observed.pods.len());
        let in_queues: usize = (0..4)
            .filter_map(|number| engine.observed.objects.queue(&object(number)))
            .map(crate::queue::BandwidthQueue::len)
            .sum();
        assert_eq!(in_queues, stats.in_queue);
    }
}

proptest! {
    #[test]
    fn random_histories_keep_every_promise(steps in prop::collection::vec(step(), 1..120)) {
        let first = History::run(&steps);
        let second = History::run(&steps);
        prop_assert_eq!(first, second, "the same events give the same decisions");
    }
}
