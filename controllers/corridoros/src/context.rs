//! What every reconcile has at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use controller_runtime::{ApiClient, Triggers, jitter};
use crds::{AttestationPolicy, AttestationPolicySpec};
use daemons::corrd::CorridorTelemetry;
use daemons::memqosd::BundleTelemetry;
use own_writes::OwnWrites;
use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::warn;

use crate::attestation::DeviceInventory;
use crate::metrics::Metrics;
use crate::settings::{Backends, Settings};
use crate::sweep::KnownUids;
use crate::tampering::Alarms;
use crate::telemetry_cache::TelemetryCache;

pub(crate) struct Context {
    pub api: ApiClient,
    pub backends: Backends,
    pub settings: Settings,
    pub metrics: Arc<Metrics>,
    /// UID of the namespace kube-system: the first half of every owner tag.
    pub cluster_uid: String,
    pub policies: Policies,
    pub inventory: DeviceInventory,
    pub corridors: KindContext<CorridorTelemetry>,
    pub bundles: KindContext<BundleTelemetry>,
    pub policy_triggers: Triggers,
    /// What the controllers and the driver of this process have themselves written.
    pub own_writes: Arc<OwnWrites>,
    pub alarms: Alarms,
}

impl Context {
    /// Waits until the UID of the cluster is known.
    pub async fn start(
        api: ApiClient,
        backends: Backends,
        settings: Settings,
        metrics: Arc<Metrics>,
        own_writes: Arc<OwnWrites>,
        alarms: Alarms,
    ) -> Self {
        let mut failures = 0;
        let cluster_uid = loop {
            match api.cluster_uid().await {
                Ok(uid) => break uid,
                Err(error) => warn!(%error, "the cluster's identity cannot be read; trying again"),
            }
            tokio::time::sleep(settings.backoff().delay(failures, jitter())).await;
            failures += 1;
        };
        let now = Instant::now();
        Self {
            api,
            backends,
            settings,
            metrics,
            cluster_uid,
            policies: Policies::default(),
            inventory: DeviceInventory::default(),
            corridors: KindContext::new(now),
            bundles: KindContext::new(now),
            policy_triggers: Triggers::default(),
            own_writes,
            alarms,
        }
    }

    /// Wakes all Corridors and MemoryBundles of these namespaces.
    pub fn wake_namespaces<'a>(&self, namespaces: impl Iterator<Item = &'a String> + Clone) {
        self.corridors.triggers.wake_namespaces(namespaces.clone());
        self.bundles.triggers.wake_namespaces(namespaces);
    }
}

/// What the reconciles of one allocated kind share.
pub(crate) struct KindContext<S> {
    pub telemetry: TelemetryCache<S>,
    pub known_uids: KnownUids,
    pub triggers: Triggers,
}

impl<S> KindContext<S> {
    fn new(now: Instant) -> Self {
        let (known_uids, triggers) = (KnownUids::default(), Triggers::default());
        Self { telemetry: TelemetryCache::new(now), known_uids, triggers }
    }
}

pub(crate) type ByNamespace = BTreeMap<String, Vec<Arc<AttestationPolicy>>>;

/// What the policies of a namespace demand, and by which names.
fn demands<'a>(
    policies: &'a ByNamespace,
    namespace: &str,
) -> impl Iterator<Item = (Option<&'a str>, &'a AttestationPolicySpec)> {
    let policies = policies.get(namespace).into_iter().flatten();
    policies.map(|policy| (policy.metadata.name.as_deref(), &policy.spec))
}

/// Every AttestationPolicy, by namespace.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    by_namespace: RwLock<ByNamespace>,
    synced: watch::Sender<bool>,
}

impl Policies {
    pub fn of(&self, namespace: &str) -> Vec<Arc<AttestationPolicy>> {
        self.by_namespace.read().get(namespace).cloned().unwrap_or_default()
    }

    /// Returns the namespaces whose demands have changed. A status demands nothing, so an audit changes none.
    pub fn replace(&self, policies: ByNamespace) -> BTreeSet<String> {
        let mut known = self.by_namespace.write();
        let before = std::mem::replace(&mut *known, policies);
        let namespaces = before.keys().chain(known.keys()).cloned().collect::<BTreeSet<String>>();
        let changed = namespaces
            .into_iter()
            .filter(|namespace| !demands(&before, namespace).eq(demands(&known, namespace)))
            .collect();
        drop(known);
        self.synced.send_replace(true);
        changed
    }

    /// Nothing is allocated before the constraints are known.
    pub async fn synced(&self) {
        // The sender lives as long as `self`, so this ends only when it is true.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::AttestationPolicyStatus;

    fn policy(name: &str, tenants: &[&str], is_enforced: bool) -> Arc<AttestationPolicy> {
        let allowed_tenants = tenants.iter().map(|&tenant| tenant.to_owned()).collect();
        let spec = AttestationPolicySpec { allowed_tenants, ..AttestationPolicySpec::default() };
        let enforced = Some(is_enforced);
        let status = AttestationPolicyStatus { enforced, ..AttestationPolicyStatus::default() };
        Arc::new(AttestationPolicy { status: Some(status), ..AttestationPolicy::new(name, spec) })
    }

    #[test]
    fn only_namespaces_with_other_demands_are_named() {
        let policies = Policies::default();
        let all = |of_a: Vec<_>, of_b: Vec<_>| {
            let named = [("a".to_owned(), of_a), ("b".to_owned(), of_b)];
            named.into_iter().filter(|(_, of_one)| !of_one.is_empty()).collect::<ByNamespace>()
        };
        let first = all(vec![policy("p", &[], false)], vec![policy("p", &[], false)]);
        assert_eq!(policies.replace(first), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        let audited = all(vec![policy("p", &[], true)], vec![policy("p", &[], false)]);
        assert_eq!(policies.replace(audited), BTreeSet::new(), "a status demands nothing");
        let changed = all(vec![policy("p", &["x"], true)], vec![policy("p", &[], false)]);
        assert_eq!(policies.replace(changed), BTreeSet::from(["a".to_owned()]));
        let gone = all(vec![policy("p", &["x"], true)], vec![]);
        assert_eq!(policies.replace(gone), BTreeSet::from(["b".to_owned()]));
    }
}
