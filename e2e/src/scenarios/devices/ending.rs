//! Claims that are deleted while something waits for them or for what they have.

use super::{CANNOT_ALLOCATE, DeviceSite, GPU, TEAM};
use crate::error::Result;
use crate::objects::devices::{DeviceClaim, DeviceClaimState as _, Uses, delete_device_claim};

/// The Pod says that its claim is not there, and goes on with another of its name.
pub async fn claim_is_deleted_while_its_pod_waits(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    for claim in ["held", "wanted"] {
        site.create_claim(claim, &DeviceClaim::of(GPU, 1)).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("holder", &[Uses::Claim("held")]).await?;
    site.until_bound("holder").await?;
    site.create_pod("pod", &[Uses::Claim("wanted")]).await?;
    site.until_held("pod", &[CANNOT_ALLOCATE]).await?;
    delete_device_claim(site.admin(), TEAM, "wanted").await?;
    site.until_held("pod", &["could not find ResourceClaim \"team-a/wanted\""]).await?;
    site.end_pod("holder").await?;
    site.until_claim("held", "free", |claim| !claim.is_allocated()).await?;
    site.create_claim("wanted", &DeviceClaim::of(GPU, 1)).await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await
}

/// What a claim had that no Pod used is another's as soon as it is gone.
pub async fn deleted_claim_frees_its_devices(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    site.create_claim("idle", &DeviceClaim::of(GPU, 1)).await?;
    site.allocate("idle", "node-1", "gpu-0").await?;
    site.create_template("one", &DeviceClaim::of(GPU, 1)).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &[Uses::Template("one")]).await?;
    site.until_held("pod", &[CANNOT_ALLOCATE]).await?;
    delete_device_claim(site.admin(), TEAM, "idle").await?;
    site.until_claim_is_gone("idle").await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await
}

/// A claim that is being deleted takes no new Pods; once the last of its Pods has ended it is gone.
pub async fn claim_at_its_end_takes_no_pods(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    site.create_claim("claim", &DeviceClaim::of(GPU, 1)).await?;
    site.create_template("one", &DeviceClaim::of(GPU, 1)).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("user", &[Uses::Claim("claim")]).await?;
    site.until_bound("user").await?;
    delete_device_claim(site.admin(), TEAM, "claim").await?;
    site.create_pod("late", &[Uses::Claim("claim")]).await?;
    site.until_held("late", &["resourceclaim \"claim\" is being deleted"]).await?;
    site.create_pod("other", &[Uses::Template("one")]).await?;
    site.until_held("other", &[CANNOT_ALLOCATE]).await?;
    site.end_pod("user").await?;
    site.until_claim_is_gone("claim").await?;
    site.until_bound_with("other", &["node-1/gpu-0"]).await?;
    site.ensure_never_bound("late")
}
