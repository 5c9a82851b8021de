//! What is attached to a Node, and what can be.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{ClusterPod, NodeName, ObjectKey, PersistentVolumeClaim, VolumeSource};

use super::attachable::{Attachable, Attaching, Handle};
use crate::cluster::Cluster;

/// How many volumes of each driver can be attached, where that is limited.
pub fn attach_limits<'a>(
    cluster: &'a Cluster,
    node: &NodeName,
) -> impl Iterator<Item = (&'a Arc<str>, i64)> {
    let csi_node = cluster.objects.csi_nodes.get(node.as_str()).into_iter();
    let drivers = csi_node.flat_map(|csi_node| &csi_node.drivers);
    drivers.filter_map(|(driver, count)| Some((driver, i64::from((*count)?))))
}

/// What is attached to the Node, for Pods on it and otherwise.
pub fn attached_to(cluster: &Cluster, node: &NodeName) -> BTreeSet<Attachable> {
    let mut attached: BTreeSet<Attachable> = attachments(cluster, node).collect();
    for pod in cluster.pods_on(node) {
        attached.extend(attached_by(cluster, pod, node));
    }
    attached
}

/// What is attached for a Pod on the Node. A Pod with a volume of which nothing is known has nothing attached for it;
/// kube-scheduler ends every attempt that looks at such a Node, unless it is the claim that is missing.
pub fn attached_by<'a>(
    cluster: &'a Cluster,
    pod: &'a ClusterPod,
    node: &NodeName,
) -> impl Iterator<Item = Attachable> {
    let csi_node = cluster.objects.csi_nodes.get(node.as_str());
    let attaching = Attaching { cluster, csi_node };
    let takes = |claim: &PersistentVolumeClaim| taken_by(cluster, &claim.key);
    let attached = pod.volumes.iter().map(move |it| attaching.of(pod, it, takes));
    attached.filter_map(|attachable| attachable.ok().flatten())
}

/// The PersistentVolume that a claim of a placed Pod is about to have.
fn taken_by(cluster: &Cluster, claim: &ObjectKey) -> Option<Arc<str>> {
    let mut written = cluster.volume_index.reserved(claim);
    let written = written.next().cloned();
    written.or_else(|| cluster.assumed_volumes.volumes_of(claim).next().cloned())
}

/// What is attached to the Node, whether a Pod uses it or not.
pub(super) fn attachments(cluster: &Cluster, node: &NodeName) -> impl Iterator<Item = Attachable> {
    let objects = &cluster.objects;
    let of_node = cluster.volume_index.attachments(node);
    let of_node = of_node.filter_map(|name| objects.attachments.get(name));
    of_node.filter(|it| !it.attacher.is_empty()).filter_map(|attachment| {
        let volume = objects.volumes.get(attachment.volume_name.as_ref()?)?;
        match &volume.source {
            VolumeSource::Csi { handle, .. } => {
                Some((attachment.attacher.clone(), Handle::Known(handle.clone())))
            }
            VolumeSource::InTree { .. } | VolumeSource::Other => None,
        }
    })
}
