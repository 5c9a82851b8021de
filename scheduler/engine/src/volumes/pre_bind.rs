//! PreBind: what is written about the claims of a placed Pod, and when others have done their part.

use model::{ClaimRef, ClusterNode, NodeName, ObjectKey, PersistentVolumeClaim, PodVolumeBindings};

use crate::binding_cycle::ClaimProgress;
use crate::decision::PrepareWrite;
use crate::engine::Engine;

impl Engine {
    /// What is still to be written; nothing of what an earlier attempt, or another Pod with the same claim, has written.
    pub(crate) fn volume_writes(
        &self,
        bindings: &PodVolumeBindings,
        node: &NodeName,
    ) -> Vec<PrepareWrite> {
        let objects = &self.observed.cluster.objects;
        let mut writes = Vec::new();
        for (claim, volume) in &bindings.static_bindings {
            let Some(claim) = objects.claims.get(claim) else { continue };
            let Some(volume) = objects.volumes.get(volume) else { continue };
            if volume.claim_ref.as_ref().is_some_and(|it| is_of(it, claim)) {
                continue;
            }
            writes.push(PrepareWrite::BindVolume {
                volume: volume.name.clone(),
                volume_uid: volume.uid.clone(),
                resource_version: volume.resource_version.clone(),
                claim: claim.key.clone(),
                claim_uid: claim.uid.clone(),
                is_reserved: volume.claim_ref.is_some(),
            });
        }
        for claim in &bindings.dynamic_provisions {
            let Some(claim) = objects.claims.get(claim) else { continue };
            if claim.selected_node.as_deref() == Some(node.as_str()) {
                continue;
            }
            writes.push(PrepareWrite::SelectNode {
                claim: claim.key.clone(),
                claim_uid: claim.uid.clone(),
                resource_version: claim.resource_version.clone(),
            });
        }
        writes
    }

    /// To be asked once everything is written, and after every change of the claims and their volumes.
    pub(crate) fn volume_progress(
        &self,
        bindings: &PodVolumeBindings,
        node: &NodeName,
    ) -> ClaimProgress {
        let Some(node) = self.observed.cluster.nodes.get(node) else {
            return ClaimProgress::Failed(format!("failed to get node \"{node}\": not found"));
        };
        let of_static = bindings.static_bindings.iter();
        let of_static = of_static.map(|(claim, volume)| self.static_progress(claim, volume, node));
        let of_dynamic = bindings.dynamic_provisions.iter();
        let of_dynamic = of_dynamic.map(|claim| self.dynamic_progress(claim, node));
        of_static.chain(of_dynamic).fold(ClaimProgress::Ready, ClaimProgress::and)
    }

    fn static_progress(
        &self,
        claim: &ObjectKey,
        volume: &str,
        node: &ClusterNode,
    ) -> ClaimProgress {
        let objects = &self.observed.cluster.objects;
        let Some(claim) = objects.claims.get(claim) else {
            return gone("failed to check binding", "persistentvolumeclaim", &claim.name);
        };
        let Some(known) = objects.volumes.get(volume) else {
            return gone("failed to check binding", "persistentvolume", volume);
        };
        if !known.claim_ref.as_ref().is_some_and(|it| is_of(it, claim)) {
            return ClaimProgress::Failed(format!("ClaimRef got reset for pv \"{volume}\""));
        }
        if !known.fits(&node.node.labels) {
            return out_of_reach(volume, node);
        }
        if claim.bound_to().is_some() { ClaimProgress::Ready } else { ClaimProgress::Waiting }
    }

    fn dynamic_progress(&self, claim: &ObjectKey, node: &ClusterNode) -> ClaimProgress {
        let objects = &self.observed.cluster.objects;
        let Some(claim) = objects.claims.get(claim) else {
            return gone("failed to check provisioning pvc", "persistentvolumeclaim", &claim.name);
        };
        let Some(volume) = claim.bound_to() else {
            let is_selected = claim.selected_node.as_deref() == Some(node.node.name.as_str());
            return if is_selected {
                ClaimProgress::Waiting
            } else {
                ClaimProgress::Failed(format!("provisioning failed for PVC \"{}\"", claim.key.name))
            };
        };
        // The claim may be shown before its volume.
        let Some(known) = objects.volumes.get(volume) else {
            return ClaimProgress::Waiting;
        };
        if known.fits(&node.node.labels) {
            ClaimProgress::Ready
        } else {
            out_of_reach(volume, node)
        }
    }
}

/// Whether the volume is for this claim and no other of its name.
fn is_of(claim_ref: &ClaimRef, claim: &PersistentVolumeClaim) -> bool {
    claim_ref.key == claim.key && claim_ref.uid.as_ref() == Some(&claim.uid)
}

fn gone(doing: &str, resource: &str, name: &str) -> ClaimProgress {
    ClaimProgress::Failed(format!("{doing}: {resource} \"{name}\" not found"))
}

fn out_of_reach(volume: &str, node: &ClusterNode) -> ClaimProgress {
    let node = &node.node.name;
    ClaimProgress::Failed(format!(
        "pv \"{volume}\" node affinity doesn't match node \"{node}\": no matching NodeSelectorTerms"
    ))
}
