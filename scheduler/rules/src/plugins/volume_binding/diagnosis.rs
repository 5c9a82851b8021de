//! Which claims are behind VolumeBinding's reasons, and what each lacks.

use std::sync::Arc;

use model::{
    BindingMode, ClusterNode, ClusterPod, CsiStorageCapacity, NodeName, PersistentVolumeClaim,
    StorageClass,
};

use super::affinity;
use super::filter::Parts;
use super::pre_filter::{ClaimsToBind, pre_filter};
use super::provision::{allows, check_provisions, makes_volumes, publishes_capacity};
use super::static_binding::choose_each;
use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext};
use crate::reason::Reason;
use crate::volume_diagnosis::{ClaimProblem, Found, PublishedCapacity, claims_of, looked_at};

/// `None`: there is one for which no Node need be looked at.
pub(crate) fn sort_claims(context: PodContext<'_>) -> Option<ClaimsToBind> {
    let mut state = CycleState::default();
    pre_filter(context, &mut state).ok()?;
    Some(state.claims_to_bind)
}

/// Those that others have to bind before the Pod is looked at.
pub(crate) fn immediate_claims(cluster: &Cluster, pod: &ClusterPod) -> Found {
    let unbound = claims_of(cluster, pod).filter(|claim| claim.bound_to().is_none());
    unbound.filter_map(|claim| Some((claim.key.clone(), not_bound(cluster, claim)?))).collect()
}

fn not_bound(cluster: &Cluster, claim: &Arc<PersistentVolumeClaim>) -> Option<ClaimProblem> {
    let class = cluster.objects.storage_classes.get(&claim.class);
    let waits = |it: &StorageClass| it.binding_mode == Some(BindingMode::WaitForFirstConsumer);
    let problem =
        |volume, provisioner, volumes| ClaimProblem::NotBound { volume, provisioner, volumes };
    if let Some(volume) = &claim.volume_name {
        return Some(problem(Some(volume.clone()), None, None));
    }
    match class {
        None if !claim.class.is_empty() => Some(ClaimProblem::ClassNotFound),
        Some(class) if !claim.class.is_empty() && waits(class) => None,
        Some(class) if !claim.class.is_empty() && makes_volumes(class) => {
            Some(problem(None, Some(class.provisioner.clone()), None))
        }
        _ => {
            let nodes: Vec<_> = cluster.nodes.values().collect();
            let mut looked_at = looked_at(cluster, claim, &nodes);
            // Whoever binds it asks for no Node: nothing is in the way of those that lack nothing.
            looked_at.reasons.retain(|it| !it.lack.is_of_nodes());
            Some(problem(None, None, Some(looked_at)))
        }
    }
}

/// Those that wait for the Pod to have a Node, and get no volume on these.
pub(crate) fn delayed_claims(
    cluster: &Cluster,
    claims: &ClaimsToBind,
    reason: &Reason,
    nodes: &[&ClusterNode],
) -> Found {
    let mut found = Found::new();
    for node in nodes {
        for (claim, lack) in lacking_on(cluster, claims, node) {
            if lack.is_behind(reason) && !found.iter().any(|(key, _)| *key == claim.key) {
                found.push((claim.key.clone(), problem(cluster, claim, lack, nodes)));
            }
        }
    }
    found
}

