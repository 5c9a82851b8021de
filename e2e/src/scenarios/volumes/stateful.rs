//! A StatefulSet with a claim for each of its Pods.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{FAST, TEAM, VolumeSite};
use crate::SCHEDULER_NAME;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodState as _;
use crate::objects::volumes::{ClaimState, ClaimTemplate, ZONE};
use crate::observe::{PATIENCE, Seen, until_pods};
use crate::provisioner::{self, Provisioner};

const NAME: &str = "store";
const REPLICAS: usize = 20;
const REPLICAS_AT_NIGHT: usize = 5;
/// As quick as a CSI driver is at best; volumes come while other Pods are placed.
const PROVISIONED_AFTER: Duration = Duration::from_millis(50);
/// A promise to users: of all Bindings but one in a hundred.
const BOUND_WITHIN: Duration = Duration::from_millis(200);

/// 20 Pods at once, each with a claim of its own: each is bound soon after its claim. Most go and come back, to
/// the volumes that they had.
pub async fn stateful_set_returns_to_its_volumes(site: &VolumeSite) -> Result<()> {
    for (zone, numbers) in [("zone-a", [1, 2]), ("zone-b", [3, 4])] {
        let node = NodeTemplate::new("4", "16Gi").label(ZONE, zone);
        site.cluster.create_nodes_numbered(numbers, &node).await?;
    }
    provisioner::class().delay(PROVISIONED_AFTER).create(site.admin(), FAST).await?;
    let _provisioner = Provisioner::start(site.admin());
    let _scheduler = site.cluster.start_scheduler().await?;

    create_set(site).await?;
    until_bound(site, REPLICAS).await?;
    let first = volumes(site).await?;
    ensure(first.len() == REPLICAS, || format!("there are {} claims", first.len()))?;
    ensure_prompt(site).await?;

    scale(site, REPLICAS_AT_NIGHT).await?;
    until_bound(site, REPLICAS_AT_NIGHT).await?;
    scale(site, REPLICAS).await?;
    until_bound(site, REPLICAS).await?;
    let second = volumes(site).await?;
    ensure(first == second, || format!("the volumes were {first:?} and are {second:?}"))
}

async fn create_set(site: &VolumeSite) -> Result<()> {
    let doing = "creating a StatefulSet";
    let labels = json!({ "app": NAME });
    let container = json!({
        "name": "main",
        "image": "never-pulled:1",
        "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
    });
    let claim = ClaimTemplate::new(FAST, "1Gi").spec();
    let object = json!({
        "metadata": { "namespace": TEAM, "name": NAME },
        "spec": {
            "replicas": REPLICAS,
            "serviceName": NAME,
            // No kubelet says that a Pod is ready: one after the other would mean one.
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "schedulerName": SCHEDULER_NAME,
                    "terminationGracePeriodSeconds": 0,
                    "containers": [container],
                },
            },
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claim }],
        },
    });
    let sets: Api<StatefulSet> = Api::namespaced(site.admin().clone(), TEAM);
    let object = serde_json::from_value(object).doing(doing)?;
    sets.create(&PostParams::default(), &object).await.map(drop).doing(doing)
}

async fn scale(site: &VolumeSite, replicas: usize) -> Result<()> {
    let sets: Api<StatefulSet> = Api::namespaced(site.admin().clone(), TEAM);
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let patched = sets.patch(NAME, &PatchParams::default(), &patch).await;
    patched.map(drop).doing(format!("scaling a StatefulSet to {replicas}"))
}

/// So many Pods are there, and all of them are bound.
async fn until_bound(site: &VolumeSite, count: usize) -> Result<()> {
    let awaited = format!("{count} Pods of a StatefulSet to be bound, and no others");
    let done =
        |seen: &Seen<Pod>| seen.len() == count && seen.values().all(|pod| pod.node().is_some());
    until_pods(&site.cluster.pods(TEAM), &awaited, PATIENCE, done).await.map(drop)
}

/// The UID and the volume of each claim.
async fn volumes(site: &VolumeSite) -> Result<BTreeMap<String, Option<String>>> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(site.admin().clone(), TEAM);
    let claims = claims.list(&ListParams::default()).await.doing("listing claims")?;
    let volume = |claim: &PersistentVolumeClaim| claim.volume().map(str::to_owned);
    Ok(claims.iter().map(|claim| (claim.uid_str().to_owned(), volume(claim))).collect())
}

/// Of so few Pods, the 99th of a hundred is the last.
async fn ensure_prompt(site: &VolumeSite) -> Result<()> {
    let mut waits = Vec::new();
    for number in 0..REPLICAS {
        let pod = format!("{NAME}-{number}");
        let claim = format!("data-{pod}");
        site.until_claim(&claim, "bound", ClaimState::is_bound).await?;
        let bound = site.pod_bound_at(&pod).await?;
        waits.push(bound.saturating_duration_since(site.claim_bound_at(&claim)?));
    }
    waits.sort_unstable();
    let longest = waits.last().copied().unwrap_or_default();
    ensure(longest <= BOUND_WITHIN, || {
        format!("a Pod was bound only {longest:?} after its claim; all of them: {waits:?}")
    })
}
