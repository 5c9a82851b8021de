//! Claims that are bound while a contestant runs: who binds them, and how they are made anew for the next one.

use std::fmt;
use std::time::{Duration, Instant};

use e2e::binaries::say;
use e2e::control_plane::{ControlPlane, ControllerManager};
use e2e::provisioner::Provisioner;
use e2e::{Error, Result};
use kube::Client;
use serde_json::Value;
use tokio::time::sleep;

use super::api;
use crate::workload::Workload;

const VOLUMES: &str = "/api/v1/persistentvolumes";
/// Thousands of objects, by a controller that works on one after the other.
const RENEWED_TIME_MAX: Duration = Duration::from_mins(5);
const POLL_EVERY: Duration = Duration::from_millis(500);

/// The real controllers and a provisioner without storage behind it, for as long as the race lasts.
#[derive(Debug)]
pub struct Binders {
    _provisioner: Provisioner,
    _controllers: ControllerManager,
    volumes: Vec<Value>,
    claims: Vec<Value>,
}

impl Binders {
    /// Starts them if the workload needs them. Returns the other objects too: those that no contestant changes.
    pub async fn lay_out(
        plane: &ControlPlane,
        workload: &Workload,
    ) -> Result<(Option<Self>, Vec<Value>)> {
        let objects = workload.all_objects();
        if !workload.has_unbound_claims() {
            return Ok((None, objects));
        }
        let of_kind =
            |kind: &'static str| move |object: &Value| object["kind"].as_str() == Some(kind);
        let (volumes, objects) = objects.into_iter().partition(of_kind("PersistentVolume"));
        let objects: Vec<Value> = objects;
        let (claims, objects) = objects.into_iter().partition(of_kind("PersistentVolumeClaim"));
        let controllers = plane.start_volume_controllers().await?;
        let provisioner = Provisioner::start(&plane.admin());
        let this = Self { _provisioner: provisioner, _controllers: controllers, volumes, claims };
        Ok((Some(this), objects))
    }

    /// All claims are unbound and all volumes free once this returns.
    pub async fn renew(&self, client: &Client, namespace: &str) -> Result<()> {
        let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
        // Claims first: a volume whose claim is still there could be bound again.
        for collection in [claims.as_str(), VOLUMES] {
            until(&format!("{collection} to be empty"), 0, async || {
                api::delete_all_by_force(client, collection).await
            })
            .await?;
        }
        say(&format!("creating {} volumes, {} claims", self.volumes.len(), self.claims.len()));
        api::create_all(client, self.volumes.clone()).await?;
        // The controller says so of each, and has then seen it.
        until("volumes to be Available", self.volumes.len(), async || {
            api::volumes_in(client, "Available").await
        })
        .await?;
        api::create_all(client, self.claims.clone()).await
    }
}

async fn until<F>(awaited: impl fmt::Display, wanted: usize, count: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<usize>>,
{
    let deadline = Instant::now() + RENEWED_TIME_MAX;
    loop {
        let seen = count().await?;
        if seen == wanted {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Error::TimedOut {
                awaited: awaited.to_string(),
                seconds: RENEWED_TIME_MAX.as_secs(),
                seen: format!("there were {seen}"),
            });
        }
        sleep(POLL_EVERY).await;
    }
}
