//! A Pod that fits nowhere is woken if and only if the oracle says that its rejection may have
//! changed: for random clusters, random Pods and random events.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{
    Assignment, Effect, HostPort, LabelSelector, Labels, Pod, PodAffinityTerm, PodUid, Taint,
    Toleration, TolerationOperator, TopologySpreadConstraint, WhenUnsatisfiable,
};
use oracle::{Cluster, rejection_may_have_changed};
use proptest::prelude::*;

use super::World;
use crate::queue::ParkKey;
use crate::record::Stage;
use crate::testkit::{NodeBuilder, PodBuilder};
use crate::{Event, Report};

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

fn pod(number: u8, generation: u32, wish: &Wish) -> PodBuilder {
    let topology = if wish.zone { "zone" } else { "host" };
    let own = "team-a".into();
    let selector = LabelSelector::of_labels(&app(wish.term_app));
    let namespaces = (wish.rule == 7).then(|| LabelSelector::of_labels(&app(0)));
    let term = || {
        let none = std::collections::BTreeSet::new();
        PodAffinityTerm::new(&own, topology, selector.clone(), none, namespaces.clone())
    };
    let hard = WhenUnsatisfiable::DoNotSchedule;
    let pod = PodBuilder::new(&format!("p{number}")).uid(&format!("uid-p{number}-{generation}"));
    let pod =
        pod.cpu_milli(wish.cpu).priority(wish.priority).label("app", &format!("a{}", wish.app));
    // Every Pod a kind of its own.
    let pod = pod.label("pod", &format!("{number}-{generation}"));
    pod.shaped(|shape| match wish.rule {
        0 => shape.pod_affinity.required.push(term()),
        1 | 7 => shape.pod_affinity.anti_required.push(term()),
        2 => shape.topology_spread.push(TopologySpreadConstraint::new(
            topology,
            1,
            hard,
            LabelSelector::of_labels(&app(wish.app)),
        )),
        3 => shape.host_ports.extend(HostPort::new("", "", 80)),
        4 => drop(shape.node_selector.insert("zone".into(), format!("z{}", wish.term_app).into())),
        5 => shape.tolerations.push(Toleration {
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
}

impl History {
    fn run(steps: &[Step]) -> usize {
        let mut history = Self { world: World::with_nodes(0), generations: BTreeMap::new() };
        let wakings = steps.iter().map(|step| history.apply(step)).sum();
        assert_eq!(history.world.engine.stats().woken_by_sweep, 0, "every wake-up has its event");
        wakings
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
                Event::NodeSeen(node.build())
            }
            Step::NodeGone(number) => Event::NodeGone(format!("n{number}").as_str().into()),
            Step::Placed { number, node, wish } => {
                let node = format!("n{node}").as_str().into();
                let assignment = Assignment::Bound { node, grant: None };
                Event::PodSeen(self.pod(*number, wish).assigned(assignment).build())
            }
            Step::Waiting { number, wish } => Event::PodSeen(self.pod(*number, wish).build()),
            Step::Gone(number) => {
                let uid = self.uid(*number);
                *self.generations.entry(*number).or_default() += 1;
                Event::PodGone(uid)
            }
            Step::Foreign { node, cpu, priority } => {
                let pod = PodBuilder::new("foreign").cpu_milli(*cpu).priority(*priority);
                let pod = match node {
                    Some(node) => pod.nominated(&format!("n{node}")),
                    None => pod,
                };
                Event::PodSeen(pod.assigned(Assignment::Foreign).build())
            }
            Step::NamespaceLabel(number) => {
                Event::NamespaceSeen { name: "team-a".into(), labels: app(*number) }
            }
        };
        self.judged(&event)
    }

    fn pod(&self, number: u8, wish: &Wish) -> PodBuilder {
        pod(number, self.generations.get(&number).copied().unwrap_or_default(), wish)
    }

    fn uid(&self, number: u8) -> PodUid {
        let generation = self.generations.get(&number).copied().unwrap_or_default();
        format!("uid-p{number}-{generation}").as_str().into()
    }

    /// Victims are let go, and each report is written.
    fn answer_reports(&mut self) {
        while let Some(report) = self.world.engine.poll_report() {
            match report {
                Report::Held(held) => self.world.handle(Event::ReportWritten(held.uid)),
                Report::Evict(eviction) => {
                    let (victim, step) = (eviction.uid, eviction.step);
                    self.world.handle(Event::EvictionStepDone { victim, step });
                }
                Report::Used(_) | Report::Scheduled { .. } => {}
            }
        }
    }

    fn judged(&mut self, event: &Event) -> usize {
        // What time alone brings about comes first.
        let changes = about(event);
        let now = self.world.now;
        self.world.engine.poll(now, crate::Work { attempts_max: 0, nodes_max: 0 });
        let before = self.world.engine.cluster.clone();
        let parked = self.parked();
        self.world.handle(event.clone());
        let after = self.world.engine.cluster.clone();
        // A nomination that does not help any more is withdrawn: its Pod is tried again, and what it held is judged
        // as a change of its own.
        let is_withdrawn = |uid: &PodUid, kind: &ParkKey| {
            let record = self.world.engine.pods.get(uid);
            kind.nominated.is_some() && record.is_some_and(|it| it.nominated.is_none())
        };
        let withdrawn: Vec<PodUid> = parked
            .iter()
            .filter(|(uid, kind)| is_withdrawn(uid, kind))
            .map(|(uid, _)| uid.clone())
            .collect();
        let mut woken = 0;
        for (uid, kind) in parked.into_iter().filter(|(uid, _)| Some(uid) != changes.as_ref()) {
            let engine = &self.world.engine;
            let pod = engine.asking(&kind);
            let stage = &engine.pods[&uid].stage;
            let is_woken = matches!(stage, Stage::Active | Stage::Backoff);
            let expected = withdrawn.contains(&uid) || self.expected(&before, &after, &pod);
            let may_be_woken = expected || !withdrawn.is_empty();
            assert!(!expected || is_woken, "{uid} is left waiting after {event:?}: {pod:?}");
            assert!(!is_woken || may_be_woken, "{uid} is woken after {event:?}: {pod:?}");
            woken += usize::from(is_woken);
        }
        woken
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
        let pods = self.world.engine.pods.sorted().into_iter();
        pods.filter_map(|(uid, record)| Some((uid.clone(), record.parked_as.as_deref()?.clone())))
            .collect()
    }
}

/// The Pod that an event is about: a change of its own wakes it whatever the cluster says.
fn about(event: &Event) -> Option<PodUid> {
    match event {
        Event::PodSeen(Pod { uid, .. }) | Event::PodGone(uid) => Some(uid.clone()),
        _ => None,
    }
}

proptest! {
    #[test]
    fn woken_exactly_when_the_rejection_may_have_changed(
        steps in prop::collection::vec(step(), 20..120)
    ) {
        History::run(&steps);
    }
}

#[test]
fn the_histories_do_wake_somebody() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 60..120);
    let wakings: usize =
        (0..40).map(|_| History::run(&histories.new_tree(&mut runner).unwrap().current())).sum();
    assert!(wakings > 100, "{wakings} wake-ups in 40 histories prove little");
}
