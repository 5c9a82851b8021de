//! What must be true of claims, volumes and nodes, whatever happened before: read from the objects alone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::error::{Doing as _, Result, ensure};
use crate::objects::pods::PodState as _;
use crate::objects::volumes::{ClaimState, VolumeState as _};

/// Everything there is that bears on volumes, by `namespace/name` or by name.
#[derive(Debug, Default)]
pub struct VolumeView {
    pods: BTreeMap<String, Pod>,
    claims: BTreeMap<String, PersistentVolumeClaim>,
    volumes: BTreeMap<String, PersistentVolume>,
    nodes: BTreeMap<String, Node>,
    csi_nodes: BTreeMap<String, CSINode>,
    attachments: BTreeMap<String, VolumeAttachment>,
}

impl VolumeView {
    /// Not one moment of all kinds, so only for a cluster that is quiet.
    pub async fn read(client: &Client) -> Result<Self> {
        Ok(Self {
            pods: all(client).await?,
            claims: all(client).await?,
            volumes: all(client).await?,
            nodes: all(client).await?,
            csi_nodes: all(client).await?,
            attachments: all(client).await?,
        })
    }

    /// A volume has one claim and a claim one volume; the node of every bound Pod fits its volumes; no node has
    /// more volumes of a driver than it takes.
    pub fn check(&self) -> Result<()> {
        self.check_claims()?;
        self.check_pods()?;
        self.check_limits()
    }

    fn check_claims(&self) -> Result<()> {
        let mut claimed = BTreeMap::<&str, Vec<&str>>::new();
        for (name, volume) in &self.volumes {
            if let Some(uid) = volume.claim().and_then(|claim| claim.uid.as_deref()) {
                claimed.entry(uid).or_default().push(name);
            }
        }
        for (uid, volumes) in claimed {
            ensure(volumes.len() == 1, || format!("claim {uid} has the volumes {volumes:?}"))?;
        }
        let mut used = BTreeMap::<&str, &str>::new();
        for (key, claim) in &self.claims {
            let Some(name) = claim.volume() else { continue };
            let before = used.insert(name, key);
            ensure(before.is_none(), || format!("{before:?} and {key} both have volume {name}"))?;
            let claimant = self.volumes.get(name).and_then(|volume| volume.claim()?.uid.as_deref());
            let is_mutual = !claim.is_bound() || claimant == Some(claim.uid_str());
            // Of a lost claim the volume is gone: that is what lost means.
            ensure(is_mutual || claim.phase() == "Lost", || {
                format!("claim {key} is bound to {name}, which belongs to {claimant:?}")
            })?;
        }
        Ok(())
    }

