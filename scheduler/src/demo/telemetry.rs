//! What corrd would measure and report, played from a script.

use crds::{Corridor, Phase, backend_lease};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;

use super::cast::{CORRIDOR, FLOOR_GBPS, NAMESPACE};

/// The corridor's and the backend's voice.
#[derive(Clone)]
pub struct Telemetry {
    corridors: Api<Corridor>,
    leases: Api<Lease>,
    namespaces: Api<Namespace>,
}

impl Telemetry {
    pub fn new(client: &Client) -> Self {
        Self {
            corridors: Api::namespaced(client.clone(), NAMESPACE),
            leases: Api::namespaced(client.clone(), crds::SYSTEM_NAMESPACE),
            namespaces: Api::all(client.clone()),
        }
    }

    /// The namespace of the backends' Leases, and the first Lease.
    pub async fn introduce(&self) -> Result<(), Error> {
        let namespace = Namespace {
            metadata: kube::api::ObjectMeta {
                name: Some(crds::SYSTEM_NAMESPACE.to_owned()),
                ..Default::default()
            },
            ..Namespace::default()
        };
        self.namespaces.create(&PostParams::default(), &namespace).await?;
        self.renew().await
    }

    /// "I am here": without it, no figure of the corridor counts for longer than 15 s.
    pub async fn renew(&self) -> Result<(), Error> {
        let now = format!("{:.6}", Timestamp::now());
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": backend_lease::CORRD},
            "spec": {"holderIdentity": "demo", "leaseDurationSeconds": 15, "renewTime": now},
        });
        let params = PatchParams::apply("corridor-demo").force();
        self.leases.patch(backend_lease::CORRD, &params, &Patch::Apply(lease)).await.map(|_| ())
    }

    /// Reports what the light carries now.
    pub async fn report(&self, achievable_gbps: f64) -> Result<(), Error> {
        let meets_floor = achievable_gbps >= f64::from(FLOOR_GBPS);
        let phase = if meets_floor { Phase::Ready } else { Phase::Degraded };
        let status = json!({"status": {
            "phase": phase.as_str(),
            "corridorId": "cor-demo-1",
            "achievableGbps": achievable_gbps,
            "floorGbps": FLOOR_GBPS,
        }});
        let params = PatchParams::default();
        self.corridors.patch_status(CORRIDOR, &params, &Patch::Merge(status)).await.map(|_| ())
    }
}
