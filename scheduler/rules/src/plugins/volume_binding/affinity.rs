//! Whether the Node reaches the volumes that the Pod's claims are bound to.

use std::sync::Arc;

use model::{ClusterNode, PersistentVolume, PersistentVolumeClaim, VolumeSource};

use crate::cluster::Cluster;
use crate::plugins::Plugin;
use crate::reason::Reason;

/// The first that it does not reach decides.
pub(super) fn check(
    cluster: &Cluster,
    bound: &[Arc<PersistentVolumeClaim>],
    node: &ClusterNode,
) -> Result<(), Reason> {
    for claim in bound {
        let volume = claim.bound_to().and_then(|name| cluster.objects.volumes.get(name));
        let Some(volume) = volume else { return Err(Reason::BOUND_VOLUME_NOT_FOUND) };
        if !reaches(cluster, node, volume)? {
            return Err(Reason::VOLUME_NODE_AFFINITY);
        }
    }
    Ok(())
}

/// An in-tree volume is used by its CSI driver where the Node says so, and by that driver's labels.
fn reaches(
    cluster: &Cluster,
    node: &ClusterNode,
    volume: &PersistentVolume,
) -> Result<bool, Reason> {
    let labels = &node.node.labels;
    if let VolumeSource::InTree { disk, translated } = &volume.source {
        let csi_node = cluster.objects.csi_nodes.get(node.node.name.as_str());
        let is_migrated =
            csi_node.is_some_and(|it| it.migrated_plugins.contains(disk.plugin().name()));
        if is_migrated {
            return translated.as_ref().map(|volume| volume.fits(labels)).map_err(|why| {
                let why = format!("could not translate pv: {why}").into();
                Reason::Failed { plugin: Plugin::VolumeBinding, why }
            });
        }
    }
    Ok(volume.fits(labels))
}
