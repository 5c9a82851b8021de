//! What a change behind volumes means to Pods that wait: to which of them, and on which Nodes. Thousands may wait whose
//! claims differ, and most changes concern a few.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    ClusterPod, CsiStorageCapacity, NodeName, ObjectKey, PersistentVolume, PersistentVolumeClaim,
    PodClaim, PodVolume, PodVolumeBindings, VolumeAttachment,
};

use crate::by_topology::Narrowing;
use crate::cluster::Cluster;
use crate::cycle::{NotFiltered, PodContext};
use crate::plugins::{Plugin, makes_volumes};
use crate::rules::Rules;
use crate::volume_index::is_free;

/// What has changed behind volumes.
#[derive(Clone, Copy, Debug)]
pub enum VolumeChange<'a> {
    /// The Pods that use the claim may be rejected for another reason now.
    Claim {
        before: Option<&'a PersistentVolumeClaim>,
        after: Option<&'a PersistentVolumeClaim>,
    },
    /// A StorageClass: the same of all Pods with volumes.
    Class,
    Volume {
        before: Option<&'a PersistentVolume>,
        after: Option<&'a PersistentVolume>,
    },
    /// What a placed Pod had taken is free again.
    Released(&'a PodVolumeBindings),
    Capacity {
        before: Option<&'a CsiStorageCapacity>,
        after: Option<&'a CsiStorageCapacity>,
    },
    Attachment {
        before: Option<&'a VolumeAttachment>,
        after: Option<&'a VolumeAttachment>,
    },
    /// The CSINode of this name.
    CsiNode(&'a str),
    /// The CSIDriver of this name.
    CsiDriver(&'a str),
}

/// Why a change may concern a Pod with claims, of volumes or of devices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimInterest {
    /// It has volumes.
    Any,
    Claim(ObjectKey),
    /// A claim of it names this PersistentVolume.
    Volume(Arc<str>),
    /// A claim of it has no PersistentVolume yet: it may take one of this StorageClass, or one is made for it.
    Class(Arc<str>),
    ResourceClaim(ObjectKey),
    /// It has ResourceClaims.
    Devices,
}

impl ClaimInterest {
    /// Those of a Pod with claims. They change only with what they name.
    pub fn of(cluster: &Cluster, pod: &ClusterPod) -> BTreeSet<Self> {
        let mut interests = BTreeSet::new();
        interests.extend((!pod.volumes.is_empty()).then_some(Self::Any));
        interests.extend((!pod.resource_claims.is_empty()).then_some(Self::Devices));
        for name in pod.resource_claims.iter().filter_map(PodClaim::claim) {
            let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
            interests.insert(Self::ResourceClaim(key));
        }
        for name in pod.volumes.iter().filter_map(PodVolume::claim) {
            let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
            if let Some(claim) = cluster.objects.claims.get(&key) {
                interests.insert(match &claim.volume_name {
                    Some(volume) => Self::Volume(volume.clone()),
                    None => Self::Class(claim.class.clone()),
                });
            }
            interests.insert(Self::Claim(key));
        }
        interests
    }
}

/// Where a change may make a difference to a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimScope {
    Everywhere,
    Nodes(BTreeSet<NodeName>),
}

impl<'a> VolumeChange<'a> {
    /// The Nodes on which something else may be attached now, or to which more or less can be. `None`: any.
    pub fn nodes_attaching(&self, cluster: &Cluster) -> Option<BTreeSet<NodeName>> {
        Some(match *self {
            Self::Claim { before, after } => {
                let attached =
                    |it: &'a PersistentVolumeClaim| (&it.volume_name, &it.class, &it.controller);
                let claim = before.or(after)?;
                if before.map(attached) == after.map(attached) {
                    return Some(BTreeSet::new());
                }
                nodes_using(cluster, &[&claim.key].into())
            }
            Self::Class => return None,
            Self::Volume { before, after } => attached_otherwise(cluster, before, after),
            Self::Released(bindings) => nodes_using(cluster, &bindings.claims().collect()),
            Self::Attachment { before, after } => {
                [before, after].into_iter().flatten().map(|it| it.node.clone()).collect()
            }
            Self::CsiNode(name) => [name.into()].into(),
            Self::Capacity { .. } | Self::CsiDriver(_) => BTreeSet::new(),
        })
    }

