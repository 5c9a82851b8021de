//! How many volumes of a driver a node takes.

use std::time::Instant;

use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::DeleteParams;

use super::{LOCAL, TEAM, VolumeSite};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::objects::volumes::{
    ClaimState, ClaimTemplate, ClassTemplate, VolumeTemplate, attach, create_csi_node,
    set_csi_limit,
};

/// There is no such driver, and none is needed.
const DRIVER: &str = "disks.e2e.corridoros.io";
const TOO_MANY: &str = "node(s) exceed max volume count";

/// Two nodes that take two volumes and one: three Pods fit, the fourth waits until a node takes more.
pub async fn limits_of_drivers_hold(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    create_csi_node(admin, "node-1", DRIVER, 2).await?;
    create_csi_node(admin, "node-2", DRIVER, 1).await?;
    ClassTemplate::made_by_hand().immediate().create(admin, LOCAL).await?;
    let names = ["one", "two", "three", "four"];
    for name in names {
        create_bound_claim(site, name).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;

    for name in &names[..3] {
        site.create_pod(name, &PodTemplate::small().claims(&[name])).await?;
        site.until_bound_with_claim(name).await?;
    }
    // A volume counts once on its node, however many Pods use it.
    site.create_pod("beside", &PodTemplate::small().claims(&["one"])).await?;
    site.until_bound_with_claim("beside").await?;
    site.create_pod("four", &PodTemplate::small().claims(&["four"])).await?;
    let message = site.until_held("four", &[TOO_MANY]).await?;
    let expected = format!("0/2 nodes are available: 2 {TOO_MANY}.");
    ensure(message.starts_with(&expected), || format!("{message:?} does not say {expected:?}"))?;

    let raised = Instant::now();
    set_csi_limit(admin, "node-2", DRIVER, 2).await?;
    let bound = site.until_bound_with_claim("four").await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    site.ensure_prompt("four", raised).await
}

/// A full node takes the very Pod whose volume it still has, and no other; the other goes when the volume is
/// detached.
pub async fn volume_that_is_still_attached_counts_once(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(1, &NodeTemplate::new("4", "16Gi")).await?;
    create_csi_node(admin, "node-1", DRIVER, 1).await?;
    ClassTemplate::made_by_hand().immediate().create(admin, LOCAL).await?;
    for name in ["attached", "other"] {
        create_bound_claim(site, name).await?;
    }
    attach(admin, "left-over", DRIVER, "node-1", "attached").await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("other", &PodTemplate::small().claims(&["other"])).await?;
    let expected = format!("0/1 nodes are available: 1 {TOO_MANY}.");
    site.until_held("other", &[&expected]).await?;
    site.create_pod("returning", &PodTemplate::small().claims(&["attached"])).await?;
    site.until_bound_with_claim("returning").await?;

    delete_pod(admin, TEAM, "returning").await?;
    let detached = Instant::now();
    let attachments: Api<VolumeAttachment> = Api::all(admin.clone());
    let deleted = attachments.delete("left-over", &DeleteParams::default()).await;
    deleted.map(drop).doing("detaching a volume")?;
    site.until_bound_with_claim("other").await?;
    site.ensure_prompt("other", detached).await
}

/// A claim and its volume of the same name, bound.
async fn create_bound_claim(site: &VolumeSite, name: &str) -> Result<()> {
    let template = VolumeTemplate::csi(LOCAL, "5Gi", DRIVER, name).reserved_for(TEAM, name);
    template.create(site.admin(), name).await?;
    ClaimTemplate::new(LOCAL, "5Gi").create(site.admin(), TEAM, name).await?;
    site.until_claim(name, "bound", ClaimState::is_bound).await.map(drop)
}
