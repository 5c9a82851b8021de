//! The Lease by which a backend says that what it reports is fresh.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use tokio::task::JoinHandle;
use tokio::time::interval;

use crate::SYSTEM_NAMESPACE;
use crate::error::{Doing as _, Result};

/// The backend of Corridors.
pub const CORRD_LEASE: &str = "corridor-backend-corrd";
/// The backend of MemoryBundles.
pub const MEMQOSD_LEASE: &str = "corridor-backend-memqosd";

/// A Lease counts as stale after 15 s.
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// Renews a backend's Lease for as long as it is held.
#[derive(Debug)]
pub struct BackendLease {
    renewing: JoinHandle<()>,
}

impl BackendLease {
    /// Returns when the Lease is fresh.
    pub async fn hold(client: &Client, name: &'static str) -> Result<Self> {
        write_lease(client, name, Timestamp::now()).await?;
        let client = client.clone();
        let renewing = tokio::spawn(async move {
            let mut ticks = interval(RENEW_EVERY);
            loop {
                ticks.tick().await;
                // The next tick tries again, and a Lease that ages shows in what waits for it.
                let _ = write_lease(&client, name, Timestamp::now()).await;
            }
        });
        Ok(Self { renewing })
    }
}

impl Drop for BackendLease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// Creates or renews the Lease as of `renewed`.
pub async fn write_lease(client: &Client, name: &str, renewed: Timestamp) -> Result<()> {
    let doing = format!("renewing Lease {SYSTEM_NAMESPACE}/{name}");
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(SYSTEM_NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some("e2e".to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(renewed)),
            ..LeaseSpec::default()
        }),
    };
    match leases.create(&PostParams::default(), &lease).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let renewal = Patch::Merge(&lease);
            leases.patch(name, &PatchParams::default(), &renewal).await.map(drop).doing(doing)
        }
        created => created.map(drop).doing(doing),
    }
}
