//! Pods that exist before what they need: each says what it waits for, and goes on when it comes.

use std::time::Instant;

use kube::ResourceExt as _;

use super::{LOCAL, NO_VOLUME, TEAM, UNBOUND, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;
use crate::objects::volumes::{ClaimTemplate, ClassTemplate, VolumeTemplate};

const POD: &str = "early";
const CLAIM: &str = "data";
const VOLUME: &str = "volume";

/// The claim comes last.
pub async fn pod_older_than_its_claim(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(site.admin(), LOCAL).await?;
    site.create_volume(VOLUME, &VolumeTemplate::local(LOCAL, "5Gi", "node-2")).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    create_pod(site).await?;
    let words = r#"0/2 nodes are available: persistentvolumeclaim "data" not found"#;
    site.until_held(POD, &[words]).await?;

    let came = Instant::now();
    create_claim(site).await?;
    goes_on(site, came).await
}

/// The volume comes last, for a claim that waits for its Pod.
pub async fn pod_older_than_its_volume(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(site.admin(), LOCAL).await?;
    create_claim(site).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    create_pod(site).await?;
    site.until_held(POD, &[&format!("0/2 nodes are available: 2 {NO_VOLUME}.")]).await?;

    site.create_volume(VOLUME, &VolumeTemplate::local(LOCAL, "5Gi", "node-2")).await?;
    goes_on(site, site.available_at(VOLUME)?).await
}

/// The class comes last: a claim of a class that is not there is not waited for by anybody.
pub async fn pod_older_than_its_class(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    create_claim(site).await?;
    site.create_volume(VOLUME, &VolumeTemplate::local("other", "5Gi", "node-1")).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    create_pod(site).await?;
    site.until_held(POD, &[&format!("0/2 nodes are available: {UNBOUND}")]).await?;

    ClassTemplate::made_by_hand().create(site.admin(), LOCAL).await?;
    site.until_held(POD, &[&format!("0/2 nodes are available: 2 {NO_VOLUME}.")]).await?;
    let fitting = VolumeTemplate::local(LOCAL, "5Gi", "node-2");
    site.create_volume("fitting", &fitting).await?;
    let bound = site.until_bound_with_claim(POD).await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    site.ensure_claimed_promptly("fitting", POD, site.available_at("fitting")?)?;
    site.ensure_prompt(POD, site.claim_bound_at(CLAIM)?).await
}

/// The volume comes last, for a claim that is bound without its Pod: by the controller, not by the scheduler.
pub async fn pod_older_than_what_binds_its_claim_at_once(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().immediate().create(site.admin(), LOCAL).await?;
    create_claim(site).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    create_pod(site).await?;
    site.until_held(POD, &[&format!("0/2 nodes are available: {UNBOUND}")]).await?;

    VolumeTemplate::local(LOCAL, "5Gi", "node-2").create(site.admin(), VOLUME).await?;
    let bound = site.until_bound_with_claim(POD).await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    site.ensure_prompt(POD, site.claim_bound_at(CLAIM)?).await
}

async fn create_claim(site: &VolumeSite) -> Result<()> {
    ClaimTemplate::new(LOCAL, "5Gi").create(site.admin(), TEAM, CLAIM).await.map(drop)
}

async fn create_pod(site: &VolumeSite) -> Result<()> {
    site.create_pod(POD, &PodTemplate::small().claims(&[CLAIM])).await.map(drop)
}

/// The volume is claimed soon after what was missing came, and the Pod bound soon after its claim: what lies
/// between is the controller's.
async fn goes_on(site: &VolumeSite, came: Instant) -> Result<()> {
    let bound = site.until_bound_with_claim(POD).await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    let found = bound.volume.name_any();
    ensure(found == VOLUME, || format!("it has {found}"))?;
    site.ensure_claimed_promptly(VOLUME, POD, came)?;
    site.ensure_prompt(POD, site.claim_bound_at(CLAIM)?).await
}
