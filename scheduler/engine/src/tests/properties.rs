//! Random histories: nothing is ever over its limit, nobody who fits is left waiting, and the
//! same history gives the same decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Assignment, CorridorPhase, Gbps};
use proptest::prelude::*;

use super::World;
use crate::record::Stage;
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder, key};
use crate::{Bind, Event, Refusal};

#[derive(Clone, Debug)]
enum Step {
    Pod {
        number: u8,
        cpu: i64,
        asks: Option<(u8, u32)>,
        priority: i32,
    },
    PodGone(u8),
    PodFinished(u8),
    Corridor {
        number: u8,
        achievable: u8,
        phase: bool,
        floor: u32,
    },
    CorridorGone(u8),
    Node {
        number: u8,
        cpu: i64,
    },
    NodeGone(u8),
    Backend,
    Pass(u8),
    /// Decides this many, then lets each Binding succeed, fail or stay open.
    Bind {
        outcomes: Vec<u8>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..24_u8, 1..40_i64, prop::option::of((0..2_u8, 0..120_u32)), 0..3_i32).prop_map(
            |(number, cpu, asks, priority)| Step::Pod { number, cpu: cpu * 100, asks, priority }
        ),
        2 => (0..24_u8).prop_map(Step::PodGone),
        1 => (0..24_u8).prop_map(Step::PodFinished),
        3 => (0..2_u8, 0..130_u8, any::<bool>(), prop::sample::select(vec![50_u32, 100])).prop_map(
            |(number, achievable, phase, floor)| Step::Corridor { number, achievable, phase, floor }
        ),
        1 => (0..2_u8).prop_map(Step::CorridorGone),
        2 => (0..4_u8, 1..50_i64).prop_map(|(number, cpu)| Step::Node { number, cpu: cpu * 100 }),
        1 => (0..4_u8).prop_map(Step::NodeGone),
        2 => Just(Step::Backend),
        2 => (0..20_u8).prop_map(Step::Pass),
        5 => prop::collection::vec(0..4_u8, 0..8).prop_map(|outcomes| Step::Bind { outcomes }),
    ]
}

/// A history under way, with what an onlooker knows of it.
struct History {
    world: World,
    generations: BTreeMap<u8, (i64, u32)>,
    /// How often each Pod was deleted: its successor has another UID.
    deleted: BTreeMap<u8, u32>,
    open: Vec<Bind>,
    decided: Vec<(String, String)>,
}

impl History {
    fn run(steps: &[Step]) -> Vec<(String, String)> {
        let world = World::with_nodes(2);
        let mut history = Self {
            world,
            generations: BTreeMap::new(),
            deleted: BTreeMap::new(),
            open: Vec::new(),
            decided: Vec::new(),
        };
        for step in steps {
            history.apply(step);
            history.nothing_is_over_its_limit();
        }
        history.settle();
        history.nobody_who_fits_is_left_waiting();
        history.every_pod_is_counted_once();
        history.decided
    }

