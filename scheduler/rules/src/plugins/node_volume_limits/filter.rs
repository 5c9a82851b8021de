//! Volumes of Pods and attachments on the Node, with those of the Pod, against the limits of the drivers.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use model::{PersistentVolumeClaim, PodVolumeBindings};

use super::attachable::{Attachable, Attaching, Unknown};
use super::attached::{attach_limits, attached_by, attachments};
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
    let node = &trial.node.node.name;
    let limits: Vec<(&Arc<str>, i64)> = attach_limits(trial.cluster, node).collect();
    if new.is_empty() || limits.is_empty() {
        return Vec::new();
    }
    let mut attached: BTreeSet<Attachable> = attachments(trial.cluster, node).collect();
    for pod in trial.pods() {
        attached.extend(attached_by(trial.cluster, pod, node));
    }
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
