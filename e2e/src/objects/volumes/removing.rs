//! Removes volumes and all that belongs to them.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::error::{Doing as _, Result};
use crate::observe::{PATIENCE, until};

/// Where the provisioner of kube-controller-manager makes its folders, always.
const HOST_PATHS: &str = "/tmp/hostpath_pv";

/// Removes every claim and volume, what makes them and what uses them, so that the next scenario starts without.
/// Finalizers are not waited for.
pub async fn clear_volumes(client: &Client) -> Result<()> {
    remove_namespaced::<StatefulSet>(client).await?;
    remove_namespaced::<Pod>(client).await?;
    remove_namespaced::<PersistentVolumeClaim>(client).await?;
    remove_host_paths(client).await?;
    remove_cluster_wide::<PersistentVolume>(client).await?;
    remove_cluster_wide::<StorageClass>(client).await?;
    remove_cluster_wide::<CSINode>(client).await?;
    remove_cluster_wide::<VolumeAttachment>(client).await
}

/// Removes the folders that the provisioner of kube-controller-manager made for the volumes there are, and the
/// folder of them all if that leaves it empty.
pub async fn remove_host_paths(client: &Client) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let volumes = volumes.list(&ListParams::default()).await.doing("listing volumes to remove")?;
    let sources = volumes.iter().filter_map(|volume| volume.spec.as_ref()?.host_path.as_ref());
    for source in sources.filter(|source| Path::new(&source.path).starts_with(HOST_PATHS)) {
        // The controller may have removed it already.
        let _ = fs::remove_dir_all(&source.path);
    }
    // Not empty: there is another control plane that uses it.
    let _ = fs::remove_dir(HOST_PATHS);
    Ok(())
}

pub(in crate::objects) async fn remove_namespaced<K>(client: &Client) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned + Send + 'static,
{
    let all: Api<K> = Api::all(client.clone());
    let list = all.list(&ListParams::default()).await.doing("listing objects to remove")?;
    for object in list {
        let api = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
        remove(&api, &object).await?;
    }
    until(&all, "the objects to be gone", PATIENCE, std::collections::BTreeMap::is_empty)
        .await
        .map(drop)
}

pub(in crate::objects) async fn remove_cluster_wide<K>(client: &Client) -> Result<()>
where
    K: Resource<Scope = ClusterResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned + Send + 'static,
{
    let all: Api<K> = Api::all(client.clone());
    let list = all.list(&ListParams::default()).await.doing("listing objects to remove")?;
    for object in list {
        remove(&all, &object).await?;
    }
    until(&all, "the objects to be gone", PATIENCE, std::collections::BTreeMap::is_empty)
        .await
        .map(drop)
}

async fn remove<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let name = object.name_any();
    let doing = format!("removing {name}");
    let now = DeleteParams::default().grace_period(0);
    gone_is_fine(api.delete(&name, &now).await.map(drop)).doing(doing.clone())?;
    let unguarded = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let patched = api.patch(&name, &PatchParams::default(), &unguarded).await;
    gone_is_fine(patched.map(drop)).doing(doing)
}

fn gone_is_fine(outcome: kube::Result<()>) -> kube::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => outcome,
    }
}
