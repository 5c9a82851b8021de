//! A Pod that fits nowhere is woken if and only if the plain rules say that its rejection may have
//! changed: for random clusters, random Pods and random events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::{
    Assignment, Effect, HostPort, LabelSelector, Labels, NodeName, Pod, PodAffinityTerm, PodUid,
    Taint, Toleration, TolerationOperator, TopologySpreadConstraint, WhenUnsatisfiable,
};
use proptest::prelude::*;
use rules::{Chances, Cluster, rejection_may_have_changed};

use super::World;
use crate::queue::ParkKey;
use crate::record::Stage;
use crate::testkit::{NodeBuilder, PodBuilder};
use crate::{Action, ClusterObject, Event, Report, Watched, WatchedId};

/// What a Pod wants of others, and how much it takes.
#[derive(Clone, Debug)]
struct Wish {
    cpu: i64,
    priority: i32,
    app: u8,
    rule: u8,
    term_app: u8,
    zone: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Node {
        number: u8,
        cpu: i64,
        zone: u8,
        tainted: bool,
    },
    NodeGone(u8),
    /// On a Node already.
    Placed {
        number: u8,
        node: u8,
        wish: Wish,
    },
    Waiting {
        number: u8,
        wish: Wish,
    },
    Gone(u8),
    Foreign {
        node: Option<u8>,
        cpu: i64,
        priority: i32,
    },
    NamespaceLabel(u8),
    Decide,
    Pass(u8),
}

fn wish() -> impl Strategy<Value = Wish> {
    (1..25_i64, 0..3_i32, 0..3_u8, 0..8_u8, 0..3_u8, any::<bool>()).prop_map(
        |(cpu, priority, app, rule, term_app, zone)| Wish {
            cpu: cpu * 200,
            priority,
            app,
            rule,
            term_app,
            zone,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_u8, 5..25_i64, 0..3_u8, any::<bool>()).prop_map(|(number, cpu, zone, tainted)| {
            Step::Node { number, cpu: cpu * 200, zone, tainted: tainted && number == 0 }
        }),
        1 => (0..4_u8).prop_map(Step::NodeGone),
        4 => (0..12_u8, 0..4_u8, wish())
            .prop_map(|(number, node, wish)| Step::Placed { number, node, wish }),
        5 => (12..30_u8, wish()).prop_map(|(number, wish)| Step::Waiting { number, wish }),
        4 => (0..30_u8).prop_map(Step::Gone),
        1 => (prop::option::of(0..4_u8), 1..20_i64, 0..3_i32).prop_map(|(node, cpu, priority)| {
            Step::Foreign { node, cpu: cpu * 200, priority }
        }),
        1 => (0..3_u8).prop_map(Step::NamespaceLabel),
        3 => Just(Step::Decide),
        2 => (0..20_u8).prop_map(Step::Pass),
    ]
}

fn app(number: u8) -> Labels {
    [("app".into(), format!("a{number}").into())].into()
}

/// Whether Pods that ask for the same are of one class, or each of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Classes {
    Shared,
    Own,
}

fn pod(number: u8, generation: u32, wish: &Wish, classes: Classes) -> PodBuilder {
    let topology = if wish.zone { "zone" } else { "host" };
    let own = "team-a".into();
    let selector = LabelSelector::of_labels(&app(wish.term_app));
    let namespaces = (wish.rule == 7).then(|| LabelSelector::of_labels(&app(0)));
    let term = || {
        let none = BTreeSet::new();
        PodAffinityTerm::new(&own, topology, selector.clone(), none, namespaces.clone())
    };
    let hard = WhenUnsatisfiable::DoNotSchedule;
    let pod = PodBuilder::new(&format!("p{number}")).uid(&format!("uid-p{number}-{generation}"));
    let cpu = match classes {
        Classes::Shared => (wish.cpu / 1600 + 1) * 1600,
        Classes::Own => wish.cpu,
    };
    let pod = pod.cpu_milli(cpu).priority(wish.priority).label("app", &format!("a{}", wish.app));
    // No selector reads it.
    let pod = pod.label("pod", &format!("{number}-{generation}"));
    let pod = match classes {
        Classes::Shared => pod,
        // A few bytes more or less make no difference to any Node.
        Classes::Own => pod.scheduling(|spec| {
            let bytes = i64::from(number) + 100 * i64::from(generation);
            spec.requests.asked.memory_bytes += bytes;
            spec.requests.effective.memory_bytes += bytes;
        }),
    };
    pod.scheduling(|spec| match wish.rule {
        0 => spec.pod_affinity.required.push(term()),
        1 | 7 => spec.pod_affinity.anti_required.push(term()),
        2 => spec.topology_spread.push(TopologySpreadConstraint::new(
            topology,
            1,
            hard,
            LabelSelector::of_labels(&app(wish.app)),
        )),
        3 => spec.host_ports.extend(HostPort::new("", "", 80)),
        4 => drop(spec.node_selector.insert("zone".into(), format!("z{}", wish.term_app).into())),
        5 => spec.tolerations.push(Toleration {
            key: "k".into(),
            operator: TolerationOperator::Exists,
            value: "".into(),
            effect: None,
        }),
        _ => {}
    })
}