    /// Where PersistentVolumes that are free, or were, can be used, and where published capacity counts, or did: Nodes
    /// with one of these values of the label. `None`: anywhere.
    pub fn storage_near(&self, cluster: &'a Cluster) -> Vec<Narrowing<'a>> {
        let of_volume = |it: &'a PersistentVolume| it.node_affinity.as_ref()?.narrowest();
        match *self {
            Self::Volume { before, after } => {
                let versions = [before, after].into_iter().flatten();
                // One that a placed Pod has taken was not to be had, and still is not.
                let is_taken =
                    |it: &PersistentVolume| cluster.assumed_volumes.claim_of(&it.name).is_some();
                versions.filter(|it| is_free(it) && !is_taken(it)).map(of_volume).collect()
            }
            Self::Released(bindings) => {
                let names = bindings.static_bindings.iter().map(|(_, name)| name);
                let volumes = names.filter_map(|name| cluster.objects.volumes.get(name));
                let volumes = volumes.filter(|volume| is_free(volume));
                volumes.map(|volume| of_volume(volume)).collect()
            }
            Self::Capacity { before, after } => {
                let versions = [before, after].into_iter().flatten();
                versions.map(|it| it.node_topology.as_ref()?.narrowest()).collect()
            }
            Self::Claim { .. }
            | Self::Class
            | Self::Attachment { .. }
            | Self::CsiNode(_)
            | Self::CsiDriver(_) => Vec::new(),
        }
    }

    /// Whom it may concern, and where. To anybody else it means nothing.
    pub fn concerns(&self, cluster: &Cluster) -> Vec<(ClaimInterest, ClaimScope)> {
        let everywhere = |interest| (interest, ClaimScope::Everywhere);
        let attaching = |nodes: BTreeSet<NodeName>| (ClaimInterest::Any, ClaimScope::Nodes(nodes));
        match *self {
            Self::Claim { before, after } => {
                let Some(claim) = before.or(after) else { return Vec::new() };
                let mut concerned = vec![everywhere(ClaimInterest::Claim(claim.key.clone()))];
                let attached = |it: &'a PersistentVolumeClaim| (&it.volume_name, &it.class);
                if before.map(attached) != after.map(attached) {
                    let nodes = nodes_using(cluster, &[&claim.key].into());
                    concerned.extend((!nodes.is_empty()).then(|| attaching(nodes)));
                }
                concerned
            }
            Self::Class => vec![everywhere(ClaimInterest::Any)],
            Self::Volume { before, after } => {
                let versions = [before, after].into_iter().flatten();
                let mut concerned: Vec<_> =
                    versions.flat_map(|volume| concerned_by(cluster, volume)).collect();
                let nodes = attached_otherwise(cluster, before, after);
                concerned.extend((!nodes.is_empty()).then(|| attaching(nodes)));
                concerned
            }
            Self::Released(bindings) => {
                let of_static = bindings.static_bindings.iter();
                let volumes = of_static.filter_map(|(_, it)| cluster.objects.volumes.get(it));
                let claims = bindings.claims().cloned().map(ClaimInterest::Claim);
                volumes
                    .flat_map(|volume| concerned_by(cluster, volume))
                    .chain(claims.map(everywhere))
                    .collect()
            }
            Self::Capacity { before, after } => {
                let versions = [before, after].into_iter().flatten();
                let concerned = |capacity: &CsiStorageCapacity| {
                    let is_near = |topology: &model::LabelSelector| {
                        nodes(cluster, |labels| topology.matches(labels))
                    };
                    let nodes = capacity.node_topology.as_ref().map(is_near).unwrap_or_default();
                    (ClaimInterest::Class(capacity.class.clone()), ClaimScope::Nodes(nodes))
                };
                versions.map(concerned).collect()
            }
            Self::Attachment { before, after } => {
                let gone = before.filter(|it| has_limit(cluster, it));
                let mut concerned: Vec<_> =
                    gone.into_iter().map(|it| attaching([it.node.clone()].into())).collect();
                concerned.extend(after.into_iter().flat_map(|it| attached_already(cluster, it)));
                concerned
            }
            Self::CsiNode(name) => vec![attaching([name.into()].into())],
            Self::CsiDriver(name) => {
                let classes = cluster.objects.storage_classes.values();
                let of_driver = classes.filter(|class| &*class.provisioner == name);
                of_driver.map(|it| everywhere(ClaimInterest::Class(it.name.clone()))).collect()
            }
        }
    }
}

/// Those whose claims name the PersistentVolume, for whose claim it is reserved, or who may take it if it is free.
fn concerned_by(cluster: &Cluster, volume: &PersistentVolume) -> Vec<(ClaimInterest, ClaimScope)> {
    let mut concerned = vec![ClaimInterest::Volume(volume.name.clone())];
    // Elsewhere, too: a claim that one is reserved for takes no other.
    let written = volume.claim_ref.as_ref().map(|it| &it.key);
    let reserved = written.into_iter().chain(cluster.assumed_volumes.claim_of(&volume.name));
    concerned.extend(reserved.cloned().map(ClaimInterest::Claim));
    let mut concerned: Vec<_> =
        concerned.into_iter().map(|interest| (interest, ClaimScope::Everywhere)).collect();
    if volume.claim_ref.is_none() {
        let nodes = nodes(cluster, |labels| volume.fits(labels));
        concerned.push((ClaimInterest::Class(volume.class.clone()), ClaimScope::Nodes(nodes)));
    }
    concerned
}

/// The Nodes on which it counts otherwise than before among what is attached.
fn attached_otherwise(
    cluster: &Cluster,
    before: Option<&PersistentVolume>,
    after: Option<&PersistentVolume>,
) -> BTreeSet<NodeName> {
    let Some(volume) = before.or(after) else { return BTreeSet::new() };
    let mut claims: BTreeSet<&ObjectKey> = BTreeSet::new();
    let mut nodes: BTreeSet<NodeName> = BTreeSet::new();
    if before.map(|it| &it.source) != after.map(|it| &it.source) {
        let index = &cluster.volume_index;
        let names = index.attachments_of(&volume.name);
        let attached = names.filter_map(|name| cluster.objects.attachments.get(name));
        nodes.extend(attached.map(|it| it.node.clone()));
        claims.extend(index.claims_naming(&volume.name));
    }
    // A claim for which no volume is made, and whose own is not known, counts as the one that is reserved for it.
    let is_known = |name: &Arc<str>| cluster.objects.volumes.contains_key(name);
    let is_unbound = |key: &&ObjectKey| {
        let claim = cluster.objects.claims.get(*key);
        let claim = claim.filter(|claim| !claim.volume_name.as_ref().is_some_and(is_known));
        let class = claim.and_then(|it| cluster.objects.storage_classes.get(&it.class));
        class.is_some_and(|class| !makes_volumes(class))
    };
    let versions = [before, after].into_iter().flatten();
    let reserved = versions.filter_map(|it| Some(&it.claim_ref.as_ref()?.key));
    let reserved = reserved.chain(cluster.assumed_volumes.claim_of(&volume.name));
    claims.extend(reserved.filter(is_unbound));
    nodes.extend(nodes_using(cluster, &claims));
    nodes
}

fn has_limit(cluster: &Cluster, attachment: &VolumeAttachment) -> bool {
    let csi_node = cluster.objects.csi_nodes.get(attachment.node.as_str());
    let limit = csi_node.and_then(|it| it.drivers.get(&attachment.attacher));
    limit.is_some_and(Option::is_some)
}

/// What is attached takes from what others can attach. It helps only those who use it themselves.
fn attached_already(
    cluster: &Cluster,
    attachment: &VolumeAttachment,
) -> Vec<(ClaimInterest, ClaimScope)> {
    let volumes = &cluster.objects.volumes;
    let Some(attached) = attachment.volume_name.as_ref().and_then(|name| volumes.get(name)) else {
        return Vec::new();
    };
    // Several PersistentVolumes may stand for one volume.
    let alike = volumes.values().filter(|it| it.source == attached.source);
    let nodes = ClaimScope::Nodes([attachment.node.clone()].into());
    let users = alike.flat_map(|it| {
        // Or who would take it.
        [ClaimInterest::Volume(it.name.clone()), ClaimInterest::Class(it.class.clone())]
    });
    users.map(|interest| (interest, nodes.clone())).collect()
}

/// The Nodes with a Pod that uses one of the claims.
fn nodes_using(cluster: &Cluster, claims: &BTreeSet<&ObjectKey>) -> BTreeSet<NodeName> {
    let users = claims.iter().flat_map(|claim| cluster.users(claim));
    users.filter_map(|pod| pod.node.clone()).collect()
}

fn nodes(cluster: &Cluster, is_meant: impl Fn(&model::Labels) -> bool) -> BTreeSet<NodeName> {
    let nodes = cluster.nodes.values().filter(|node| is_meant(&node.node.labels));
    nodes.map(|node| node.node.name.clone()).collect()
}

/// Whether the claims of a Pod alone keep it from every Node, whatever becomes of Nodes and of Pods on them.
pub fn claims_reject(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> bool {
    let plugin = match (PodContext { rules, cluster, pod }).pre_filter() {
        Ok(_) => return false,
        Err(NotFiltered::Rejected(reason)) => reason.plugin(),
        Err(NotFiltered::Failed(failure)) => failure.plugin,
    };
    // They look at claims, their volumes, users and classes here, and at nothing else.
    matches!(
        plugin,
        Plugin::VolumeRestrictions
            | Plugin::VolumeBinding
            | Plugin::VolumeZone
            | Plugin::DynamicResources
    )
}
