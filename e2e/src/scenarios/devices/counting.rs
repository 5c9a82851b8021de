//! Devices that are counted: each Pod gets some of its own.

use super::{CANNOT_ALLOCATE, DeviceSite, GPU};
use crate::error::{Result, ensure};
use crate::objects::devices::{DeviceClaim, Uses};

const ONE: &str = "one-gpu";

/// Two GPUs for three Pods: the third goes on when one of the others has ended.
pub async fn third_pod_waits_for_a_device(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[2]).await?;
    site.create_template(ONE, &DeviceClaim::of(GPU, 1)).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("first", &[Uses::Template(ONE)]).await?;
    site.until_bound_with("first", &["node-1/gpu-0"]).await?;
    let claim = site.until_bound_with_claim("first").await?;
    let finalizers = claim.metadata.finalizers.unwrap_or_default();
    ensure(finalizers == ["resource.kubernetes.io/delete-protection"], || {
        format!("the claim has the finalizers {finalizers:?}")
    })?;
    let at = claim.status.and_then(|it| it.allocation?.allocation_timestamp);
    ensure(at.is_some(), || "the allocation does not say since when it is".to_owned())?;

    site.create_pod("second", &[Uses::Template(ONE)]).await?;
    site.until_bound_with("second", &["node-1/gpu-1"]).await?;
    site.create_pod("third", &[Uses::Template(ONE)]).await?;
    let words = format!("0/1 nodes are available: 1 {CANNOT_ALLOCATE}.");
    site.until_held("third", &[&words]).await?;

    site.end_pod("first").await?;
    site.until_bound_with("third", &["node-1/gpu-0"]).await
}
