//! Which driver attaches no more volumes to a Node, and for which claim one more would be needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ClusterNode, ObjectKey, PersistentVolumeClaim};

use super::attachable::{Attachable, Attaching};
use super::attached::attached_to;
use crate::cycle::PodContext;
use crate::plugins::ClaimsToBind;
use crate::plugins::volume_binding::find;
use crate::volume_diagnosis::{ClaimProblem, Found};

/// One problem for each driver: of the first claim that brings it. `nodes` is how many are full.
pub(crate) fn claims_over_limit(
    context: PodContext<'_>,
    claims: &ClaimsToBind,
    node: &ClusterNode,
    nodes: usize,
) -> Found {
    let PodContext { cluster, pod, .. } = context;
    let name = &node.node.name;
    let Some(csi_node) = cluster.objects.csi_nodes.get(name.as_str()) else { return Found::new() };
    let attaching = Attaching { cluster, csi_node: Some(csi_node) };
    let attached = attached_to(cluster, name);
    let bindings = find(cluster, claims, node).unwrap_or_default();
    let takes = |claim: &PersistentVolumeClaim| {
        let mut taken = bindings.static_bindings.iter();
        taken.find(|(of, _)| *of == claim.key).map(|(_, volume)| volume.clone())
    };
    let mut new: BTreeMap<Arc<str>, (ObjectKey, BTreeSet<Attachable>)> = BTreeMap::new();
    for volume in pod.volumes.iter() {
        let (Some(claim), Ok(Some(more))) = (volume.claim(), attaching.of(pod, volume, takes))
        else {
            continue;
        };
        if !attached.contains(&more) {
            let claim = ObjectKey { namespace: pod.namespace().clone(), name: claim.clone() };
            new.entry(more.0.clone()).or_insert((claim, BTreeSet::new())).1.insert(more);
        }
    }
    let found = new.into_iter().filter_map(|(driver, (claim, more))| {
        let limit = i64::from((*csi_node.drivers.get(&driver)?)?);
        let used = count(attached.iter().filter(|(of, _)| *of == driver).count());
        let brings = count(more.len());
        let is_full = used.saturating_add(brings) > limit;
        let node = name.clone();
        let problem = ClaimProblem::AttachLimit { driver, nodes, node, limit, used, brings };
        is_full.then_some((claim, problem))
    });
    found.collect()
}

fn count(volumes: usize) -> i64 {
    i64::try_from(volumes).unwrap_or(i64::MAX)
}
