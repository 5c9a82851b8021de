//! What others do while a Pod waits for its volumes.

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::gate::{GatedScheduler, Then, Write};
use super::{FAST, LOCAL, TEAM, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::objects::volumes::{
    ClaimState as _, ClaimTemplate, ClassTemplate, VolumeState as _, VolumeTemplate,
};
use crate::observe::PATIENCE;
use crate::provisioner::{self, Fault, Provisioner};

/// Its room is free at once, and its claim serves the next Pod.
pub async fn pod_deleted_in_its_wait_leaves_nothing(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(1, &NodeTemplate::new("4", "16Gi")).await?;
    provisioner::class().fault(Fault::Never).create(admin, FAST).await?;
    ClaimTemplate::new(FAST, "1Gi").create(admin, TEAM, "data").await?;
    let provisioner = Provisioner::start(admin);
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("waiting", &PodTemplate::new("3", "1Gi").claims(&["data"])).await?;
    site.until_claim("data", "for a node", |claim| claim.selected_node().is_some()).await?;
    site.create_pod("whole", &PodTemplate::new("4", "1Gi")).await?;
    site.until_held("whole", &["1 Insufficient cpu"]).await?;

    let deleted = std::time::Instant::now();
    delete_pod(admin, TEAM, "waiting").await?;
    site.until_bound("whole").await?;
    site.ensure_prompt("whole", deleted).await?;

    drop(provisioner);
    let _repaired = Provisioner::start_repaired(admin);
    delete_pod(admin, TEAM, "whole").await?;
    site.create_pod("next", &PodTemplate::new("4", "1Gi").claims(&["data"])).await?;
    site.until_bound_with_claim("next").await.map(drop)
}

/// Another claim gets the volume between the decision and the write: the Pod takes another volume, and the
/// first keeps its claim.
pub async fn taken_volume_is_replaced_by_another(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    site.create_volume("best", &VolumeTemplate::local(LOCAL, "5Gi", "node-1")).await?;
    site.create_volume("second-best", &VolumeTemplate::local(LOCAL, "8Gi", "node-2")).await?;
    for name in ["data", "rival"] {
        ClaimTemplate::new(LOCAL, "5Gi").create(admin, TEAM, name).await?;
    }
    let volumes: Api<PersistentVolume> = Api::all(admin.clone());
    let rival = site.until_claim("rival", "there", |_| true).await?;
    let take = json!({ "spec": { "claimRef": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": TEAM, "name": "rival", "uid": rival.uid_str(),
    }}});
    let taking = async move {
        // If it cannot be taken, the Pod has it, and the test fails by that.
        let _ = volumes.patch("best", &PatchParams::default(), &Patch::Merge(take)).await;
    };
    let scheduler =
        GatedScheduler::start(&site.cluster, Write::Volume, 0, Then::After(taking.boxed())).await?;
    let pod = PodTemplate::small().claims(&["data"]).spec("affinity", prefers_node_1());
    site.create_pod("pod", &pod).await?;
    scheduler.until_reached(PATIENCE).await?;
    let bound = site.until_bound_with_claim("pod").await?;
    let found = bound.volume.name_any();
    ensure(found == "second-best", || format!("it has {found}"))?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    let best = site.until_volume("best", "claimed", |it| it.claim().is_some()).await?;
    let claimant = best.claimant();
    ensure(claimant.as_deref() == Some("team-a/rival"), || format!("best is of {claimant:?}"))?;
    drop(scheduler);
    Ok(())
}

/// So that the volume which is taken away is the one that the Pod goes for.
fn prefers_node_1() -> serde_json::Value {
    let term = json!({ "matchExpressions": [
        { "key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"] },
    ]});
    let preferred = json!([{ "weight": 100, "preference": term }]);
    json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": preferred } })
}