    fn apply(&mut self, step: &Step) {
        let name = |number: &u8| format!("p{number}");
        match step {
            Step::Pod { number, cpu, asks, priority } => {
                let mut pod = PodBuilder::new(&name(number))
                    .uid(&self.uid(*number))
                    .cpu_milli(*cpu)
                    .priority(*priority);
                if let Some((corridor, gbps)) = asks {
                    let amount = (*gbps > 0).then_some(*gbps);
                    pod = pod.needs(&format!("c{corridor}"), amount);
                }
                self.world.see(pod.build());
            }
            Step::PodGone(number) => {
                self.world.handle(Event::PodGone(self.uid(*number).as_str().into()));
                *self.deleted.entry(*number).or_default() += 1;
            }
            Step::PodFinished(number) => {
                let known = self.world.engine.uids.contains_key(&key(&name(number)));
                if known {
                    let pod = PodBuilder::new(&name(number))
                        .uid(&self.uid(*number))
                        .assigned(Assignment::Finished);
                    self.world.see(pod.build());
                }
            }
            Step::Corridor { number, achievable, phase, floor } => {
                let entry = self.generations.entry(*number).or_insert((0, 0));
                if entry.1 != *floor {
                    *entry = (entry.0 + 1, *floor);
                }
                let phase = if *phase { CorridorPhase::Ready } else { CorridorPhase::Degraded };
                let corridor = CorridorBuilder::new(&format!("c{number}"), *floor)
                    .generation(entry.0)
                    .phase(phase)
                    .achievable(f64::from(*achievable));
                self.world.corridor(corridor);
            }
            Step::CorridorGone(number) => {
                self.world.handle(Event::CorridorGone(key(&format!("c{number}"))));
            }
            Step::Node { number, cpu } => {
                let node = NodeBuilder::new(&format!("n{number}")).cpu_milli(*cpu).build();
                self.world.handle(Event::NodeSeen(node));
            }
            Step::NodeGone(number) => {
                self.world.handle(Event::NodeGone(format!("n{number}").as_str().into()));
            }
            Step::Backend => self.world.handle(Event::BackendSeen { age: Duration::ZERO }),
            Step::Pass(seconds) => self.world.pass(Duration::from_secs(u64::from(*seconds))),
            Step::Bind { outcomes } => self.bind(outcomes),
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
        }
        self.open.extend(binds);
        for outcome in outcomes {
            if self.open.is_empty() {
                return;
            }
            let bind = self.open.remove(0);
            match outcome {
                0 => {
                    let refusal = Refusal { message: "conflict".into() };
                    self.world.handle(Event::BindRefused { pod: bind.uid, refusal });
                }
                1 => {
                    self.world.handle(Event::BindUnknown(bind.uid.clone()));
                    self.open.push(bind);
                }
                _ => self.world.handle(Event::BindDone(bind.uid)),
            }
        }
    }

    /// Everything open is answered, corrd speaks, back-offs pass.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.world.handle(Event::BackendSeen { age: Duration::ZERO });
            self.bind(&[2; 64]);
            self.world.pass(Duration::from_secs(11));
        }
        self.world.handle(Event::BackendSeen { age: Duration::ZERO });
        self.bind(&[2; 64]);
        assert!(self.open.is_empty());
    }

    /// Counted from the Pods themselves, not from the ledger. What shrank under the Pods on it
    /// (a Node, a floor) is no fault; taking on more there would be.
    fn nothing_is_over_its_limit(&self) {
        let engine = &self.world.engine;
        let mut cpu: BTreeMap<String, i64> = BTreeMap::new();
        let mut gbps: BTreeMap<String, Gbps> = BTreeMap::new();
        for record in engine.pods.values() {
            let Some(holding) = &record.holding else { continue };
            *cpu.entry(holding.node.to_string()).or_default() += holding.shape.requests.cpu_milli;
            if let Some(granted) = &holding.corridor {
                let sum = gbps.entry(granted.uid.to_string()).or_default();
                *sum = sum.saturating_add(granted.amount);
            }
        }
        for (node, used) in &cpu {
            let counted = engine.ledger.node(&node.as_str().into()).unwrap();
            assert_eq!(counted.requests.cpu_milli, *used, "the ledger's sum for {node}");
        }
        for (corridor, used) in &gbps {
            assert_eq!(engine.ledger.reserved(&corridor.as_str().into()), *used, "{corridor}");
            assert!(*used <= Gbps::from_whole(100), "{corridor} has promised {used} Gbps");
        }
    }

    fn nobody_who_fits_is_left_waiting(&self) {
        let engine = &self.world.engine;
        for record in engine.pods.values().filter(|record| record.stage.is_waiting()) {
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
            Stage::Resting,
            Stage::Finished,
            Stage::Active,
            Stage::Backoff,
            Stage::Parked,
            Stage::InLine(key("c")),
            Stage::Held,
            Stage::Binding { outcome_unclear: false },
            Stage::Bound("n".into()),
        ]
        .iter()
        .map(|stage| *stats.of_stage(stage))
        .sum();
        assert_eq!(total, engine.pods.len());
        let in_lines: usize = ["c0", "c1"]
            .iter()
            .filter_map(|corridor| engine.corridors.line(&key(corridor)))
            .map(crate::line::Line::len)
            .sum();
        assert_eq!(in_lines, stats.in_line);
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
