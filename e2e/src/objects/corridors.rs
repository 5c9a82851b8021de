//! Corridors, with a status written by the scenario in place of a controller.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::error::{Doing as _, Error, Result};

/// A Corridor that exists.
#[derive(Debug, Clone)]
pub struct Corridor {
    api: Api<DynamicObject>,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub min_gbps: u32,
}

impl Corridor {
    /// Creates it without a status: it is not allocated yet.
    pub async fn create(
        client: &Client,
        namespace: &str,
        name: &str,
        min_gbps: u32,
    ) -> Result<Self> {
        let doing = format!("creating Corridor {namespace}/{name}");
        let api = corridors_in(client, namespace);
        let object = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1",
            "kind": "Corridor",
            "metadata": { "namespace": namespace, "name": name },
            "spec": {
                "lanes": 4,
                "lambdaNm": [1550, 1551, 1552, 1553],
                "minGbps": min_gbps,
                "attestationRequired": false,
            },
        }))
        .doing(doing.clone())?;
        let created = api.create(&PostParams::default(), &object).await.doing(doing.clone())?;
        let uid = created.uid().ok_or_else(|| Error::malformed(doing, "it got no UID"))?;
        Ok(Self { api, namespace: namespace.into(), name: name.into(), uid, min_gbps })
    }

    /// Creates it and makes it Ready with its floor met.
    pub async fn create_ready(
        client: &Client,
        namespace: &str,
        name: &str,
        min_gbps: u32,
    ) -> Result<Self> {
        let corridor = Self::create(client, namespace, name, min_gbps).await?;
        corridor.set_status("Ready", min_gbps).await?;
        Ok(corridor)
    }

    pub async fn set_status(&self, phase: &str, achievable_gbps: u32) -> Result<()> {
        let status = json!({ "status": {
            "phase": phase,
            "achievableGbps": achievable_gbps,
            "corridorId": self.corridor_id(),
        }});
        self.api
            .patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .map(drop)
            .doing(format!("writing the status of Corridor {}", self.reference()))
    }

    /// As Pods refer to it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The id that a daemon would have given it.
    pub fn corridor_id(&self) -> String {
        format!("cor-{}", self.name)
    }

    /// The grant that a Binding writes for so many Gbps of it.
    pub fn grant(&self, gbps: u64) -> String {
        format!(r#"{{"v":1,"corridor":{{"uid":"{}","milliGbps":{}}}}}"#, self.uid, gbps * 1000)
    }
}

/// The Corridors of one namespace.
pub fn corridors_in(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &corridor_resource())
}

/// The Corridors of every namespace.
pub fn all_corridors(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &corridor_resource())
}

fn corridor_resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("corridoros.io", "v1alpha1", "Corridor");
    ApiResource::from_gvk_with_plural(&kind, "corridors")
}
