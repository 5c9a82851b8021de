//! ReadWriteOncePod: one Pod at a time.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::{LOCAL, TEAM, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::objects::volumes::{ClaimTemplate, ClassTemplate, VolumeTemplate};

const OTHER_TEAM: &str = "team-b";
const ONCE: &str = "ReadWriteOncePod";
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already \
                      in-use by another pod";

/// The second Pod waits, whatever node, and goes when the first is deleted.
pub async fn second_pod_waits_for_the_holder(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(site.admin(), LOCAL).await?;
    create_claim(site, TEAM, "a").await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    let template = PodTemplate::small().claims(&["data"]);
    site.create_pod("first", &template).await?;
    site.until_bound_with_claim("first").await?;
    site.create_pod("second", &template).await?;
    let message = site.until_held("second", &[IN_USE]).await?;
    let expected = format!("0/2 nodes are available: 2 {IN_USE}.");
    ensure(message.starts_with(&expected), || format!("{message:?} does not say {expected:?}"))?;

    let deleted = std::time::Instant::now();
    delete_pod(site.admin(), TEAM, "first").await?;
    site.until_bound_with_claim("second").await?;
    site.ensure_prompt("second", deleted).await
}

/// A more important Pod sends the holder away, and nobody else: not the less important Pod of another namespace
/// whose claim has the same name, for its end would free nothing.
pub async fn holder_alone_is_preempted(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.ensure_namespace(OTHER_TEAM).await?;
    for (class, value) in [("urgent", 1000), ("middling", 100)] {
        site.cluster.ensure_priority_class(class, value).await?;
    }
    site.cluster.create_nodes(1, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    create_claim(site, TEAM, "a").await?;
    create_claim(site, OTHER_TEAM, "b").await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    let template = PodTemplate::small().claims(&["data"]).without_grace();
    let bystander = template.create(admin, OTHER_TEAM, "bystander").await?;
    let is_bound = |pod: &Pod| pod.node().is_some();
    site.cluster.until_pod(OTHER_TEAM, "bystander", "bound", is_bound).await?;
    site.create_pod("holder", &template.clone().priority("middling", 100)).await?;
    site.until_bound_with_claim("holder").await?;

    site.create_pod("urgent", &template.priority("urgent", 1000)).await?;
    let bound = site.until_bound_with_claim("urgent").await?;
    ensure(bound.node == "node-1", || format!("it is on {}", bound.node))?;
    let event = site.cluster.until_event(TEAM, "holder", "Preempted").await?;
    super::ensure_contains(event.message.as_deref().unwrap_or_default(), &["node-1"])?;
    let left = site.cluster.until_pod(OTHER_TEAM, "bystander", "left alone", |_| true).await?;
    ensure(left.uid() == bystander.uid() && left.metadata.deletion_timestamp.is_none(), || {
        "the Pod of another namespace was sent away".to_owned()
    })
}

/// A claim `data` that only one Pod may use, and the volume that it gets.
async fn create_claim(site: &VolumeSite, namespace: &str, volume: &str) -> Result<()> {
    let template = VolumeTemplate::host_path(LOCAL, "5Gi").modes(&[ONCE]);
    site.create_volume(volume, &template).await?;
    let claim = ClaimTemplate::new(LOCAL, "5Gi").modes(&[ONCE]);
    claim.create(site.admin(), namespace, "data").await.map(drop)
}
