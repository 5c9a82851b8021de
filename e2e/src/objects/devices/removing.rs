//! Removes devices and all that belongs to them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use kube::Client;

use super::super::volumes::{remove_cluster_wide, remove_namespaced};
use crate::error::Result;

/// Removes every claim and device, and what uses them, so that the next scenario starts without. Finalizers are not
/// waited for.
pub async fn clear_devices(client: &Client) -> Result<()> {
    remove_namespaced::<ResourceClaimTemplate>(client).await?;
    remove_namespaced::<Pod>(client).await?;
    remove_namespaced::<ResourceClaim>(client).await?;
    remove_cluster_wide::<DeviceClass>(client).await?;
    remove_cluster_wide::<ResourceSlice>(client).await
}