    fn check_pods(&self) -> Result<()> {
        for (key, pod) in &self.pods {
            let Some(node) = pod.node().filter(|_| !is_over(pod)) else { continue };
            let labels = self.nodes.get(node).map(|node| node.labels().clone());
            for claim in claims_of(pod) {
                let found = self.claims.get(&claim);
                ensure(found.is_some_and(ClaimState::is_bound), || {
                    format!("Pod {key} is on {node}, and its claim {claim} is not bound")
                })?;
                let Some(volume) = self.volume_of(&claim) else { continue };
                let fits = labels.as_ref().is_some_and(|labels| volume.fits(labels));
                ensure(fits, || {
                    format!("Pod {key} is on {node}, where {} cannot be used", volume.name_any())
                })?;
            }
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<()> {
        let mut attached = BTreeMap::<(&str, String), BTreeSet<String>>::new();
        let mut count = |node, volume: &PersistentVolume| {
            if let Some((driver, handle)) = volume.csi_name() {
                attached.entry((node, driver)).or_default().insert(handle);
            }
        };
        for pod in self.pods.values().filter(|pod| !is_over(pod)) {
            let Some(node) = pod.node() else { continue };
            let volumes = claims_of(pod).into_iter().filter_map(|claim| self.volume_of(&claim));
            volumes.for_each(|volume| count(node, volume));
        }
        for attachment in self.attachments.values() {
            let name = attachment.spec.source.persistent_volume_name.as_deref();
            if let Some(volume) = name.and_then(|name| self.volumes.get(name)) {
                count(&attachment.spec.node_name, volume);
            }
        }
        for ((node, driver), handles) in attached {
            let Some(limit) = self.limit(node, &driver) else { continue };
            ensure(handles.len() <= limit, || {
                format!("{node} takes {limit} volumes of {driver} and has {handles:?}")
            })?;
        }
        Ok(())
    }

    fn limit(&self, node: &str, driver: &str) -> Option<usize> {
        let drivers = &self.csi_nodes.get(node)?.spec.drivers;
        let driver = drivers.iter().find(|it| it.name == driver)?;
        usize::try_from(driver.allocatable.as_ref()?.count?).ok()
    }

    fn volume_of(&self, claim: &str) -> Option<&PersistentVolume> {
        self.volumes.get(self.claims.get(claim)?.volume()?)
    }
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// `namespace/name` of each, those made for the Pod included.
pub fn claims_of(pod: &Pod) -> Vec<String> {
    let namespace = pod.namespace().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let names = volumes.filter_map(|volume| match &volume.persistent_volume_claim {
        Some(claim) => Some(claim.claim_name.clone()),
        None => volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name)),
    });
    names.map(|name| format!("{namespace}/{name}")).collect()
}

async fn all<K>(client: &Client) -> Result<BTreeMap<String, K>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.doing(format!("listing {} to check", K::plural(&())))?;
    let key = |object: &K| match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    };
    Ok(list.items.into_iter().map(|object| (key(&object), object)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::objects::volumes::{ZONE, affinity};

    fn put<K: DeserializeOwned>(map: &mut BTreeMap<String, K>, key: &str, object: Value) {
        map.insert(key.to_owned(), serde_json::from_value(object).unwrap());
    }

    fn volume(claim_uid: &str) -> Value {
        json!({ "metadata": { "name": "v" }, "spec": {
            "claimRef": { "uid": claim_uid },
            "nodeAffinity": affinity(ZONE, &["a"]),
            "csi": { "driver": "d", "volumeHandle": claim_uid },
        }})
    }

    fn claim(uid: &str, volume: &str) -> Value {
        let annotations = json!({ "pv.kubernetes.io/bind-completed": "yes" });
        let metadata = json!({ "uid": uid, "annotations": annotations });
        json!({ "metadata": metadata, "spec": { "volumeName": volume } })
    }

    /// A Pod on a node of zone a, with the only volume there is.
    fn sound() -> VolumeView {
        let mut view = VolumeView::default();
        let node = json!({ "metadata": { "name": "n", "labels": { ZONE: "a" } } });
        put(&mut view.nodes, "n", node);
        put(&mut view.volumes, "v", volume("u"));
        put(&mut view.claims, "t/c", claim("u", "v"));
        let volumes = json!([{ "name": "x", "persistentVolumeClaim": { "claimName": "c" } }]);
        let spec = json!({ "nodeName": "n", "containers": [], "volumes": volumes });
        let pod = json!({ "metadata": { "namespace": "t", "name": "p" }, "spec": spec });
        put(&mut view.pods, "t/p", pod);
        view
    }

    fn complaint(view: &VolumeView) -> String {
        view.check().unwrap_err().to_string()
    }

    #[test]
    fn a_sound_view_passes() {
        sound().check().unwrap();
    }

    #[test]
    fn a_claim_with_two_volumes_is_found() {
        let mut view = sound();
        put(&mut view.volumes, "w", volume("u"));
        assert!(complaint(&view).contains("has the volumes"));
    }

    #[test]
    fn a_volume_of_another_claim_is_found() {
        let mut view = sound();
        put(&mut view.volumes, "v", volume("other"));
        assert!(complaint(&view).contains("which belongs to"));
    }

    #[test]
    fn a_pod_where_its_volume_is_not_is_found() {
        let mut view = sound();
        let node = json!({ "metadata": { "name": "n", "labels": { ZONE: "b" } } });
        put(&mut view.nodes, "n", node);
        assert!(complaint(&view).contains("cannot be used"));
    }

    #[test]
    fn a_bound_pod_with_an_unbound_claim_is_found() {
        let mut view = sound();
        put(&mut view.claims, "t/c", json!({ "metadata": { "uid": "u" }, "spec": {} }));
        assert!(complaint(&view).contains("is not bound"));
    }

    #[test]
    fn a_volume_counts_once_and_a_limit_is_held() {
        let mut view = sound();
        let spec =
            json!({ "drivers": [{ "name": "d", "nodeID": "n", "allocatable": { "count": 1 } }] });
        put(&mut view.csi_nodes, "n", json!({ "metadata": { "name": "n" }, "spec": spec }));
        let attachment = |volume: &str| {
            json!({ "metadata": {}, "spec": {
                "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": volume },
            }})
        };
        put(&mut view.attachments, "a", attachment("v"));
        view.check().unwrap();
        put(&mut view.volumes, "w", volume("other"));
        put(&mut view.attachments, "b", attachment("w"));
        assert!(complaint(&view).contains("takes 1 volumes of d"));
    }
}
