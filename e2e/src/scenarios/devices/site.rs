//! A cluster with devices, and a record of everything that happens to claims, slices and Pods in it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::api::{ApiResource, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{GPU, TEAM};
use crate::checkers::{DeviceFigures, DeviceKind, DeviceView, forgotten_claims};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::devices::{
    DeviceClaim, DeviceClaimState as _, REQUEST, SliceTemplate, Uses, claims_in,
    create_class_of_driver, write_claim_status,
};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::observe::PATIENCE;
use crate::versions::{Key, Version, Versions};

const PODS: &str = "pods";
const CLAIMS: &str = "resourceclaims";
const SLICES: &str = "resourceslices";

const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct DeviceSite {
    pub cluster: Cluster,
    versions: Versions,
}

impl DeviceSite {
    /// Records from now on.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        cluster.ensure_namespace(TEAM).await?;
        let kinds = [
            ApiResource::erase::<Pod>(&()),
            ApiResource::erase::<ResourceClaim>(&()),
            ApiResource::erase::<ResourceSlice>(&()),
        ];
        let versions = Versions::start(cluster.admin(), &kinds).await?;
        Ok(Self { cluster: cluster.clone(), versions })
    }

    /// To be called when the story is over: what must be true of devices, in every version.
    pub async fn finish(&self) -> Result<DeviceFigures> {
        self.until_nothing_is_forgotten().await?;
        self.check().await
    }

    /// The same, of what has happened so far.
    pub async fn check(&self) -> Result<DeviceFigures> {
        let last = [
            newest::<Pod>(self.admin()).await?,
            newest::<ResourceClaim>(self.admin()).await?,
            newest::<ResourceSlice>(self.admin()).await?,
        ];
        let deadline = Instant::now() + PATIENCE;
        while [PODS, CLAIMS, SLICES].into_iter().zip(last).any(|it| !self.has_recorded(it)) {
            ensure(Instant::now() < deadline, || "the record does not come to its end".to_owned())?;
            sleep(LOOK_EVERY).await;
        }
        let of_kind = |kind: DeviceKind, plural: &str| -> Vec<(DeviceKind, Version)> {
            let all = self.versions.histories(plural).into_iter().flatten();
            all.map(|version| (kind, version)).collect()
        };
        let pods = of_kind(DeviceKind::Pod, PODS);
        let claims = of_kind(DeviceKind::Claim, CLAIMS);
        DeviceView::replay([pods, claims, of_kind(DeviceKind::Slice, SLICES)].concat())
    }

    fn has_recorded(&self, (plural, last): (&str, u64)) -> bool {
        let all = self.versions.histories(plural).into_iter().flatten();
        all.map(|version| version.resource_version).max().unwrap_or(0) >= last
    }

    /// The controllers free what Pods that are over had, and nothing is left that they cannot free.
    async fn until_nothing_is_forgotten(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let claims = all::<ResourceClaim>(self.admin()).await?;
            let forgotten = forgotten_claims(&claims, &all::<Pod>(self.admin()).await?);
            if forgotten.is_empty() {
                return Ok(());
            }
            ensure(Instant::now() < deadline, || {
                format!("these claims keep devices for Pods that are over: {forgotten:?}")
            })?;
            sleep(LOOK_EVERY).await;
        }
    }

    pub fn admin(&self) -> &Client {
        self.cluster.admin()
    }

    /// A class of GPUs, and a node for each of these numbers with so many of them.
    pub(super) async fn create_gpus(&self, nodes: &[usize]) -> Result<()> {
        create_class_of_driver(self.admin(), GPU, GPU).await?;
        let node = NodeTemplate::new("16", "64Gi");
        self.cluster.create_nodes(nodes.len(), &node).await?;
        for (index, count) in nodes.iter().enumerate() {
            let node = format!("node-{}", index + 1);
            let names: Vec<_> = (0..*count).map(|number| format!("gpu-{number}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            SliceTemplate::on_node(GPU, &node).devices(&names).create(self.admin(), &node).await?;
        }
        Ok(())
    }

    pub(super) async fn create_claim(&self, name: &str, claim: &DeviceClaim) -> Result<()> {
        claim.create(self.admin(), TEAM, name).await.map(drop)
    }

    pub(super) async fn create_template(&self, name: &str, claim: &DeviceClaim) -> Result<()> {
        claim.create_template(self.admin(), TEAM, name).await.map(drop)
    }

    /// Gives a claim one device of a node, for no Pod, as another scheduler does.
    pub(super) async fn allocate(&self, claim: &str, node: &str, device: &str) -> Result<()> {
        allocate_elsewhere(self.admin(), claim, node, device).await
    }

    /// A small Pod with these claims.
    pub(super) async fn create_pod(&self, name: &str, uses: &[Uses<'_>]) -> Result<Pod> {
        self.create_pod_as(name, &PodTemplate::small().devices(uses)).await
    }

    pub(super) async fn create_pod_as(&self, name: &str, template: &PodTemplate) -> Result<Pod> {
        template.create(self.admin(), TEAM, name).await
    }

    /// Stands in for a kubelet whose Pod has done its work.
    pub(super) async fn end_pod(&self, name: &str) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
        let (pods, params) = (self.cluster.pods(TEAM), PatchParams::default());
        let ended = pods.patch_status(name, &params, &patch).await;
        ended.map(drop).doing(format!("ending Pod {name}"))
    }

    pub(super) async fn until_bound(&self, pod: &str) -> Result<Pod> {
        self.until(&key(PODS, pod), "bound", |pod: &Pod| pod.node().is_some()).await
    }

    /// Waits until a Pod is bound, and makes sure where.
    pub(super) async fn until_bound_to(&self, pod: &str, node: &str) -> Result<()> {
        let bound = self.until_bound(pod).await?;
        ensure(bound.node() == Some(node), || {
            format!("Pod {pod} is on {:?} and not on {node}", bound.node())
        })
    }

    /// Waits until a Pod is bound, and returns its claim, which is its only one. The claim is older than the Binding.
    pub(super) async fn until_bound_with_claim(&self, pod: &str) -> Result<ResourceClaim> {
        let bound = self.until_bound(pod).await?;
        let names = claim_names(&bound);
        let [name] = &names[..] else {
            return Err(Error::malformed("looking for the claim of a Pod", format!("{names:?}")));
        };
        let is_for_it = |claim: &ResourceClaim| claim.users().contains(&bound.uid_str());
        self.until_claim(name, "reserved when its Pod is bound", is_for_it).await
    }

    /// Waits until a Pod is bound, and makes sure that it has exactly these devices by its only claim.
    pub(super) async fn until_bound_with(&self, pod: &str, devices: &[&str]) -> Result<()> {
        let found = self.until_bound_with_claim(pod).await?.devices();
        ensure(found == devices, || format!("Pod {pod} has {found:?} and not {devices:?}"))
    }

    /// Waits until a Pod has said all this with this reason, maybe for a moment only.
    pub(super) async fn until_said(&self, pod: &str, reason: &str, parts: &[&str]) -> Result<()> {
        let said = |pod: &Pod| {
            let has_reason = pod.scheduled_condition().and_then(|it| it.reason.as_deref());
            let message = pod.waiting_message().unwrap_or_default();
            has_reason == Some(reason) && parts.iter().all(|part| message.contains(part))
        };
        let awaited = format!("held with the reason {reason} and the words {parts:?}");
        let key = key(PODS, pod);
        let look = |_: Option<&Value>| self.typed(&key).iter().any(said);
        self.versions.until(&key, &awaited, PATIENCE, look).await.map(drop)
    }

    /// Waits until a Pod is held with all this, and makes sure that it is not bound.
    pub(super) async fn until_held(&self, pod: &str, parts: &[&str]) -> Result<()> {
        self.until_said(pod, "Unschedulable", parts).await?;
        self.ensure_never_bound(pod)
    }

    pub(super) fn ensure_never_bound(&self, pod: &str) -> Result<()> {
        let was_bound = self.typed::<Pod>(&key(PODS, pod)).iter().any(|pod| pod.node().is_some());
        ensure(!was_bound, || format!("Pod {pod} is bound, and should be held"))
    }

    /// No version of this claim had devices.
    pub(super) fn ensure_never_allocated(&self, claim: &str) -> Result<()> {
        let versions = self.typed::<ResourceClaim>(&key(CLAIMS, claim));
        let was_allocated = versions.iter().any(ResourceClaim::is_allocated);
        ensure(!was_allocated, || format!("claim {claim} had devices, and should have none"))
    }

    pub(super) async fn until_claim(
        &self,
        name: &str,
        awaited: &str,
        is: impl Fn(&ResourceClaim) -> bool,
    ) -> Result<ResourceClaim> {
        self.until(&key(CLAIMS, name), awaited, is).await
    }

    pub(super) async fn until_claim_is_gone(&self, name: &str) -> Result<()> {
        let gone = |claim: Option<&Value>| claim.is_none();
        self.versions.until(&key(CLAIMS, name), "gone", PATIENCE, gone).await.map(drop)
    }

    pub(super) async fn until_pod(
        &self,
        name: &str,
        awaited: &str,
        is: impl Fn(&Pod) -> bool,
    ) -> Result<Pod> {
        self.until(&key(PODS, name), awaited, is).await
    }

    async fn until<K: DeserializeOwned>(
        &self,
        key: &Key,
        awaited: &str,
        is: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let mut found = None;
        let look = |now: Option<&Value>| {
            found = now.and_then(|now| serde_json::from_value(now.clone()).ok()).filter(&is);
            found.is_some()
        };
        self.versions.until(key, awaited, PATIENCE, look).await?;
        found.ok_or_else(|| Error::malformed(format!("waiting for {}", key.2), "it vanished"))
    }

    fn typed<K: DeserializeOwned>(&self, key: &Key) -> Vec<K> {
        let history = self.versions.history(key).into_iter();
        history.filter_map(|version| serde_json::from_value(version.object).ok()).collect()
    }
}

/// Gives a claim one device of a node, for no Pod, as another scheduler does.
pub(super) async fn allocate_elsewhere(
    client: &Client,
    claim: &str,
    node: &str,
    device: &str,
) -> Result<()> {
    let finalizers = ["resource.kubernetes.io/delete-protection"];
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let patched = claims_in(client, TEAM).patch(claim, &PatchParams::default(), &patch).await;
    patched.map(drop).doing(format!("protecting claim {claim}"))?;
    let name = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let selector = json!({ "nodeSelectorTerms": [{ "matchFields": [name] }] });
    let result = json!({ "request": REQUEST, "driver": GPU, "pool": node, "device": device });
    let allocation = json!({ "devices": { "results": [result] }, "nodeSelector": selector });
    write_claim_status(client, TEAM, claim, json!({ "allocation": allocation })).await
}

/// The claims that a Pod names, and those that were made for it.
fn claim_names(pod: &Pod) -> Vec<String> {
    let named = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let named = named.filter_map(|it| it.resource_claim_name.clone());
    let made = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    named.chain(made.filter_map(|it| it.resource_claim_name.clone())).collect()
}

async fn all<K>(client: &Client) -> Result<Vec<Value>>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let doing = format!("listing {} to check", K::plural(&()));
    let list = Api::<K>::all(client.clone()).list(&ListParams::default()).await;
    let list = list.doing(doing.clone())?.items.into_iter();
    list.map(|object| serde_json::to_value(object).doing(doing.clone())).collect()
}

/// The resourceVersion of the object that was changed last.
async fn newest<K>(client: &Client) -> Result<u64>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let list = Api::<K>::all(client.clone()).list(&ListParams::default()).await;
    let list = list.doing(format!("listing {} to check", K::plural(&())))?;
    let versions = list.items.iter().filter_map(|object| object.resource_version()?.parse().ok());
    Ok(versions.max().unwrap_or(0))
}

fn key(plural: &str, name: &str) -> Key {
    let namespace = if plural == SLICES { "" } else { TEAM };
    (plural.to_owned(), namespace.to_owned(), name.to_owned())
}
