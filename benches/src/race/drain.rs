//! One contestant, one backlog: from the first bind to the last, and to the last Event.

use std::time::{Duration, Instant};

use e2e::metrics;
use e2e::process_cost::{cpu_seconds, peak_resident_kib};
use e2e::{Error, Result};
use serde::Serialize;
use tokio::time::sleep;

use super::contestant::{Contestant, Running};
use super::course::Course;
use super::histogram::percentile;
use super::sightings::{Seen, Sightings, Span};
use super::steady::Steady;

/// How the names of all Pods begin that are counted.
pub const MEASURED: &str = "measured-";

/// Moments are taken when things are seen; this only delays the end, and the readings of CPU time.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Longer than the longest back-off of any contestant, with room for a busy machine.
const NO_BIND_MAX: Duration = Duration::from_mins(2);
/// Events that have not come by then are not on their way.
const NO_EVENT_MAX: Duration = Duration::from_secs(5);

/// How long decisions took.
const DECISION_SECONDS: &str = "scheduler_scheduling_algorithm_duration_seconds";

/// What one contestant did in one round.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drained {
    pub round: usize,
    pub contestant: Contestant,
    pub bound: usize,
    /// From the first bind to the last.
    pub pods_per_second: f64,
    /// From the first bind to the last Event, if it writes any.
    pub pods_per_second_with_events: Option<f64>,
    pub events: usize,
    /// What the scheduler itself counts as dropped.
    pub reports_dropped: f64,
    pub seconds_from_start_to_first_bind: f64,
    pub seconds_from_start_to_last_bind: f64,
    /// User and system time, from its start until its last Event was written.
    pub cpu_seconds: f64,
    pub cpu_seconds_until_first_bind: f64,
    /// The 99th percentile of the time of one decision, if it tells: the upper end of its bucket.
    pub decision_p99_ms: Option<f64>,
    pub peak_mib: f64,
    pub api_server_cpu_seconds: f64,
    pub etcd_cpu_seconds: f64,
    pub steady: Option<Steady>,
}

/// Lets a contestant bind a backlog that was made while no contestant ran. It is left running.
pub async fn drain(
    course: &Course,
    round: usize,
    contestant: Contestant,
) -> Result<(Drained, Running)> {
    let pods = course.workload.size().pods;
    let sightings = Sightings::start(&course.admin, &course.namespace, MEASURED).await?;
    let servers_before = course.server_cpu_seconds()?;
    let started = Instant::now();
    let running = course.start(contestant).await?;
    let _churn = course.begin_churn(contestant.scheduler_name());

    let until_first = until(&sightings, &running, |seen| seen.bound.len(), 1, NO_BIND_MAX).await?;
    let process = running.process_id()?;
    let cpu_seconds_until_first_bind = cpu_seconds(process)?;
    let bound = match until_first {
        0 => 0,
        _ => until(&sightings, &running, |seen| seen.bound.len(), pods, NO_BIND_MAX).await?,
    };
    if bound < pods {
        return Err(course.too_few(contestant, bound).await);
    }
    let events = if contestant.writes_events() {
        until(&sightings, &running, |seen| seen.events.len(), pods, NO_EVENT_MAX).await?
    } else {
        0
    };
    let servers = course.server_cpu_seconds()?;
    let (binds, told, moved) =
        sightings.look(|seen| (seen.bound_span(), seen.events_span(), seen.moved.clone()))?;
    ensure_bound_once(contestant, &moved)?;
    let scraped = running.metrics().await?;
    let drained = Drained {
        round,
        contestant,
        bound,
        pods_per_second: rate(bound, binds.first, binds.last),
        pods_per_second_with_events: (events > 0)
            .then(|| rate(bound, binds.first, last_of(binds, told))),
        events,
        reports_dropped: metrics::sum(&scraped, "corridor_reports_dropped_total", &[]),
        decision_p99_ms: percentile(&scraped, DECISION_SECONDS, 0.99).map(|seconds| seconds * 1e3),
        seconds_from_start_to_first_bind: since(started, binds.first),
        seconds_from_start_to_last_bind: since(started, binds.last),
        cpu_seconds: cpu_seconds(process)?,
        cpu_seconds_until_first_bind,
        peak_mib: mib(peak_resident_kib(process)?),
        api_server_cpu_seconds: servers[0] - servers_before[0],
        etcd_cpu_seconds: servers[1] - servers_before[1],
        steady: None,
    };
    Ok((drained, running))
}

/// Waits until so many are there, or no more come for `patience`; returns how many there are.
async fn until(
    sightings: &Sightings,
    running: &Running,
    count: impl Fn(&Seen) -> usize,
    wanted: usize,
    patience: Duration,
) -> Result<usize> {
    let (mut seen, mut grew) = (0, Instant::now());
    loop {
        let now = sightings.look(&count)?;
        if now >= wanted || (now == seen && grew.elapsed() > patience) {
            return Ok(now);
        }
        if now > seen {
            (seen, grew) = (now, Instant::now());
        }
        running.ensure_alive()?;
        sleep(POLL_EVERY).await;
    }
}

fn ensure_bound_once(contestant: Contestant, moved: &[String]) -> Result<()> {
    match moved.first() {
        None => Ok(()),
        Some(pod) => {
            let said =
                format!("{} bound {} Pods twice, {pod} first", contestant.name(), moved.len());
            Err(Error::Violated(said))
        }
    }
}

fn last_of(binds: Span, events: Span) -> Option<Instant> {
    binds.last.max(events.last)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(count: usize, first: Option<Instant>, last: Option<Instant>) -> f64 {
    /// A watch may show a few Pods at the same moment.
    const SHORTEST: Duration = Duration::from_millis(1);
    let span = first.zip(last).map(|(first, last)| last.duration_since(first));
    count as f64 / span.unwrap_or_default().max(SHORTEST).as_secs_f64()
}

fn since(start: Instant, end: Option<Instant>) -> f64 {
    end.map_or(0.0, |end| end.duration_since(start).as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
