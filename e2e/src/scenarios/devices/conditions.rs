//! Devices that are made ready after they were given out.

use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::json;

use super::{DeviceSite, GPU, TEAM};
use crate::error::Result;
use crate::objects::devices::{
    DeviceClaim, DeviceClaimState as _, SliceTemplate, Uses, create_device_class,
    write_claim_status,
};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;

const READY: &str = "example.com/attached";
const FAILED: &str = "example.com/attach-failed";

/// A node with a device that must be attached.
async fn create_attachable(site: &DeviceSite) -> Result<()> {
    site.cluster.create_nodes(1, &NodeTemplate::new("16", "64Gi")).await?;
    create_device_class(site.admin(), GPU, "true").await?;
    let device = json!({
        "bindsToNode": true, "bindingConditions": [READY], "bindingFailureConditions": [FAILED],
    });
    let slice = SliceTemplate::on_node(GPU, "node-1").device("gpu-0", device);
    slice.create(site.admin(), "node-1").await?;
    site.create_claim("claim", &DeviceClaim::of(GPU, 1)).await
}

/// Stands in for the controller of the devices.
async fn say(site: &DeviceSite, condition: &str) -> Result<()> {
    let conditions = json!([{
        "type": condition, "status": "True", "reason": "Attached", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let device =
        json!({ "driver": GPU, "pool": "node-1", "device": "gpu-0", "conditions": conditions });
    write_claim_status(site.admin(), TEAM, "claim", json!({ "devices": [device] })).await
}

/// The devices are given out, and the Pod is bound when they are attached. Others do not wait for that.
pub async fn pod_waits_until_its_device_is_attached(site: &DeviceSite) -> Result<()> {
    create_attachable(site).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &[Uses::Claim("claim")]).await?;
    site.until_claim("claim", "allocated", ResourceClaim::is_allocated).await?;
    site.create_pod_as("other", &PodTemplate::small()).await?;
    site.until_bound("other").await?;
    site.ensure_never_bound("pod")?;
    say(site, READY).await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await
}

/// The Pod says what failed. Its claim gives the device back and gets one anew, which is attached once more.
pub async fn device_that_cannot_be_attached_is_told(site: &DeviceSite) -> Result<()> {
    create_attachable(site).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &[Uses::Claim("claim")]).await?;
    site.until_claim("claim", "allocated", ResourceClaim::is_allocated).await?;
    say(site, FAILED).await?;
    let words = "device binding failed: claim=team-a/claim";
    site.until_said("pod", "SchedulerError", &[words, FAILED]).await?;
    let is_anew = |claim: &ResourceClaim| {
        let told = claim.status.as_ref().and_then(|status| status.devices.as_ref());
        claim.is_allocated() && told.is_none_or(Vec::is_empty)
    };
    site.until_claim("claim", "allocated anew", is_anew).await?;
    say(site, READY).await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await
}
