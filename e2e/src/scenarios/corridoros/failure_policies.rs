//! `FailFast` and `Queue`, by annotation and by configuration.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::{TEAM, bind_user, create_corridor, ensure_contains, site, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, handle_of};
use crate::objects::pods::{CORRIDOR_GBPS, FAILURE_POLICY, PodState as _, PodTemplate, delete_pod};
use crate::site::{Site, SiteOptions};

/// The default is `Queue`; a Pod that says `FailFast` leaves the line with a Warning. Freed capacity
/// does not bring it back; a change of the Pod, a change of the object's spec and the object's
/// entering Ready do, each.
pub async fn fail_fast_by_annotation(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let corridor = create_corridor(&site, "c1").await?;
    let id = handle_of(&corridor.until_ready().await?, CustomKind::Corridor);
    bind_user(&site, &corridor, "100", "holder").await?;
    let fail_fast =
        PodTemplate::small().refer(&corridor, Some("40")).annotation(FAILURE_POLICY, "FailFast");
    for name in ["edited", "respecified", "returned"] {
        fail_fast.create(site.admin(), TEAM, name).await?;
        ensure_failed_fast(&site, name).await?;
    }
    freed_capacity_passes_them_by(&site, &corridor).await?;

    // 20 of 100 Gbps are free: enough only for a Pod that asks less than before.
    patch_pod(&site, "edited", CORRIDOR_GBPS, "20").await?;
    until_bound(cluster, TEAM, "edited").await?;
    ensure_unbound(&site, &["respecified", "returned"]).await?;

    // The object's spec: 240 Gbps are free now, and the two that left are tried again.
    corridor.patch_spec(json!({ "minGbps": 340 })).await?;
    until_bound(cluster, TEAM, "respecified").await?;
    until_bound(cluster, TEAM, "returned").await?;

    site.daemons.force_corridor(&id, json!({ "achievable_gbps": 1 })).await?;
    corridor.until_phase("Degraded").await?;
    fail_fast.create(site.admin(), TEAM, "degraded").await?;
    ensure_failed_fast(&site, "degraded").await?;
    site.daemons.force_corridor(&id, json!({})).await?;
    until_bound(cluster, TEAM, "degraded").await.map(drop)
}

/// The holder ends: 100 Gbps are free. Pods in line get them, Pods that left the line do not.
async fn freed_capacity_passes_them_by(site: &Site, corridor: &Custom) -> Result<()> {
    let queued = PodTemplate::small().refer(corridor, Some("40"));
    queued.create(site.admin(), TEAM, "queued").await?;
    let message = until_held(&site.cluster, TEAM, "queued").await?;
    ensure(!message.starts_with("FailFast: "), || format!("Queue is the default: {message:?}"))?;
    delete_pod(site.admin(), TEAM, "holder").await?;
    until_bound(&site.cluster, TEAM, "queued").await?;
    // A Pod that comes later and is bound: by then the others would have been tried, if at all.
    bind_user(site, corridor, "40", "later").await?;
    ensure_unbound(site, &["edited", "respecified", "returned"]).await
}

/// By `--config`: `FailFast` for all, and a Pod that says `Queue` waits in line all the same.
pub async fn fail_fast_by_configuration(cluster: &Cluster) -> Result<()> {
    let corridor_args = json!({ "failurePolicy": "FailFast" });
    let site = site(cluster, SiteOptions { corridor_args, ..SiteOptions::default() }).await?;
    let corridor = create_corridor(&site, "c1").await?;
    corridor.until_ready().await?;
    bind_user(&site, &corridor, "100", "holder").await?;
    let plain = PodTemplate::small().refer(&corridor, Some("40"));
    plain.create(site.admin(), TEAM, "plain").await?;
    ensure_failed_fast(&site, "plain").await?;
    let queued = plain.clone().annotation(FAILURE_POLICY, "Queue");
    queued.create(site.admin(), TEAM, "queued").await?;
    let message = until_held(cluster, TEAM, "queued").await?;
    ensure(!message.starts_with("FailFast: "), || {
        format!("the Pod's own Queue should win over the configuration: {message:?}")
    })?;
    delete_pod(site.admin(), TEAM, "holder").await?;
    until_bound(cluster, TEAM, "queued").await?;
    ensure_unbound(&site, &["plain"]).await
}

async fn ensure_failed_fast(site: &Site, name: &str) -> Result<()> {
    let message = until_held(&site.cluster, TEAM, name).await?;
    ensure(message.starts_with("FailFast: "), || {
        format!("Pod {name} should have failed fast, but says {message:?}")
    })?;
    ensure_contains(&message, &["corridor team-a/c1", "needs 40 Gbps", "short by 40 Gbps"])?;
    let event = site.cluster.until_event(TEAM, name, "FailedScheduling").await?;
    ensure(event.type_.as_deref() == Some("Warning"), || {
        format!("the Event about Pod {name} is of type {:?}, not Warning", event.type_)
    })?;
    ensure_contains(event.message.as_deref().unwrap_or_default(), &["FailFast: "])
}

async fn ensure_unbound(site: &Site, names: &[&str]) -> Result<()> {
    let pods = site.cluster.pods(TEAM).list(&ListParams::default()).await.doing("listing Pods")?;
    let is_early = |pod: &&Pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        pod.node().is_some() && names.contains(&name)
    };
    let early: Vec<_> =
        pods.iter().filter(is_early).filter_map(|pod| pod.metadata.name.as_deref()).collect();
    ensure(early.is_empty(), || {
        format!("{early:?} had left the line with FailFast, and are bound without a reason to")
    })
}

async fn patch_pod(site: &Site, name: &str, key: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: value } } }));
    let patched = site.cluster.pods(TEAM).patch(name, &PatchParams::default(), &patch).await;
    patched.map(drop).doing(format!("patching Pod {name}"))
}
