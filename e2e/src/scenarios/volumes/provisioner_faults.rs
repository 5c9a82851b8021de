//! What becomes of Pods when their provisioner fails.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use serde_json::json;
use tempfile::NamedTempFile;

use super::{FAST, NOT_HERE, TEAM, VolumeSite};
use crate::SCHEDULER_NAME;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::objects::volumes::{ClaimState as _, ClaimTemplate, ZONE};
use crate::provisioner::{self, Fault, Provisioner};

/// The reason of a Pod whose attempt failed, rather than found no node.
const FAILED: &str = "SchedulerError";

/// A site with so many nodes of four CPUs, a claim `data` of a class with this fault, and its provisioner.
async fn site_with(site: &VolumeSite, nodes: usize, fault: Fault) -> Result<Provisioner> {
    site.cluster.create_nodes(nodes, &NodeTemplate::new("4", "16Gi")).await?;
    provisioner::class().fault(fault).create(site.admin(), FAST).await?;
    ClaimTemplate::new(FAST, "1Gi").create(site.admin(), TEAM, "data").await?;
    Ok(Provisioner::start(site.admin()))
}

/// How often the choice of a node was taken back.
fn refusals(versions: &[PersistentVolumeClaim]) -> usize {
    let chosen: Vec<bool> = versions.iter().map(|it| it.selected_node().is_some()).collect();
    chosen.windows(2).filter(|pair| pair[0] && !pair[1]).count()
}

/// Refused once, the Pod is tried again and bound.
pub async fn refused_once_is_tried_again(site: &VolumeSite) -> Result<()> {
    let _provisioner = site_with(site, 2, Fault::ExhaustedOnce).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &PodTemplate::small().claims(&["data"])).await?;
    let bound = site.until_bound_with_claim("pod").await?;
    ensure(bound.claim.selected_node() == Some(bound.node.as_str()), || {
        format!("on {}, and the claim is for {:?}", bound.node, bound.claim.selected_node())
    })?;
    let refusals = refusals(&site.claim_versions("data"));
    ensure(refusals == 1, || format!("it was refused {refusals} times"))?;
    site.until_said("pod", FAILED, &[PROVISIONING_FAILED]).await?;
    site.ensure_prompt("pod", site.claim_bound_at("data")?).await
}

const PROVISIONING_FAILED: &str = r#"running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data""#;

/// Two of three nodes are refused: the Pod comes to the third.
pub async fn pod_goes_where_the_provisioner_has_room(site: &VolumeSite) -> Result<()> {
    let exhausted = Fault::ExhaustedOn(&["node-1", "node-2"]);
    let _provisioner = site_with(site, 3, exhausted).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &PodTemplate::small().claims(&["data"])).await?;
    let bound = site.until_bound_with_claim("pod").await?;
    ensure(bound.node == "node-3", || format!("it is on {}", bound.node))
}

/// Refused for ever, the Pod says so and takes nothing from others, who go on meanwhile.
pub async fn refusal_for_ever_is_told(site: &VolumeSite) -> Result<()> {
    let provisioner = site_with(site, 1, Fault::ExhaustedAlways).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &PodTemplate::new("3", "1Gi").claims(&["data"])).await?;
    site.until_said("pod", FAILED, &[PROVISIONING_FAILED]).await?;
    site.create_pod("whole", &PodTemplate::new("4", "1Gi")).await?;
    site.until_bound("whole").await?;
    site.until_said("pod", "Unschedulable", &["1 Insufficient cpu"]).await?;

    drop(provisioner);
    let _repaired = Provisioner::start_repaired(site.admin());
    delete_pod(site.admin(), TEAM, "whole").await?;
    site.until_bound_with_claim("pod").await.map(drop)
}

/// Without an answer the Pod gives up after its time, says so, and leaves its room to others; it goes on when
/// the provisioner is back.
pub async fn provisioner_that_never_answers_reserves_nothing(site: &VolumeSite) -> Result<()> {
    let provisioner = site_with(site, 1, Fault::Never).await?;
    let settings = bind_timeout(3)?;
    let flag = format!("--config={}", settings.path().display());
    let _scheduler = site.cluster.start_scheduler_with(&[&flag]).await?;
    site.create_pod("patient", &PodTemplate::new("3", "1Gi").claims(&["data"])).await?;
    let words =
        r#"running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded"#;
    site.until_said("patient", FAILED, &[words]).await?;
    let event = site.cluster.until_event(TEAM, "patient", "FailedScheduling").await?;
    super::ensure_contains(event.message.as_deref().unwrap_or_default(), &[words])?;
    let pod = site.cluster.until_pod(TEAM, "patient", "there", |_| true).await?;
    ensure(pod.node().is_none(), || "it is bound without its claim".to_owned())?;
    site.create_pod("whole", &PodTemplate::new("4", "1Gi")).await?;
    site.until_bound("whole").await?;
    site.until_said("patient", "Unschedulable", &["1 Insufficient cpu"]).await?;

    drop(provisioner);
    let _repaired = Provisioner::start_repaired(site.admin());
    delete_pod(site.admin(), TEAM, "whole").await?;
    let bound = site.until_bound_with_claim("patient").await?;
    ensure(bound.node == "node-1", || format!("it is on {}", bound.node))
}

/// A file of settings in which a Pod waits so long for its volumes.
fn bind_timeout(seconds: u32) -> Result<NamedTempFile> {
    let doing = "writing the scheduler's settings";
    let kind = json!("VolumeBindingArgs");
    let version = json!("kubescheduler.config.k8s.io/v1");
    let arguments = json!({ "apiVersion": version, "kind": kind, "bindTimeoutSeconds": seconds });
    let settings = json!({
        "apiVersion": version,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": SCHEDULER_NAME,
            "pluginConfig": [{ "name": "VolumeBinding", "args": arguments }],
        }],
    });
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().doing(doing)?;
    std::fs::write(file.path(), settings.to_string()).doing(doing)?;
    Ok(file)
}

/// A volume that was made in another zone than asked for cannot be used: the Pod is not bound, and says so.
pub async fn volume_in_the_wrong_zone_is_told(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    for (number, zone) in [(1, "zone-a"), (2, "zone-b")] {
        let node = NodeTemplate::new("4", "16Gi").label(ZONE, zone);
        site.cluster.create_nodes_numbered([number], &node).await?;
    }
    provisioner::class().fault(Fault::InZone("zone-b")).create(admin, FAST).await?;
    let claim = ClaimTemplate::new(FAST, "1Gi").create(admin, TEAM, "data").await?;
    let _provisioner = Provisioner::start(admin);
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pinned", &PodTemplate::small().claims(&["data"]).only_on("node-1")).await?;
    let volume = format!("pvc-{}", claim.uid().unwrap_or_default());
    let words = format!(
        r#"running PreBind plugin "VolumeBinding": binding volumes: pv "{volume}" node affinity doesn't match node "node-1""#
    );
    site.until_said("pinned", FAILED, &[&words]).await?;
    site.until_held("pinned", &[NOT_HERE]).await?;

    // The claim is bound now, and a Pod that may go there does.
    site.create_pod("free", &PodTemplate::small().claims(&["data"])).await?;
    let bound = site.until_bound_with_claim("free").await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))
}
