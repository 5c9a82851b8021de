//! Volumes of Pods and attachments on the Node, with those of the Pod, against the limits of the drivers.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ObjectKey, PersistentVolumeClaim, PodVolumeBindings, VolumeSource};

use super::attachable::{Attachable, Attaching, Handle, Unknown};
use crate::plugins::Plugin;
use crate::plugins::volume_binding::find;
use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    if trial.pod.volumes.is_empty() {
        return Vec::new();
    }
    let csi_node = trial.cluster.objects.csi_nodes.get(trial.node.node.name.as_str());
    let attaching = Attaching { cluster: trial.cluster, csi_node };
    let mut new = match new_volumes(trial, &attaching) {
        Ok(new) => new,
        Err(reason) => return vec![reason],
    };
    let limits: BTreeMap<&Arc<str>, i64> = csi_node
        .into_iter()
        .flat_map(|csi_node| &csi_node.drivers)
        .filter_map(|(driver, count)| Some((driver, i64::from((*count)?))))
        .collect();
    if new.is_empty() || limits.is_empty() {
        return Vec::new();
    }
    let mut attached = volumes_of_pods(trial, &attaching);
    attached.extend(attachments(trial));
    // Of those that are attached without a Pod, kube-scheduler counts one that the Pod brings a second time.
    new.retain(|volume| !attached.contains(volume));
    let count = |volumes: &BTreeSet<Attachable>, driver: &Arc<str>| {
        i64::try_from(volumes.iter().filter(|(of, _)| of == driver).count()).unwrap_or(i64::MAX)
    };
    let fits = limits.into_iter().all(|(driver, limit)| {
        let more = count(&new, driver);
        more == 0 || count(&attached, driver).saturating_add(more) <= limit
    });
    unless(fits, Reason::MAX_VOLUME_COUNT)
}

/// What the Pod brings.
fn new_volumes(
    trial: &Trial<'_>,
    attaching: &Attaching<'_>,
) -> Result<BTreeSet<Attachable>, Reason> {
    let plugin = Plugin::NodeVolumeLimits;
    let bindings = OnceCell::new();
    let takes = |claim: &PersistentVolumeClaim| {
        let bindings: &PodVolumeBindings = bindings.get_or_init(|| {
            find(trial.cluster, &trial.state.claims_to_bind, trial.node).unwrap_or_default()
        });
        let mut taken = bindings.static_bindings.iter();
        taken.find(|(of, _)| *of == claim.key).map(|(_, volume)| volume.clone())
    };
    let mut new = BTreeSet::new();
    for volume in trial.pod.volumes.iter() {
        match attaching.of(trial.pod, volume, takes) {
            Ok(attachable) => new.extend(attachable),
            Err(Unknown::Claim(problem)) => return Err(Reason::Volume { plugin, problem }),
            Err(Unknown::NotOwned(problem)) => {
                return Err(Reason::Failed { plugin, why: problem.to_string().into() });
            }
            Err(Unknown::Disk(why)) => {
                let why = format!("converting volume from inline to csi: {why}").into();
                return Err(Reason::Failed { plugin, why });
            }
        }
    }
    Ok(new)
}

/// What is attached for the Pods on the Node. A Pod with a volume of which nothing is known has nothing attached for
/// it; kube-scheduler ends every attempt that looks at such a Node, unless it is the claim that is missing.
pub(super) fn volumes_of_pods(
    trial: &Trial<'_>,
    attaching: &Attaching<'_>,
) -> BTreeSet<Attachable> {
    let takes = |claim: &PersistentVolumeClaim| taken_by(trial, &claim.key);
    let mut attached = BTreeSet::new();
    for pod in trial.pods() {
        for volume in pod.volumes.iter() {
            if let Ok(attachable) = attaching.of(pod, volume, takes) {
                attached.extend(attachable);
            }
        }
    }
    attached
}

/// The PersistentVolume that a claim of a placed Pod is about to have.
fn taken_by(trial: &Trial<'_>, claim: &ObjectKey) -> Option<Arc<str>> {
    let written =
        trial.cluster.objects.volumes.values().find(|volume| {
            volume.claim_ref.as_ref().is_some_and(|reference| reference.key == *claim)
        });
    let written = written.map(|volume| volume.name.clone());
    written.or_else(|| trial.cluster.assumed_volumes.volume_of(claim).cloned())
}

/// What is attached to the Node, whether a Pod uses it or not.
pub(super) fn attachments(trial: &Trial<'_>) -> impl Iterator<Item = Attachable> {
    let objects = &trial.cluster.objects;
    let of_node = objects.attachments.values().filter(|it| it.node == trial.node.node.name);
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
