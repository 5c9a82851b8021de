//! What every pass has at hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crds::{AttestationPolicy, Witness};
use daemons::corrd::CorridorTelemetry;
use daemons::memqosd::BundleTelemetry;
use kube::Client;
use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::warn;

use crate::board::{Board, Inventory, Roster, Wakes};
use crate::metrics::Metrics;
use crate::settings::{Backends, Settings};
use crate::tampering::Alarms;
use crate::{kubernetes, line};

pub(crate) struct Context {
    pub client: Client,
    pub backends: Backends,
    pub settings: Settings,
    pub metrics: Arc<Metrics>,
    /// UID of the namespace kube-system: the first half of every owner tag.
    pub cluster_uid: String,
    pub policies: Policies,
    pub inventory: Inventory,
    pub corridors: Board<CorridorTelemetry>,
    pub bundles: Board<BundleTelemetry>,
    pub corridor_roster: Roster,
    pub bundle_roster: Roster,
    pub corridor_wakes: Wakes,
    pub bundle_wakes: Wakes,
    pub policy_wakes: Wakes,
    /// What this half and the driver really say, where both run in one process.
    pub witness: Arc<Witness>,
    pub alarms: Alarms,
}

impl Context {
    /// Waits for the API server to say which cluster this is.
    pub async fn start(
        client: Client,
        backends: Backends,
        settings: Settings,
        metrics: Arc<Metrics>,
        witness: Arc<Witness>,
        alarms: Alarms,
    ) -> Self {
        let mut failures = 0;
        let cluster_uid = loop {
            match kubernetes::cluster_uid(&client).await {
                Ok(uid) => break uid,
                Err(error) => warn!(%error, "the cluster's identity cannot be read; trying again"),
            }
            let (first, max) = (settings.backoff_first, settings.backoff_max);
            tokio::time::sleep(line::pause(first, max, failures, chance())).await;
            failures += 1;
        };
        let now = Instant::now();
        Self {
            client,
            backends,
            settings,
            metrics,
            cluster_uid,
            policies: Policies::default(),
            inventory: Inventory::default(),
            corridors: Board::new(now),
            bundles: Board::new(now),
            corridor_roster: Roster::default(),
            bundle_roster: Roster::default(),
            corridor_wakes: Wakes::default(),
            bundle_wakes: Wakes::default(),
            policy_wakes: Wakes::default(),
            witness,
            alarms,
        }
    }
}

/// A random number in 0..1, for jitter only: without the system's randomness there is none.
pub(crate) fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}

/// Every AttestationPolicy, by namespace.
#[derive(Debug)]
pub(crate) struct Policies {
    by_namespace: RwLock<BTreeMap<String, Vec<Arc<AttestationPolicy>>>>,
    synced: watch::Sender<bool>,
}

impl Default for Policies {
    fn default() -> Self {
        Self { by_namespace: RwLock::default(), synced: watch::channel(false).0 }
    }
}

impl Policies {
    pub fn of(&self, namespace: &str) -> Vec<Arc<AttestationPolicy>> {
        self.by_namespace.read().get(namespace).cloned().unwrap_or_default()
    }

    pub fn replace(&self, policies: BTreeMap<String, Vec<Arc<AttestationPolicy>>>) {
        *self.by_namespace.write() = policies;
        self.synced.send_replace(true);
    }

    /// Nothing is allocated before the constraints are known.
    pub async fn synced(&self) {
        // The sender lives as long as `self`, so this ends only when it is true.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }
}
