//! MemoryBundles, with a status written by the scenario in place of a controller.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::error::{Doing as _, Error, Result};

/// A MemoryBundle that exists.
#[derive(Debug, Clone)]
pub struct Bundle {
    api: Api<DynamicObject>,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Bundle {
    /// Creates one that many Pods may share, without a status: it is not allocated yet.
    pub async fn create(
        client: &Client,
        namespace: &str,
        name: &str,
        floor_gbs: u32,
    ) -> Result<Self> {
        let doing = format!("creating MemoryBundle {namespace}/{name}");
        let api = bundles_in(client, namespace);
        let object = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1",
            "kind": "MemoryBundle",
            "metadata": { "namespace": namespace, "name": name },
            "spec": {
                "bytes": 1_u64 << 30,
                "latencyClass": "T2",
                "bandwidthFloorGBs": floor_gbs,
                "shareable": true,
            },
        }))
        .doing(doing.clone())?;
        let created = api.create(&PostParams::default(), &object).await.doing(doing.clone())?;
        let uid = created.uid().ok_or_else(|| Error::malformed(doing, "it got no UID"))?;
        Ok(Self { api, namespace: namespace.into(), name: name.into(), uid })
    }

    pub async fn set_status(&self, phase: &str, achieved_gbs: u32) -> Result<()> {
        let status = json!({ "status": {
            "phase": phase,
            "achievedGBs": achieved_gbs,
            "ffmHandle": self.ffm_handle(),
        }});
        self.api
            .patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .map(drop)
            .doing(format!("writing the status of MemoryBundle {}", self.reference()))
    }

    /// As Pods refer to it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The handle that a daemon would have given it.
    pub fn ffm_handle(&self) -> String {
        format!("ffm-{}", self.name)
    }
}

/// The MemoryBundles of one namespace.
pub fn bundles_in(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &bundle_resource())
}

/// The MemoryBundles of every namespace.
pub fn all_bundles(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &bundle_resource())
}

fn bundle_resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("corridoros.io", "v1alpha1", "MemoryBundle");
    ApiResource::from_gvk_with_plural(&kind, "memorybundles")
}
