//! What a CSI driver would attach for a Pod.

use std::sync::Arc;

use model::{
    ClusterPod, CsiNode, InTreePlugin, InlineDisk, ObjectKey, PersistentVolume,
    PersistentVolumeClaim, PodVolume, TranslationError, VolumeSource,
};

use crate::cluster::Cluster;
use crate::plugins::volume_binding::makes_volumes;
use crate::volume_problem::VolumeProblem;

/// A volume by its driver and what that calls it. One that does not exist yet goes by its claim.
pub type Attachable = (Arc<str>, Handle);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    Known(Arc<str>),
    NotMade(ObjectKey),
}

/// Why it is not known what a volume of a Pod is.
pub(crate) enum Unknown {
    Claim(VolumeProblem),
    NotOwned(VolumeProblem),
    Disk(TranslationError),
}

/// The view of one Node.
pub(crate) struct Attaching<'a> {
    pub cluster: &'a Cluster,
    /// Of the Node. In-tree volumes are only counted where there is one.
    pub csi_node: Option<&'a CsiNode>,
}

impl Attaching<'_> {
    /// `None`: nothing is attached that counts. `takes` tells which PersistentVolume a claim that has none yet takes on
    /// the Node.
    pub fn of(
        &self,
        pod: &ClusterPod,
        volume: &PodVolume,
        takes: impl Fn(&PersistentVolumeClaim) -> Option<Arc<str>>,
    ) -> Result<Option<Attachable>, Unknown> {
        let name = match volume {
            PodVolume::Claim(name) | PodVolume::Ephemeral(name) => name,
            PodVolume::Disk(disk) => return self.of_disk(disk).map_err(Unknown::Disk),
        };
        let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
        let Some(claim) = self.cluster.objects.claims.get(&key) else {
            let problem = VolumeProblem::ClaimNotFound { claim: key, is_looked_up: true };
            return Err(Unknown::Claim(problem));
        };
        let is_ephemeral = matches!(volume, PodVolume::Ephemeral(_));
        if is_ephemeral && claim.controller.as_ref() != Some(&pod.uid) {
            let problem = VolumeProblem::ClaimNotOwned { claim: key, pod: pod.key.clone() };
            return Err(Unknown::NotOwned(problem));
        }
        let bound = claim.volume_name.as_ref().and_then(|name| self.volume(name));
        Ok(match bound {
            Some(volume) => self.of_volume(volume),
            None => self.of_unbound(claim, takes),
        })
    }

    fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.cluster.objects.volumes.get(name).map(|volume| &**volume)
    }

    fn of_disk(&self, disk: &InlineDisk) -> Result<Option<Attachable>, TranslationError> {
        let Some(disk) = disk.in_tree().filter(|_| self.csi_node.is_some()) else {
            return Ok(None);
        };
        let handle = disk.inline_handle()?;
        Ok(Some((disk.plugin().driver().into(), Handle::Known(handle))))
    }

    fn of_volume(&self, volume: &PersistentVolume) -> Option<Attachable> {
        let (driver, handle) = match &volume.source {
            VolumeSource::Csi { driver, handle } => (driver, handle),
            VolumeSource::InTree { translated: Ok(translated), .. } => {
                self.csi_node?;
                (&translated.driver, &translated.handle)
            }
            VolumeSource::InTree { translated: Err(_), .. } | VolumeSource::Other => return None,
        };
        let is_named = !driver.is_empty() && !handle.is_empty();
        is_named.then(|| (driver.clone(), Handle::Known(handle.clone())))
    }

    fn of_unbound(
        &self,
        claim: &PersistentVolumeClaim,
        takes: impl Fn(&PersistentVolumeClaim) -> Option<Arc<str>>,
    ) -> Option<Attachable> {
        let class = self.cluster.objects.storage_classes.get(&claim.class)?;
        if claim.class.is_empty() {
            return None;
        }
        if !makes_volumes(class) {
            // kube-scheduler counts it under the name of the provisioner that is none, which has no limit.
            return self.of_volume(self.volume(&takes(claim)?)?);
        }
        let driver = match InTreePlugin::by_name(&class.provisioner) {
            Some(plugin) => {
                self.csi_node?;
                plugin.driver().into()
            }
            None => class.provisioner.clone(),
        };
        Some((driver, Handle::NotMade(claim.key.clone())))
    }
}
