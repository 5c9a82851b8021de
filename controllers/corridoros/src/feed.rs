//! One long poll for each daemon, and the Lease that says that its telemetry is fresh.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controller_runtime::{Backoff, jitter};
use daemons::{
    AllocationTypes as _, Allocator as _, DaemonError, Revision, Sample as _, TelemetryPage,
};
use tracing::warn;

use crate::context::{Context, KindContext};
use crate::lifecycle::AllocatedKind;
use crate::settings::Settings;
use crate::telemetry_cache::Flow;

/// A daemon whose long poll returns at once is polled no faster than this.
const POLL_DELAY_MIN: Duration = Duration::from_millis(20);

pub(crate) async fn telemetry<K: AllocatedKind>(context: Arc<Context>) {
    let Some(daemon) = K::daemon(&context) else { return std::future::pending().await };
    let mut lease = BackendLease::new(K::BACKEND_LEASE);
    let mut feed = Feed::default();
    loop {
        let wait = context.settings.telemetry_wait;
        let page = daemon.telemetry_since(feed.revision.as_ref(), wait).await;
        feed.apply::<K>(&context, page, &mut lease).await;
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
            context.corridors.triggers.wake_all();
            context.bundles.triggers.wake_all();
            context.policy_triggers.wake_all();
        }
        tokio::time::sleep(delay).await;
    }
}

#[derive(Default)]
struct Feed {
    revision: Option<Revision>,
    failures: u32,
    /// Whether all objects were woken because the daemon is silent.
    silence_reported: bool,
}

impl Feed {
    async fn apply<K: AllocatedKind>(
        &mut self,
        context: &Context,
        page: Result<TelemetryPage, DaemonError>,
        lease: &mut BackendLease,
    ) {
        let KindContext { telemetry: cache, triggers, .. } = K::of_kind(context);
        match page {
            Ok(mut page) => {
                self.failures = 0;
                self.silence_reported = false;
                let mut ours = K::Allocation::samples(&mut page);
                self.revision = Some(page.revision);
                ours.retain(|it| it.owner().cluster_uid() == context.cluster_uid);
                let uid_of = |it: &K::Sample| it.owner().object_uid().to_owned();
                let mut uids: Vec<String> = ours.iter().map(uid_of).collect();
                let samples = ours.into_iter().map(|it| (it.id().to_owned(), it)).collect();
                let (was_silent, lost) = cache.apply(samples, &page.gone, page.full);
                if was_silent || page.full {
                    triggers.wake_all();
                }
                uids.extend(lost.iter().map(|it| uid_of(it)));
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
