//! Everything that happens in a simulation, and how long each decision took.

use std::time::{Duration, Instant as Clock};

use engine::{Engine, EngineConfig, Event, Poll, WatchedKind, Work};
use model::{Assignment, Instant};

use super::workload::{self, Dice};

/// How large it is to be.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: usize,
    pub pods: usize,
    pub shapes: usize,
    pub seed: u64,
}

/// What came out.
#[derive(Debug)]
pub struct Course {
    pub placed: usize,
    /// To tell the engine of all Nodes and Pods.
    pub arrival: Duration,
    /// From the first decision to the last, with what the API server would tell of each.
    pub placing: Duration,
    /// Each decision, in nanoseconds, sorted.
    pub decisions_ns: Vec<u32>,
    pub bytes_before: u64,
    pub bytes_with_nodes: u64,
    pub bytes_with_pods: u64,
}

impl Course {
    /// How long a decision took that this share of them did not exceed.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    pub fn percentile_us(&self, share: f64) -> f64 {
        let index = (self.decisions_ns.len() as f64 * share) as usize;
        let last = self.decisions_ns.len().saturating_sub(1);
        self.decisions_ns.get(index.min(last)).map_or(0.0, |nanos| f64::from(*nanos) / 1000.0)
    }
}

/// Attempts in one call; one is what a driver with a free slot asks for.
const WORK: Work = Work { attempts_max: 64, nodes_max: usize::MAX };

pub fn simulate(
    size: Size,
    config: EngineConfig,
    profile: &str,
    resident_bytes: impl Fn() -> u64,
    mut progress: impl FnMut(usize),
) -> Course {
    let mut dice = Dice::new(size.seed);
    let specs = workload::specs(size.shapes.max(1), profile, &mut dice);
    let mut engine = Engine::new(config);
    let now = Instant::START;
    let bytes_before = resident_bytes();
    let began = Clock::now();
    for number in 0..size.nodes {
        engine.handle(now, Event::seen(workload::node(number, &mut dice)));
    }
    let bytes_with_nodes = resident_bytes();
    for number in 0..size.pods {
        let spec = &specs[dice.below(specs.len())];
        engine.handle(now, Event::seen(workload::pod(number, spec, Assignment::Waiting)));
    }
    for kind in WatchedKind::ALL {
        engine.handle(now, Event::Synced(kind));
    }
    let arrival = began.elapsed();
    let mut decisions_ns = Vec::with_capacity(size.pods);
    let began = Clock::now();
    loop {
        let asked = Clock::now();
        let poll = engine.poll(now, WORK);
        let nanos = u32::try_from(asked.elapsed().as_nanos()).unwrap_or(u32::MAX);
        match poll {
            Poll::Bind(bind) => {
                decisions_ns.push(nanos);
                // The reply to the Binding, then what the watch shows of it.
                let node = bind.node.clone();
                engine.handle(now, Event::BindDone(bind.uid.clone()));
                let mut pod = workload::pod(0, &bind.spec, Assignment::Bound { node, grant: None });
                (pod.key, pod.uid) = (bind.pod, bind.uid);
                engine.handle(now, Event::seen(pod));
                // As the driver does behind the Bindings.
                let _ = engine.poll_report();
                progress(decisions_ns.len());
            }
            // No Pod of a simulation has volumes.
            Poll::Prepare(_) | Poll::Yield => {}
            Poll::Idle => break,
        }
    }
    let placing = began.elapsed();
    let placed = decisions_ns.len();
    decisions_ns.sort_unstable();
    let bytes_with_pods = resident_bytes();
    Course {
        placed,
        arrival,
        placing,
        decisions_ns,
        bytes_before,
        bytes_with_nodes,
        bytes_with_pods,
    }
}
