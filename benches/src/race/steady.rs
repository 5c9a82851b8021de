//! A load that can be carried: how long from a Pod's creation to its Node?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use e2e::Result;
use e2e::figures::Times;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::api;
use super::contestant::{Contestant, Running};
use super::course::Course;
use super::sightings::Sightings;

const PREFIX: &str = "steady-";
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Pods that have no Node so long after the last was created will not get one.
const LATE_MAX: Duration = Duration::from_secs(20);
/// The scheduler hears that the Pods of the backlog are gone.
const SETTLE: Duration = Duration::from_secs(2);

/// Pods that came one after the other.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Steady {
    pub per_second: f64,
    pub created: usize,
    pub bound: usize,
    /// From the reply to the creation until the race's watch shows the Node.
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Steady {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn bound_percent(&self) -> f64 {
        self.bound as f64 * 100.0 / self.created.max(1) as f64
    }
}

/// Creates Pods at this rate for so long. There are never more than the workload has measured Pods, for
/// which it is known to have room.
pub async fn keep_up(
    course: &Course,
    contestant: Contestant,
    running: &Running,
    per_second: f64,
    lasts: Duration,
) -> Result<Steady> {
    sleep(SETTLE).await;
    let sightings = Sightings::start(&course.admin, &course.namespace, PREFIX).await?;
    let count = wanted(per_second, lasts).clamp(1, course.workload.size().pods);
    let created = create(course, contestant, per_second, count).await?;
    let last = Instant::now();
    while sightings.look(|seen| seen.bound.len())? < count && last.elapsed() < LATE_MAX {
        running.ensure_alive()?;
        sleep(POLL_EVERY).await;
    }
    let mut times = Times::default();
    let bound = sightings.look(|seen| {
        for (name, bound) in &seen.bound {
            // The watch may be faster than the reply.
            let waited = created.get(name).map(|reply| bound.at.saturating_duration_since(*reply));
            times.add(waited.unwrap_or_default());
        }
        seen.bound.len()
    })?;
    Ok(Steady {
        per_second,
        created: count,
        bound,
        p50_ms: millis(times.percentile(50)),
        p99_ms: millis(times.percentile(99)),
        max_ms: millis(times.max()),
    })
}

/// When each creation was answered.
async fn create(
    course: &Course,
    contestant: Contestant,
    per_second: f64,
    count: usize,
) -> Result<HashMap<String, Instant>> {
    let mut beat = interval(Duration::from_secs_f64(1.0 / per_second.max(1.0)));
    // A late one is made up for, so that the rate is what it says.
    beat.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let replies = Arc::new(Mutex::new(HashMap::with_capacity(count)));
    let mut under_way = JoinSet::new();
    let pods = course.workload.more_measured(contestant.scheduler_name()).take(count);
    for pod in pods {
        beat.tick().await;
        let (client, replies) = (course.admin.clone(), Arc::clone(&replies));
        under_way.spawn(async move {
            api::create(&client, &pod).await?;
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            replies.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Instant::now());
            Ok::<_, e2e::Error>(())
        });
    }
    for created in under_way.join_all().await {
        created?;
    }
    let replies = std::mem::take(&mut *replies.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(replies)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and far below the limit"
)]
fn wanted(per_second: f64, lasts: Duration) -> usize {
    (per_second * lasts.as_secs_f64()) as usize
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
