//! What the rounds come to.

use serde::Serialize;

use super::contestant::Contestant;
use super::drain::Drained;
use super::spread::Spread;
use super::steady::Steady;
use crate::machine::Machine;
use crate::workload::Workload;

/// Everything that was seen and what it comes to. Its JSON is read by others: names stay.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub workload: String,
    pub about: String,
    pub nodes: usize,
    pub pods: usize,
    pub machine: Machine,
    pub contestants: Vec<Standing>,
    pub ratios: Ratios,
    pub checks: Checks,
    pub rounds: Vec<Drained>,
}

/// One contestant over all rounds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    pub contestant: Contestant,
    pub pods_per_second: Option<Spread>,
    pub pods_per_second_with_events: Option<Spread>,
    pub cpu_seconds: Option<Spread>,
    pub cpu_ms_per_pod: Option<Spread>,
    /// From the first bind on: without what was read, and tried in vain, before.
    pub cpu_ms_per_pod_under_way: Option<Spread>,
    pub decision_p99_ms: Option<Spread>,
    pub peak_mib: Option<Spread>,
    pub api_server_cpu_seconds: Option<Spread>,
    pub seconds_from_start_to_last_bind: Option<Spread>,
    pub steady_per_second: Option<Spread>,
    /// Of the Pods that came steadily; less than 100: it could not keep up.
    pub steady_bound_percent: Option<Spread>,
    pub steady_p50_ms: Option<Spread>,
    pub steady_p99_ms: Option<Spread>,
}

/// Always of the same round.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ratios {
    pub kube_scheduler_to_limit: Option<Spread>,
    pub corridor_scheduler_to_limit: Option<Spread>,
    pub throughput_to_kube_scheduler: Option<Spread>,
    pub throughput_with_events_to_kube_scheduler: Option<Spread>,
    pub cpu_to_kube_scheduler: Option<Spread>,
    pub peak_memory_to_kube_scheduler: Option<Spread>,
}

/// A race that does not pass them is no race; those that end it at once are not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// All Pods of every round, and none on two Nodes.
    pub every_pod_bound_once: bool,
    /// corridor-scheduler wrote an Event for each Pod, and counts none as dropped.
    pub no_event_dropped: bool,
}

impl Report {
    pub fn new(workload: &Workload, machine: Machine, rounds: Vec<Drained>) -> Self {
        let size = workload.size();
        let mut entered: Vec<Contestant> = rounds.iter().map(|it| it.contestant).collect();
        entered.sort_unstable();
        entered.dedup();
        Self {
            workload: workload.name.clone(),
            about: workload.about.clone(),
            nodes: size.nodes,
            pods: size.pods,
            machine,
            contestants: entered.iter().map(|it| Standing::of(*it, &rounds)).collect(),
            ratios: Ratios::of(&rounds),
            checks: Checks::of(size.pods, &rounds),
            rounds,
        }
    }

    pub fn standing(&self, contestant: Contestant) -> Option<&Standing> {
        self.contestants.iter().find(|it| it.contestant == contestant)
    }
}

impl Standing {
    fn of(contestant: Contestant, rounds: &[Drained]) -> Self {
        let ours: Vec<&Drained> = rounds.iter().filter(|it| it.contestant == contestant).collect();
        let spread = |figure: &dyn Fn(&Drained) -> Option<f64>| {
            Spread::over(ours.iter().filter_map(|it| figure(it)))
        };
        Self {
            contestant,
            pods_per_second: spread(&|it| Some(it.pods_per_second)),
            pods_per_second_with_events: spread(&|it| it.pods_per_second_with_events),
            cpu_seconds: spread(&|it| Some(it.cpu_seconds)),
            cpu_ms_per_pod: spread(&|it| Some(ms_per_pod(it))),
            cpu_ms_per_pod_under_way: spread(&|it| Some(ms_per_pod_under_way(it))),
            decision_p99_ms: spread(&|it| it.decision_p99_ms),
            peak_mib: spread(&|it| Some(it.peak_mib)),
            api_server_cpu_seconds: spread(&|it| Some(it.api_server_cpu_seconds)),
            seconds_from_start_to_last_bind: spread(&|it| Some(it.seconds_from_start_to_last_bind)),
            steady_per_second: spread(&|it| Some(it.steady.as_ref()?.per_second)),
            steady_bound_percent: spread(&|it| it.steady.as_ref().map(Steady::bound_percent)),
            steady_p50_ms: spread(&|it| Some(it.steady.as_ref()?.p50_ms)),
            steady_p99_ms: spread(&|it| Some(it.steady.as_ref()?.p99_ms)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ms_per_pod(drained: &Drained) -> f64 {
    drained.cpu_seconds * 1000.0 / drained.bound.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ms_per_pod_under_way(drained: &Drained) -> f64 {
    let seconds = drained.cpu_seconds - drained.cpu_seconds_until_first_bind;
    seconds * 1000.0 / drained.bound.max(1) as f64
}

impl Ratios {
    fn of(rounds: &[Drained]) -> Self {
        use Contestant::{BindOnly, CorridorScheduler, KubeScheduler};
        let ratio = |of: Contestant, to: Contestant, figure: &dyn Fn(&Drained) -> Option<f64>| {
            let pairs = rounds.iter().filter(|it| it.contestant == of).filter_map(|it| {
                let same = |other: &&Drained| other.round == it.round && other.contestant == to;
                Some(figure(it)? / figure(rounds.iter().find(same)?)?)
            });
            Spread::over(pairs)
        };
        let speed = |it: &Drained| Some(it.pods_per_second);
        Self {
            kube_scheduler_to_limit: ratio(KubeScheduler, BindOnly, &speed),
            corridor_scheduler_to_limit: ratio(CorridorScheduler, BindOnly, &speed),
            throughput_to_kube_scheduler: ratio(CorridorScheduler, KubeScheduler, &speed),
            throughput_with_events_to_kube_scheduler: ratio(
                CorridorScheduler,
                KubeScheduler,
                &|it| it.pods_per_second_with_events,
            ),
            cpu_to_kube_scheduler: ratio(CorridorScheduler, KubeScheduler, &|it| {
                Some(it.cpu_seconds)
            }),
            peak_memory_to_kube_scheduler: ratio(CorridorScheduler, KubeScheduler, &|it| {
                Some(it.peak_mib)
            }),
        }
    }
}

impl Checks {
    fn of(pods: usize, rounds: &[Drained]) -> Self {
        let tells_all = |it: &Drained| it.events == pods && it.reports_dropped == 0.0;
        Self {
            every_pod_bound_once: rounds.iter().all(|it| it.bound == pods),
            no_event_dropped: rounds
                .iter()
                .filter(|it| it.contestant == Contestant::CorridorScheduler)
                .all(tells_all),
        }
    }

    pub fn all_hold(self) -> bool {
        self.every_pod_bound_once && self.no_event_dropped
    }
}
