//! A lively site: a little of everything that rules and dashboards tell of.

use serde_json::json;

use crate::cluster::Cluster;
use crate::error::{Doing as _, Result};
use crate::objects::custom::{Custom, CustomKind, handle_of};
use crate::objects::pods::{GRANT, PodState as _, PodTemplate};
use crate::site::Site;

pub const TEAM: &str = "team-a";
const OTHER_TEAM: &str = "team-b";
const URGENT: i32 = 1000;

/// What must be more than 0 in the end, so that the panels do not only show zeros.
pub const HAPPENED: [&str; 16] = [
    "sum(corridor_allocations_total)",
    "sum(ffm_allocations_total)",
    "sum(corridor_recalibrations_total{reason=\"spec_change\"})",
    "sum(corridor_throughput_gbps)",
    "sum(ffm_moved_pages_total)",
    "sum(ffm_qos_violations_total)",
    "sum(attestation_ok_total)",
    "sum(attestation_fail_total{reason=\"claim\"})",
    "sum(increase(corridor_attestation_failures_total{reason=\"claim\"}[5m]))",
    "sum(corridor_object_refused{kind=\"Corridor\"})",
    "sum(corridor_objects{kind=\"Corridor\", phase=\"Failed\"})",
    "sum(increase(corridor_tampering_total{kind=\"grant\"}[5m]))",
    "sum(corridor_held_pods{kind=\"Corridor\"})",
    "sum(corridor_held_pods{kind=\"MemoryBundle\"})",
    "sum(corridor_stranded_cpu_cores)",
    "sum(scheduler_preemption_victims_sum)",
];

/// Plays it; what it leaves behind stays until the site ends.
pub async fn play(site: &Site) -> Result<()> {
    let cluster = &site.cluster;
    for namespace in [TEAM, OTHER_TEAM] {
        cluster.ensure_namespace(namespace).await?;
    }
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", corridor_spec()).await?;
    let bundle = site.create(CustomKind::MemoryBundle, TEAM, "b1", bundle_spec()).await?;
    corridor.until_ready().await?;
    bundle.until_ready().await?;
    let user = PodTemplate::small().refer(&corridor, Some("60")).refer(&bundle, Some("6"));
    user.create(site.admin(), TEAM, "user").await?;
    cluster.until_pod(TEAM, "user", "bound", |pod| pod.node().is_some()).await?;

    hold_others(site, &corridor, &bundle).await?;
    deny_attestation(site).await?;
    recalibrate_and_move(site, &corridor, &bundle).await?;
    fall_below_the_floor(site, &bundle).await?;
    preempt(cluster).await?;
    tamper(site).await
}

/// A Corridor of several wavelengths whose device is attested.
fn corridor_spec() -> serde_json::Value {
    json!({ "lanes": 4, "lambdaNm": [1550, 1551], "minGbps": 100, "attestationRequired": true })
}

fn bundle_spec() -> serde_json::Value {
    json!({
        "bytes": 1_u64 << 30, "latencyClass": "T2", "bandwidthFloorGBs": 8, "shareable": true,
    })
}

/// One Pod for each object that finds it full.
async fn hold_others(site: &Site, corridor: &Custom, bundle: &Custom) -> Result<()> {
    for (object, amount, name) in [(corridor, "80", "wants-light"), (bundle, "7", "wants-memory")] {
        let held = PodTemplate::small().refer(object, Some(amount));
        held.create(site.admin(), TEAM, name).await?;
        let is_held = |pod: &_| pod_is_held(pod);
        site.cluster.until_pod(TEAM, name, "held", is_held).await?;
    }
    Ok(())
}

fn pod_is_held(pod: &k8s_openapi::api::core::v1::Pod) -> bool {
    pod.waiting_message().is_some()
}

/// A policy asks for a claim that no device makes.
async fn deny_attestation(site: &Site) -> Result<()> {
    let claims = json!({ "pqcRequired": false, "requiredClaims": { "tamperSeal": "intact" } });
    site.create(CustomKind::AttestationPolicy, OTHER_TEAM, "strict", claims).await?;
    let denied = site.create(CustomKind::Corridor, OTHER_TEAM, "denied", corridor_spec()).await?;
    denied.until_not_ready("AttestationFailed", &["tamperSeal"]).await.map(drop)
}

/// Another target for bit errors is met by a recalibration, another class of memory by moving its pages.
async fn recalibrate_and_move(site: &Site, corridor: &Custom, bundle: &Custom) -> Result<()> {
    corridor.patch_spec(json!({ "recalibration": { "targetBer": 1e-9 } })).await?;
    bundle.patch_spec(json!({ "latencyClass": "T1" })).await?;
    site.until_allocations(bundle, "in another class", |held| {
        held.iter().all(|it| it["latency_class"] == "T1")
    })
    .await
    .map(drop)
}

/// And back above it.
async fn fall_below_the_floor(site: &Site, bundle: &Custom) -> Result<()> {
    let handle = handle_of(&bundle.until_ready().await?, CustomKind::MemoryBundle);
    site.daemons.force_bundle(&handle, json!({ "achieved_GBs": 4 })).await?;
    bundle.until_not_ready("BelowFloor", &["4"]).await?;
    site.daemons.force_bundle(&handle, json!({})).await?;
    bundle.until_ready().await.map(drop)
}

/// Three Pods fill the three Nodes of the site; an urgent one takes the place of one.
async fn preempt(cluster: &Cluster) -> Result<()> {
    cluster.ensure_priority_class("urgent", URGENT).await?;
    // No kubelet is there to end them gracefully.
    let filler = PodTemplate::new("60", "64Mi").spec("terminationGracePeriodSeconds", json!(0));
    cluster.create_pods(TEAM, "filler", 3, &filler).await?;
    for number in 0..3 {
        let name = format!("filler-{number}");
        cluster.until_pod(TEAM, &name, "bound", |pod| pod.node().is_some()).await?;
    }
    let urgent = PodTemplate::new("60", "64Mi").priority("urgent", URGENT);
    urgent.create(cluster.admin(), TEAM, "urgent").await?;
    cluster.until_pod(TEAM, "urgent", "bound", |pod| pod.node().is_some()).await.map(drop)
}

/// Writes a grant on a Pod that the scheduler never gave.
async fn tamper(site: &Site) -> Result<()> {
    let forged = json!({ "metadata": { "annotations": { GRANT: "{\"v\":1}" } } });
    let patch = kube::api::Patch::Merge(forged);
    let pods = site.cluster.pods(TEAM);
    let patched = pods.patch("user", &kube::api::PatchParams::default(), &patch).await;
    patched.map(drop).doing("forging a grant")
}