struct History {
    world: World,
    generations: BTreeMap<u8, u32>,
    classes: Classes,
}

impl History {
    fn run(steps: &[Step], classes: Classes) -> usize {
        let (world, generations) = (World::with_nodes(0), BTreeMap::new());
        let (mut history, mut wakings) = (Self { world, generations, classes }, 0);
        for (number, step) in steps.iter().enumerate() {
            if number == steps.len() / 2 {
                history.world.gets_a_twin();
            }
            wakings += history.apply(step);
            history.the_index_knows_all_that_is_parked();
        }
        history.settle();
        history.no_pod_that_fits_is_left_waiting();
        history.world.twin_is_the_same();
        assert_eq!(history.world.engine.stats().woken_by_sweep, 0, "every wake-up has its event");
        wakings
    }

    fn the_index_knows_all_that_is_parked(&self) {
        let engine = &self.world.engine;
        let filed: Vec<_> = engine.queues.wake_index.classes().collect();
        assert_eq!(filed, engine.queues.parked.classes().collect::<Vec<_>>());
        for class in filed {
            let has_chance =
                engine.queues.parked.chances(class).is_some_and(|it| *it != Chances::default());
            assert!(!has_chance || engine.queues.wake_index.placeable().any(|it| it == class));
        }
    }

    /// Every Pod is tried until nothing more happens.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.world.pass(Duration::from_secs(11));
            self.world.bind_all();
            self.answer_reports();
        }
    }

    fn no_pod_that_fits_is_left_waiting(&self) {
        let engine = &self.world.engine;
        for record in engine.observed.pods.values().filter(|record| record.stage == Stage::Parked) {
            let spec = &record.pod.spec;
            let waits = record.nominated.is_some();
            assert!(waits || !engine.fits_some_node(spec), "{} fits", record.pod.key);
        }
    }

    /// How many Pods were woken.
    fn apply(&mut self, step: &Step) -> usize {
        let event = match step {
            Step::Decide => {
                self.world.bind_all();
                self.answer_reports();
                return 0;
            }
            Step::Pass(seconds) => {
                self.world.pass(Duration::from_secs(u64::from(*seconds)));
                return 0;
            }
            Step::Node { number, cpu, zone, tainted } => {
                let name = format!("n{number}");
                let mut node = NodeBuilder::new(&name)
                    .cpu_milli(*cpu)
                    .label("host", &name)
                    .label("zone", &format!("z{zone}"));
                if *tainted {
                    let (key, value) = ("k".into(), "v".into());
                    node = node.taint(Taint { key, value, effect: Effect::NoSchedule });
                }
                Event::seen(node.build())
            }
            Step::NodeGone(number) => Event::gone(NodeName::from(format!("n{number}").as_str())),
            Step::Placed { number, node, wish } => {
                let node = format!("n{node}").as_str().into();
                let assignment = Assignment::Bound { node, grant: None };
                Event::seen(self.pod(*number, wish).assigned(assignment).build())
            }
            Step::Waiting { number, wish } => Event::seen(self.pod(*number, wish).build()),
            Step::Gone(number) => {
                let uid = self.uid(*number);
                *self.generations.entry(*number).or_default() += 1;
                Event::gone(uid)
            }
            Step::Foreign { node, cpu, priority } => {
                let pod = PodBuilder::new("foreign").cpu_milli(*cpu).priority(*priority);
                let pod = match node {
                    Some(node) => pod.nominated(&format!("n{node}")),
                    None => pod,
                };
                Event::seen(pod.assigned(Assignment::Foreign).build())
            }
            Step::NamespaceLabel(number) => {
                Event::seen(ClusterObject::Namespace("team-a".into(), app(*number)))
            }
        };
        self.judged(&event)
    }

    fn pod(&self, number: u8, wish: &Wish) -> PodBuilder {
        let generation = self.generations.get(&number).copied().unwrap_or_default();
        pod(number, generation, wish, self.classes)
    }

    fn uid(&self, number: u8) -> PodUid {
        let generation = self.generations.get(&number).copied().unwrap_or_default();
        format!("uid-p{number}-{generation}").as_str().into()
    }

    /// Victims are let go, and each report is written.
    fn answer_reports(&mut self) {
        while let Some(Action::Evict(eviction)) = self.world.poll_action() {
            let (victim, step) = (eviction.uid, eviction.step);
            self.world.handle(Event::EvictionStepDone { victim, step });
        }
        while let Some(report) = self.world.poll_report() {
            match report {
                Report::Unschedulable(it) => self.world.handle(Event::ReportWritten(it.uid)),
                Report::Used(_) | Report::Scheduled { .. } => {}
            }
        }
    }

    fn judged(&mut self, event: &Event) -> usize {
        // What time alone brings about comes first.
        let changes = about(event);
        self.world.poll(crate::Work { attempts_max: 0, nodes_max: 0 });
        let before = self.world.engine.observed.cluster.clone();
        let parked = self.parked();
        let had_one_awake: Vec<bool> = parked
            .iter()
            .map(|(_, key)| {
                let group = self.world.engine.queues.parked.group(key);
                group.is_some_and(|group| group.awake.is_some())
            })
            .collect();
        let nominated = self.nominated();
        self.world.handle(event.clone());
        let after = self.world.engine.observed.cluster.clone();
        let engine = &self.world.engine;
        // A nomination that does not help any more is withdrawn: its Pod is tried again, and what it held is judged
        // as a change of its own.
        let is_withdrawn = |uid: &PodUid, key: &ParkKey| {
            let record = engine.observed.pods.get(uid);
            key.nominated.is_some() && record.is_some_and(|it| it.nominated.is_none())
        };
        let frees = nominated.difference(&self.nominated()).next().is_some();
        let is_woken = |uid: &PodUid| {
            matches!(engine.observed.pods[uid].stage, Stage::Active | Stage::Backoff)
        };
        let mut woken = 0;
        for ((uid, key), had_one_awake) in parked.iter().zip(had_one_awake) {
            if Some(uid) == changes {
                continue;
            }
            let pod = engine.pod_to_place(&ParkKey { scheduling: self.spec(uid), ..key.clone() });
            let expected = is_withdrawn(uid, key) || self.expected(&before, &after, &pod);
            let may_be_woken = expected || frees;
            woken += usize::from(is_woken(uid));
            if self.classes == Classes::Own {
                let is_woken = is_woken(uid);
                assert!(!expected || is_woken, "{uid} is left waiting after {event:?}: {pod:?}");
                assert!(!is_woken || may_be_woken, "{uid} is woken after {event:?}: {pod:?}");
                continue;
            }
            // One of a class is woken, the others follow it. A Pod that is new to a class is tried with it.
            let alike = parked
                .iter()
                .filter(|(other, other_key)| other_key == key && Some(other) != changes);
            let is_one_woken = alike.clone().any(|(other, _)| is_woken(other));
            assert!(
                !expected || is_one_woken || had_one_awake || alike.count() == 0,
                "none of the class of {uid} after {event:?}: {pod:?}"
            );
            assert!(
                may_be_woken || !is_woken(uid) || had_one_awake,
                "{uid} after {event:?}: {pod:?}"
            );
        }
        woken
    }

    /// Pods, and the Nodes that they are nominated to.
    fn nominated(&self) -> BTreeSet<(PodUid, NodeName)> {
        let pods = self.world.engine.observed.pods.values();
        pods.filter_map(|it| Some((it.pod.uid.clone(), it.nominated_node()?.clone()))).collect()
    }

    /// With all labels, also those that do not count.
    fn spec(&self, uid: &PodUid) -> Arc<model::SchedulingSpec> {
        self.world.engine.observed.pods[uid].pod.spec.scheduling.clone()
    }

    fn expected(&self, before: &Cluster, after: &Cluster, pod: &model::ClusterPod) -> bool {
        rejection_may_have_changed(
            self.world.engine.rules_of(crate::testkit::PROFILE),
            before,
            after,
            pod,
        )
    }

    fn parked(&self) -> Vec<(PodUid, ParkKey)> {
        let pods = self.world.engine.observed.pods.sorted().into_iter();
        pods.filter_map(|(uid, record)| Some((uid.clone(), record.parked_as.as_deref()?.clone())))
            .collect()
    }
}

/// The Pod that an event is about: a change of its own wakes it whatever the cluster says.
fn about(event: &Event) -> Option<&PodUid> {
    match event {
        Event::Seen(Watched::Pod(Pod { uid, .. })) | Event::Gone(WatchedId::Pod(uid)) => Some(uid),
        _ => None,
    }
}

proptest! {
    #[test]
    fn woken_exactly_when_the_rejection_may_have_changed(
        steps in prop::collection::vec(step(), 20..120)
    ) {
        History::run(&steps, Classes::Own);
    }

    /// Labels that selectors read or do not, and selectors that come and go.
    #[test]
    fn of_each_kind_one_is_woken_when_the_rejection_may_have_changed(
        steps in prop::collection::vec(step(), 20..120)
    ) {
        History::run(&steps, Classes::Shared);
    }
}

#[test]
fn the_histories_do_wake_pods() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 60..120);
    let mut history = || histories.new_tree(&mut runner).unwrap().current();
    let wakings: usize = (0..40).map(|_| History::run(&history(), Classes::Own)).sum();
    assert!(wakings > 100, "{wakings} wake-ups in 40 histories prove little");
}
