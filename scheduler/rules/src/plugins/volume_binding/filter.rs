//! What the Pod's claims would take on the Node.

use std::sync::Arc;

use model::{ClusterNode, PersistentVolumeClaim, PodVolumeBindings};

use super::affinity;
use super::pre_filter::ClaimsToBind;
use super::provision::check_provisions;
use super::rearrange::rearranged;
use super::static_binding::{StaticBindings, choose_each};
use crate::cluster::Cluster;
use crate::reason::Reason;
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    find(trial.cluster, &trial.state.claims_to_bind, trial.node).err().unwrap_or_default()
}

/// Bound claims and others are looked at whatever is found with the former, so a Node may have several reasons.
pub(in crate::plugins) fn find(
    cluster: &Cluster,
    claims: &ClaimsToBind,
    node: &ClusterNode,
) -> Result<PodVolumeBindings, Vec<Reason>> {
    if claims.bound.is_empty() && claims.delayed.is_empty() {
        return Ok(PodVolumeBindings::default());
    }
    let bound = affinity::check(cluster, &claims.bound, node);
    if let Err(failed @ Reason::Failed { .. }) = bound {
        return Err(vec![failed]);
    }
    let delayed = bind(cluster, claims, node);
    let mut reasons: Vec<Reason> =
        [bound.err(), delayed.as_ref().err().cloned()].into_iter().flatten().collect();
    if let Some(failed) = reasons.iter().find(|it| matches!(it, Reason::Failed { .. })) {
        return Err(vec![failed.clone()]);
    }
    // In the order of the declarations, which is kube-scheduler's.
    reasons.sort();
    match delayed {
        Ok(bindings) if reasons.is_empty() => Ok(bindings),
        _ => Err(reasons),
    }
}

/// Claims that wait for the Pod to have a Node take a PersistentVolume, or one is made for them.
fn bind(
    cluster: &Cluster,
    claims: &ClaimsToBind,
    node: &ClusterNode,
) -> Result<PodVolumeBindings, Reason> {
    let (mut selected, mut free) = (Vec::new(), Vec::new());
    for claim in &claims.delayed {
        match cluster.assumed_volumes.selected_node(claim) {
            None => free.push(claim),
            Some(name) if name == node.node.name.as_str() => selected.push(claim),
            Some(_) => return Err(Reason::NO_VOLUME_TO_BIND),
        }
    }
    free.sort_by_key(|claim| claim.request);
    let parts = Parts { cluster, node, selected, free };
    let chosen = choose_each(&parts)?;
    match parts.with(&chosen) {
        Ok(bindings) => Ok(bindings),
        Err(failed @ Reason::Failed { .. }) => Err(failed),
        // kube-scheduler gives up here, although another assignment may work.
        Err(reason) => rearranged(&parts).and_then(|chosen| parts.with(&chosen).ok()).ok_or(reason),
    }
}

/// One Node and the claims to bind on it.
pub(super) struct Parts<'a> {
    pub cluster: &'a Cluster,
    pub node: &'a ClusterNode,
    /// For which a volume is being made on this Node.
    pub selected: Vec<&'a Arc<PersistentVolumeClaim>>,
    /// The others, the smallest first.
    pub free: Vec<&'a Arc<PersistentVolumeClaim>>,
}

impl Parts<'_> {
    /// What is to be written if the free claims take these, and volumes are made for the rest.
    fn with(&self, chosen: &StaticBindings<'_>) -> Result<PodVolumeBindings, Reason> {
        let is_left = |claim: &&&Arc<PersistentVolumeClaim>| !chosen.contains_key(&claim.key);
        let left: Vec<&PersistentVolumeClaim> =
            self.free.iter().filter(is_left).map(|claim| &***claim).collect();
        let selected: Vec<&PersistentVolumeClaim> =
            self.selected.iter().map(|claim| &***claim).collect();
        check_provisions(self.cluster, &self.node.node.labels, &selected, &left)?;
        let taken = |claim: &&Arc<PersistentVolumeClaim>| {
            chosen.get(&claim.key).map(|volume| (claim.key.clone(), volume.name.clone()))
        };
        Ok(PodVolumeBindings {
            static_bindings: self.free.iter().filter_map(taken).collect(),
            dynamic_provisions: selected.iter().chain(&left).map(|it| it.key.clone()).collect(),
        })
    }
}