/// What a claim lacks on one Node.
#[derive(Clone, Copy)]
enum Lack<'a> {
    OtherNode(&'a str),
    Volume,
    Topology(&'a StorageClass),
    Storage(&'a StorageClass),
    StorageTogether(&'a StorageClass),
}

impl Lack<'_> {
    fn is_behind(&self, reason: &Reason) -> bool {
        let is_storage = matches!(self, Self::Storage(_) | Self::StorageTogether(_));
        is_storage == (*reason == Reason::NOT_ENOUGH_STORAGE)
    }
}

fn lacking_on<'a>(
    cluster: &'a Cluster,
    claims: &'a ClaimsToBind,
    node: &'a ClusterNode,
) -> Vec<(&'a Arc<PersistentVolumeClaim>, Lack<'a>)> {
    let name = node.node.name.as_str();
    let (mut elsewhere, mut selected, mut free) = (Vec::new(), Vec::new(), Vec::new());
    for claim in &claims.delayed {
        match cluster.assumed_volumes.selected_node(claim) {
            None => free.push(claim),
            Some(selected_node) if selected_node == name => selected.push(claim),
            Some(other) => elsewhere.push((claim, Lack::OtherNode(other))),
        }
    }
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    free.sort_by_key(|claim| claim.request);
    let parts = Parts { cluster, node, selected, free };
    let Ok(chosen) = choose_each(&parts) else { return Vec::new() };
    let left = parts.free.iter().filter(|claim| !chosen.contains_key(&claim.key));
    let left: Vec<_> = parts.selected.iter().chain(left).copied().collect();
    let lacks: Vec<_> =
        left.iter().filter_map(|claim| Some((*claim, lack_of(cluster, node, claim)?))).collect();
    if !lacks.is_empty() {
        return lacks;
    }
    let classes = &cluster.objects.storage_classes;
    let publishing = left.into_iter().filter_map(|claim| Some((claim, classes.get(&claim.class)?)));
    let publishing = publishing.filter(|(_, class)| publishes_capacity(cluster, class));
    publishing.map(|(claim, class)| (claim, Lack::StorageTogether(class))).collect()
}

/// Why none can be made for the claim alone.
fn lack_of<'a>(
    cluster: &'a Cluster,
    node: &ClusterNode,
    claim: &PersistentVolumeClaim,
) -> Option<Lack<'a>> {
    let class = cluster.objects.storage_classes.get(&claim.class)?;
    let labels = &node.node.labels;
    match check_provisions(cluster, labels, &[claim], &[]) {
        Err(Reason::NOT_ENOUGH_STORAGE) => Some(Lack::Storage(class)),
        Err(_) if makes_volumes(class) && !allows(class, labels) => Some(Lack::Topology(class)),
        Err(_) => Some(Lack::Volume),
        Ok(()) => None,
    }
}

fn problem(
    cluster: &Cluster,
    claim: &PersistentVolumeClaim,
    lack: Lack<'_>,
    nodes: &[&ClusterNode],
) -> ClaimProblem {
    match lack {
        Lack::OtherNode(name) => {
            let node = NodeName::new(name);
            let is_known = cluster.nodes.contains_key(&node);
            ClaimProblem::OtherNode { node, is_written: claim.selected_node.is_some(), is_known }
        }
        Lack::Volume => ClaimProblem::NoVolume(looked_at(cluster, claim, nodes)),
        Lack::Topology(class) => {
            let terms = class.allowed_topologies.iter().map(ToString::to_string);
            ClaimProblem::Topology { allowed: terms.collect::<Vec<_>>().join(" or ") }
        }
        Lack::Storage(class) => ClaimProblem::NotEnoughStorage {
            provisioner: class.provisioner.clone(),
            largest: largest_capacity(cluster, class, claim),
        },
        Lack::StorageTogether(class) => {
            ClaimProblem::NotEnoughStorageTogether { provisioner: class.provisioner.clone() }
        }
    }
}

fn largest_capacity(
    cluster: &Cluster,
    class: &StorageClass,
    claim: &PersistentVolumeClaim,
) -> Option<PublishedCapacity> {
    let of_class = cluster.objects.capacities.values().filter(|it| it.class == class.name);
    let (size, largest) =
        of_class.filter_map(|it| Some((it.limit?, it))).max_by_key(|(size, _)| *size)?;
    let is_near = |node: &&ClusterNode, capacity: &CsiStorageCapacity| {
        capacity.node_topology.as_ref().is_some_and(|it| it.matches(&node.node.labels))
    };
    let node = cluster.nodes.values().find(|node| is_near(node, largest));
    Some(PublishedCapacity {
        size,
        node: node.map(|node| node.node.name.clone()),
        is_enough: size.rounded_up() >= claim.request.rounded_up(),
    })
}

/// Those that are bound to a volume that one of the Nodes does not reach, or that does not exist.
pub(crate) fn bound_claims(
    cluster: &Cluster,
    claims: &ClaimsToBind,
    nodes: &[&ClusterNode],
) -> Found {
    let problem = |claim: &Arc<PersistentVolumeClaim>| {
        let name = claim.bound_to()?.clone();
        let Some(volume) = cluster.objects.volumes.get(&name) else {
            return Some(ClaimProblem::VolumeNotFound { volume: name });
        };
        let one = std::slice::from_ref(claim);
        nodes.iter().find(|node| affinity::check(cluster, one, node).is_err())?;
        let wants = volume.node_affinity.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(ClaimProblem::NodeAffinity { volume: name, wants })
    };
    let found = claims.bound.iter().filter_map(|it| Some((it.key.clone(), problem(it)?)));
    found.collect()
}
