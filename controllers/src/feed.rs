//! One long poll for each daemon, and the Lease that says it is heard of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use daemons::{DaemonError, Owner, Revision, TelemetryPage};
use tracing::warn;

use crate::board::{Board, Wakes};
use crate::context::{Context, chance};
use crate::{kubernetes, line};

/// A poll that returns at once, again and again, is no long poll: it is slowed to this.
const POLL_PAUSE_MIN: Duration = Duration::from_millis(20);

pub(crate) async fn corrd(context: Arc<Context>) {
    let Some(corrd) = context.backends.corrd.clone() else { return std::future::pending().await };
    let mut lease = BackendLease::new(crds::backend_lease::CORRD);
    let mut feed = Feed::default();
    loop {
        let page = corrd
            .telemetry_since(feed.revision.as_ref(), context.settings.telemetry_wait)
            .await
            .map(|page| {
                let TelemetryPage { revision, full, corridors, bundles: _, gone } = page;
                let samples = corridors
                    .into_iter()
                    .map(|sample| (sample.corridor_id.clone(), sample.owner.clone(), sample))
                    .collect();
                News { revision, full, samples, gone }
            });
        let (board, wakes) = (&context.corridors, &context.corridor_wakes);
        feed.take(&context, board, wakes, page, &mut lease, |sample| &sample.owner).await;
    }
}

pub(crate) async fn memqosd(context: Arc<Context>) {
    let Some(memqosd) = context.backends.memqosd.clone() else {
        return std::future::pending().await;
    };
    let mut lease = BackendLease::new(crds::backend_lease::MEMQOSD);
    let mut feed = Feed::default();
    loop {
        let page = memqosd
            .telemetry_since(feed.revision.as_ref(), context.settings.telemetry_wait)
            .await
            .map(|page| {
                let TelemetryPage { revision, full, corridors: _, bundles, gone } = page;
                let samples = bundles
                    .into_iter()
                    .map(|sample| (sample.ffm_handle.clone(), sample.owner.clone(), sample))
                    .collect();
                News { revision, full, samples, gone }
            });
        let (board, wakes) = (&context.bundles, &context.bundle_wakes);
        feed.take(&context, board, wakes, page, &mut lease, |sample| &sample.owner).await;
    }
}

/// attestd has no telemetry: its inventory is what shows that it is there.
pub(crate) async fn attestd(context: Arc<Context>) {
    let Some(attestd) = context.backends.attestd.clone() else {
        context.inventory.replace(Err("attestd is not configured".to_owned()));
        return std::future::pending().await;
    };
    let mut lease = BackendLease::new(crds::backend_lease::ATTESTD);
    let mut failures = 0;
    loop {
        let told = attestd.devices().await;
        let pause = if let Err(error) = &told {
            let (first, max) = (context.settings.backoff_first, context.settings.lease_interval);
            failures += 1;
            warn!(%error, "attestd does not tell its inventory");
            line::pause(first, max, failures, chance())
        } else {
            failures = 0;
            lease.renew(&context).await;
            context.settings.lease_interval
        };
        if context.inventory.replace(told.map_err(|error| error.to_string())) {
            context.corridor_wakes.wake_all();
            context.bundle_wakes.wake_all();
            context.policy_wakes.wake_all();
        }
        tokio::time::sleep(pause).await;
    }
}

struct News<S> {
    revision: Revision,
    full: bool,
    samples: Vec<(String, Owner, S)>,
    gone: Vec<String>,
}

#[derive(Default)]
struct Feed {
    revision: Option<Revision>,
    failures: u32,
    /// Whether everybody has been told that the daemon is silent.
    silence_told: bool,
}

impl Feed {
    async fn take<S: Clone>(
        &mut self,
        context: &Context,
        board: &Board<S>,
        wakes: &Wakes,
        page: Result<News<S>, DaemonError>,
        lease: &mut BackendLease,
        owner_of: impl Fn(&S) -> &Owner,
    ) {
        match page {
            Ok(page) => {
                self.failures = 0;
                self.revision = Some(page.revision);
                self.silence_told = false;
                let ours: Vec<_> = page
                    .samples
                    .into_iter()
                    .filter(|(_, owner, _)| owner.cluster_uid() == context.cluster_uid)
                    .collect();
                let mut uids: Vec<String> =
                    ours.iter().map(|(_, owner, _)| owner.object_uid().to_owned()).collect();
                let samples = ours.into_iter().map(|(id, _, sample)| (id, sample)).collect();
                let (was_silent, lost) = board.take(samples, &page.gone, page.full);
                if was_silent || page.full {
                    wakes.wake_all();
                }
                uids.extend(lost.iter().map(|it| owner_of(it).object_uid().to_owned()));
                wakes.wake_each(uids.into_iter());
                lease.renew(context).await;
                tokio::time::sleep(POLL_PAUSE_MIN).await;
            }
            Err(error) => {
                let (first, max) =
                    (context.settings.backoff_first, context.settings.lease_interval);
                warn!(backend = lease.name, %error, "no telemetry");
                let now = Instant::now();
                board.fall_silent(now, error.to_string());
                let silent = match board.flow(now) {
                    crate::board::Flow::Silent(silent, _) => silent,
                    crate::board::Flow::Flowing => Duration::ZERO,
                };
                if silent >= context.settings.unreachable_after && !self.silence_told {
                    self.silence_told = true;
                    wakes.wake_all();
                }
                tokio::time::sleep(line::pause(first, max, self.failures, chance())).await;
                self.failures += 1;
            }
        }
    }
}

/// Renewed only when the daemon has just been heard of.
struct BackendLease {
    name: &'static str,
    renewed: Option<Instant>,
}

impl BackendLease {
    fn new(name: &'static str) -> Self {
        Self { name, renewed: None }
    }

    async fn renew(&mut self, context: &Context) {
        let settings = &context.settings;
        // Polls end a little after the interval as often as a little before it.
        let is_due = |at: Instant| at.elapsed() >= settings.lease_interval.mul_f64(0.8);
        if !self.renewed.is_none_or(is_due) {
            return;
        }
        let (name, identity) = (self.name, &settings.identity);
        let age_max = settings.unreachable_after;
        match kubernetes::renew_backend_lease(&context.client, name, identity, age_max).await {
            Ok(()) => self.renewed = Some(Instant::now()),
            Err(error) => warn!(lease = name, %error, "cannot be renewed"),
        }
    }
}
