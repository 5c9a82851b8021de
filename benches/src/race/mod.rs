//! kube-scheduler, corridor-scheduler and a client that only binds, on the same API server, one after the
//! other, several rounds. How it is kept fair is described in `README.md`.

pub(crate) mod api;
pub mod bind_only;
mod binders;
mod chart;
mod contestant;
mod course;
mod drain;
mod histogram;
mod report;
mod sightings;
mod spread;
mod steady;
mod table;
mod wire;

use std::time::Duration;

use e2e::Result;
use e2e::binaries::say;

use contestant::Contestant;
use course::Course;
use drain::{Drained, drain};
pub use report::{Checks, Ratios, Report, Standing};
pub(crate) use sightings::Sightings;
pub use spread::Spread;
pub(crate) use wire::Wire;

use crate::machine::Machine;
use crate::workload::Workload;

/// The steady load, as a share of what the client that only binds reached in the same round: three of them
/// side by side would still fit.
const STEADY_SHARE: f64 = 0.3;

#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub rounds: usize,
    /// How long Pods come at a steady rate after each backlog; zero = not at all.
    pub steady: Duration,
    /// Else it is only about the limit, and a round takes a fraction of the time.
    pub with_kube_scheduler: bool,
}

/// Runs the race on a control plane of its own.
pub async fn run(workload: Workload, plan: Plan) -> Result<Report> {
    let machine = Machine::here();
    let course = Course::lay_out(workload).await?;
    let mut rounds = Vec::new();
    for round in 1..=plan.rounds {
        let mut limit = 0.0;
        let with_kube_scheduler = plan.with_kube_scheduler && !course.workload.ours_only;
        for contestant in order(round, with_kube_scheduler, plan.steady.is_zero()) {
            let drained = one(&course, round, contestant, limit, plan.steady).await?;
            say(&told(&drained));
            if contestant == Contestant::BindOnly {
                limit = drained.pods_per_second;
            }
            rounds.push(drained);
        }
    }
    Ok(Report::new(&course.workload, machine, rounds))
}

/// The limit first when there is a steady load, which is a share of it, and the two schedulers take turns in coming first;
/// without one, all take turns.
fn order(round: usize, with_kube_scheduler: bool, all_take_turns: bool) -> Vec<Contestant> {
    use Contestant::{BindOnly, CorridorScheduler, KubeScheduler};
    let mut order = vec![BindOnly, KubeScheduler, CorridorScheduler];
    order.retain(|it| with_kube_scheduler || *it != KubeScheduler);
    let taking_turns = if all_take_turns { &mut order[..] } else { &mut order[1..] };
    taking_turns.rotate_left((round - 1) % taking_turns.len());
    order
}

async fn one(
    course: &Course,
    round: usize,
    contestant: Contestant,
    limit: f64,
    steady: Duration,
) -> Result<Drained> {
    course.prepare(contestant).await?;
    let (mut drained, running) = drain(course, round, contestant).await?;
    if contestant.writes_events() && !steady.is_zero() {
        course.clear().await?;
        let rate = limit * STEADY_SHARE;
        let kept_up = steady::keep_up(course, contestant, &running, rate, steady).await?;
        drained.steady = Some(kept_up);
    }
    running.stop(&course.admin).await?;
    Ok(drained)
}

fn told(drained: &Drained) -> String {
    let steady = drained.steady.as_ref().map_or_else(String::new, |it| {
        format!("; at {:.0}/s p50 {:.1} ms, p99 {:.1} ms", it.per_second, it.p50_ms, it.p99_ms)
    });
    format!(
        "round {}, {}: {:.0} Pods/s ({:.0} with Events), CPU {:.2} s, {:.0} MiB{steady}",
        drained.round,
        drained.contestant.name(),
        drained.pods_per_second,
        drained.pods_per_second_with_events.unwrap_or(0.0),
        drained.cpu_seconds,
        drained.peak_mib,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_can_takes_turns_in_coming_first() {
        use Contestant::{BindOnly, CorridorScheduler, KubeScheduler};
        assert_eq!(order(1, true, false), [BindOnly, KubeScheduler, CorridorScheduler]);
        assert_eq!(order(2, true, false), [BindOnly, CorridorScheduler, KubeScheduler]);
        assert_eq!(order(3, false, false), [BindOnly, CorridorScheduler]);
        assert_eq!(order(2, false, true), [CorridorScheduler, BindOnly]);
        assert_eq!(order(3, true, true), [CorridorScheduler, BindOnly, KubeScheduler]);
        assert_eq!(order(4, true, true), order(1, true, true));
    }
}
