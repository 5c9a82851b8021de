//! One long poll for each daemon, and the Lease that says that its telemetry is fresh.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controller_runtime::{Backoff, Triggers, jitter};
use daemons::{DaemonError, Owner, Revision, TelemetryPage};
use tracing::warn;

use crate::context::Context;
use crate::settings::Settings;
use crate::telemetry_cache::{Flow, TelemetryCache};

/// A daemon whose long poll returns at once is polled no faster than this.
const POLL_DELAY_MIN: Duration = Duration::from_millis(20);

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
                Page { revision, full, samples, gone }
            });
        let (cache, triggers) = (&context.corridors, &context.corridor_triggers);
        feed.apply(&context, cache, triggers, page, &mut lease, |sample| &sample.owner).await;
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
                Page { revision, full, samples, gone }
            });
        let (cache, triggers) = (&context.bundles, &context.bundle_triggers);
        feed.apply(&context, cache, triggers, page, &mut lease, |sample| &sample.owner).await;
    }
}

/// attestd has no telemetry: reading its inventory shows that it answers.
pub(crate) async fn attestd(context: Arc<Context>) {
    let Some(attestd) = context.backends.attestd.clone() else {
        context.inventory.replace(Err("attestd is not configured".to_owned()));
        return std::future::pending().await;
    };
    let mut lease = BackendLease::new(crds::backend_lease::ATTESTD);
    let mut failures = 0;
    loop {
        let devices = attestd.devices().await;
        let delay = if let Err(error) = &devices {
            failures += 1;
            warn!(%error, "the inventory of attestd cannot be read");
            backoff(&context.settings).delay(failures, jitter())
        } else {
            failures = 0;
            lease.renew(&context).await;
            context.settings.lease_interval
        };
        if context.inventory.replace(devices.map_err(|error| error.to_string())) {
            context.corridor_triggers.wake_all();
            context.bundle_triggers.wake_all();
            context.policy_triggers.wake_all();
        }
        tokio::time::sleep(delay).await;
    }
}

struct Page<S> {
    revision: Revision,
    full: bool,
    samples: Vec<(String, Owner, S)>,
    gone: Vec<String>,
}

#[derive(Default)]
struct Feed {
    revision: Option<Revision>,
    failures: u32,
    /// Whether all objects were woken because the daemon is silent.
    silence_reported: bool,
}

impl Feed {
    async fn apply<S: Clone>(
        &mut self,
        context: &Context,
        cache: &TelemetryCache<S>,
        triggers: &Triggers,
        page: Result<Page<S>, DaemonError>,
        lease: &mut BackendLease,
        owner_of: impl Fn(&S) -> &Owner,
    ) {
        match page {
            Ok(page) => {
                self.failures = 0;
                self.revision = Some(page.revision);
                self.silence_reported = false;
                let ours: Vec<_> = page
                    .samples
                    .into_iter()
                    .filter(|(_, owner, _)| owner.cluster_uid() == context.cluster_uid)
                    .collect();
                let mut uids: Vec<String> =
                    ours.iter().map(|(_, owner, _)| owner.object_uid().to_owned()).collect();
                let samples = ours.into_iter().map(|(id, _, sample)| (id, sample)).collect();
                let (was_silent, lost) = cache.apply(samples, &page.gone, page.full);
                if was_silent || page.full {
                    triggers.wake_all();
                }
                uids.extend(lost.iter().map(|it| owner_of(it).object_uid().to_owned()));
                triggers.wake_each(uids.into_iter());
                lease.renew(context).await;
                tokio::time::sleep(POLL_DELAY_MIN).await;
            }
            Err(error) => {
                warn!(backend = lease.name, %error, "no telemetry");
                let now = Instant::now();
                cache.mark_silent(now, error.to_string());
                let silent = match cache.flow(now) {
                    Flow::Silent(silent, _) => silent,
                    Flow::Flowing => Duration::ZERO,
                };
                if silent >= context.settings.unreachable_after && !self.silence_reported {
                    self.silence_reported = true;
                    triggers.wake_all();
                }
                tokio::time::sleep(backoff(&context.settings).delay(self.failures, jitter())).await;
                self.failures += 1;
            }
        }
    }
}

/// A daemon is asked at least as often as its Lease has to be renewed.
fn backoff(settings: &Settings) -> Backoff {
    Backoff { first: settings.backoff_first, max: settings.lease_interval }
}

/// Renewed only after an answer of the daemon.
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
        let renewed = context.api.renew_lease(crds::SYSTEM_NAMESPACE, name, identity, age_max);
        match renewed.await {
            Ok(()) => self.renewed = Some(Instant::now()),
            Err(error) => warn!(lease = name, %error, "cannot be renewed"),
        }
    }
}
