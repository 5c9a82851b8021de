//! Pods with a claim and a Corridor: neither is taken without the other.

use k8s_openapi::api::core::v1::Pod;

use super::{LOCAL, NO_VOLUME, TEAM, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{GRANT, PodState as _, PodTemplate, delete_pod};
use crate::objects::volumes::{ClaimState as _, ClaimTemplate, ClassTemplate, VolumeTemplate};

async fn create_claim(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(site.admin(), LOCAL).await?;
    ClaimTemplate::new(LOCAL, "5Gi").create(site.admin(), TEAM, "data").await.map(drop)
}

fn ensure_granted(pod: &Pod, corridor: &Corridor, gbps: u64) -> Result<()> {
    let (found, expected) = (pod.annotation(GRANT), corridor.grant(gbps));
    ensure(found == Some(&expected), || format!("{GRANT} is {found:?}, not {expected}"))
}

/// While the corridor is below its floor, nothing is claimed for a Pod that would fit otherwise.
pub async fn claim_waits_for_the_corridor(site: &VolumeSite) -> Result<()> {
    create_claim(site).await?;
    site.create_volume("volume", &VolumeTemplate::local(LOCAL, "5Gi", "node-2")).await?;
    let _lease = site.cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create(site.admin(), TEAM, "c1", 100).await?;
    corridor.set_status("Ready", 40).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("pod", &PodTemplate::small().claims(&["data"]).corridor(&corridor, "60"))
        .await?;
    site.until_held("pod", &["corridor team-a/c1 (Ready): "]).await?;
    site.ensure_unclaimed("volume")?;

    corridor.set_status("Ready", 100).await?;
    let bound = site.until_bound_with_claim("pod").await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    ensure_granted(&site.until_bound("pod").await?, &corridor, 60)
}

/// While there is no volume, the bandwidth is another's; while it is, the volume is not claimed.
pub async fn corridor_waits_for_the_claim(site: &VolumeSite) -> Result<()> {
    create_claim(site).await?;
    let _lease = site.cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create_ready(site.admin(), TEAM, "c1", 100).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    let with_claim = PodTemplate::small().claims(&["data"]).corridor(&corridor, "60");
    site.create_pod("pod", &with_claim).await?;
    site.until_held("pod", &[NO_VOLUME]).await?;
    site.create_pod("other", &PodTemplate::small().corridor(&corridor, "100")).await?;
    ensure_granted(&site.until_bound("other").await?, &corridor, 100)?;

    site.create_volume("volume", &VolumeTemplate::local(LOCAL, "5Gi", "node-1")).await?;
    site.until_held("pod", &["corridor team-a/c1 (Ready): "]).await?;
    site.ensure_unclaimed("volume")?;
    let chosen = site.claim_versions("data").iter().any(|it| it.selected_node().is_some());
    ensure(!chosen, || "a node was chosen for the claim of a Pod without bandwidth".to_owned())?;

    delete_pod(site.admin(), TEAM, "other").await?;
    let bound = site.until_bound_with_claim("pod").await?;
    ensure(bound.node == "node-1", || format!("it is on {}", bound.node))?;
    ensure_granted(&site.until_bound("pod").await?, &corridor, 60)
}
