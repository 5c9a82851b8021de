//! Volumes and ResourceClaims without an API server: what is written about claims takes effect at once, and others do their part.

pub mod fragment;
mod translate;

use std::collections::HashMap;
use std::sync::Arc;

use e2e::objects::volumes::ZONE;
use e2e::{Error, Result};
use engine::{ClusterObject, Event, Prepare, PrepareWrite};
use model::{
    ClaimRef, ClaimUser, Labels, NodeName, NodeSelector, NodeSelectorTerm, ObjectKey,
    PersistentVolume, PersistentVolumeClaim, RawRequirement, ResourceClaim, VolumePhase,
    VolumeSource,
};

pub use translate::{object, pod_volumes};

/// The volumes and claims as the API server has them.
#[derive(Debug, Default)]
pub struct StorageObjects {
    volumes: HashMap<Arc<str>, Arc<PersistentVolume>>,
    claims: HashMap<ObjectKey, Arc<PersistentVolumeClaim>>,
    device_claims: HashMap<ObjectKey, Arc<ResourceClaim>>,
    /// Who makes the volumes of a class.
    provisioners: HashMap<Arc<str>, Arc<str>>,
    zones: HashMap<NodeName, Arc<str>>,
    writes: u64,
}

impl StorageObjects {
    pub fn note_node(&mut self, name: &NodeName, labels: &Labels) {
        if let Some(zone) = labels.get(ZONE) {
            self.zones.insert(name.clone(), zone.clone());
        }
    }

    pub fn note(&mut self, object: &ClusterObject) {
        match object {
            ClusterObject::PersistentVolume(name, volume) => {
                self.volumes.insert(name.clone(), volume.clone());
            }
            ClusterObject::PersistentVolumeClaim(key, claim) => {
                self.claims.insert(key.clone(), claim.clone());
            }
            ClusterObject::ResourceClaim(key, claim) => {
                self.device_claims.insert(key.clone(), claim.clone());
            }
            ClusterObject::StorageClass(name, class) => {
                self.provisioners.insert(name.clone(), class.provisioner.clone());
            }
            _ => {}
        }
    }

    /// What the driver tells of these writes, as the replies have it, and then what the watch shows: the steps of the
    /// PersistentVolume controller, and before them those of a provisioner.
    pub fn carry_out(&mut self, prepare: &Prepare) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for write in &prepare.writes {
            events.push(match write {
                PrepareWrite::BindVolume { volume, claim, claim_uid, .. } => {
                    self.change_volume(volume, |volume| {
                        let uid = Some(claim_uid.clone());
                        volume.claim_ref = Some(ClaimRef { key: claim.clone(), uid });
                        volume.is_bound_by_controller = true;
                    })?
                }
                PrepareWrite::SelectNode { claim, .. } => self.change_claim(claim, |claim| {
                    claim.selected_node = Some(prepare.node.as_str().into());
                })?,
                PrepareWrite::ProtectClaim { claim, .. } => {
                    self.change_device_claim(claim, |claim| claim.has_finalizer = true)?
                }
                PrepareWrite::ReserveClaim { claim, allocation, .. } => {
                    self.change_device_claim(claim, |claim| {
                        claim.allocation = allocation.clone().or(claim.allocation.take());
                        claim.reserved_for.push(user(prepare));
                    })?
                }
                PrepareWrite::DeallocateClaim { claim, .. } => {
                    self.change_device_claim(claim, |claim| {
                        claim.allocation = None;
                        claim.reserved_for.clear();
                    })?
                }
            });
        }
        events.push(Event::PrepareDone(prepare.uid.clone()));
        for write in &prepare.writes {
            match write {
                PrepareWrite::BindVolume { volume, claim, .. } => {
                    self.bind(volume, claim, &mut events)?;
                }
                PrepareWrite::SelectNode { claim, .. } => {
                    let volume = self.provision(claim, &prepare.node, &mut events)?;
                    self.bind(&volume, claim, &mut events)?;
                }
                PrepareWrite::ProtectClaim { .. }
                | PrepareWrite::ReserveClaim { .. }
                | PrepareWrite::DeallocateClaim { .. } => {}
            }
        }
        Ok(events)
    }

    /// Who is to make it is written on the claim, and then it is made in the zone of the Node.
    fn provision(
        &mut self,
        key: &ObjectKey,
        node: &NodeName,
        events: &mut Vec<Event>,
    ) -> Result<Arc<str>> {
        events.push(self.change_claim(key, |_| {})?);
        let version = self.next_version();
        let claim = self.claims.get(key).ok_or_else(|| gone(&key.name))?;
        let name: Arc<str> = format!("pvc-{}", claim.uid).into();
        let zone = self.zones.get(node).map(|zone| {
            let term = NodeSelectorTerm::parse(&[RawRequirement::new(ZONE, "In", &[&**zone])], &[]);
            NodeSelector { terms: vec![term] }
        });
        let volume = PersistentVolume {
            uid: name.clone(),
            resource_version: version,
            class: claim.class.clone(),
            capacity: claim.request,
            claim_ref: Some(ClaimRef { key: key.clone(), uid: Some(claim.uid.clone()) }),
            access_modes: claim.access_modes,
            node_affinity: zone,
            source: VolumeSource::Csi {
                driver: self.provisioners.get(&claim.class).cloned().unwrap_or_default(),
                handle: name.clone(),
            },
            ..PersistentVolume::new(&name)
        };
        let volume = Arc::new(volume);
        self.volumes.insert(name.clone(), volume.clone());
        events.push(Event::seen(ClusterObject::PersistentVolume(name.clone(), volume)));
        Ok(name)
    }

    /// The controller's three writes: the volume's phase, the claim, and the claim's phase, which is not read.
    fn bind(&mut self, volume: &str, claim: &ObjectKey, events: &mut Vec<Event>) -> Result<()> {
        events.push(self.change_volume(volume, |volume| volume.phase = VolumePhase::Bound)?);
        events.push(self.change_claim(claim, |claim| {
            claim.volume_name = Some(volume.into());
            claim.is_bind_completed = true;
        })?);
        events.push(self.change_claim(claim, |_| {})?);
        Ok(())
    }

    fn change_volume(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut PersistentVolume),
    ) -> Result<Event> {
        let version = self.next_version();
        let volume = self.volumes.get_mut(name).ok_or_else(|| gone(name))?;
        let mut changed = PersistentVolume { resource_version: version, ..(**volume).clone() };
        change(&mut changed);
        *volume = Arc::new(changed);
        Ok(Event::seen(ClusterObject::PersistentVolume(volume.name.clone(), volume.clone())))
    }

    fn change_claim(
        &mut self,
        key: &ObjectKey,
        change: impl FnOnce(&mut PersistentVolumeClaim),
    ) -> Result<Event> {
        let version = self.next_version();
        let claim = self.claims.get_mut(key).ok_or_else(|| gone(&key.name))?;
        let mut changed = PersistentVolumeClaim { resource_version: version, ..(**claim).clone() };
        change(&mut changed);
        *claim = Arc::new(changed);
        Ok(Event::seen(ClusterObject::PersistentVolumeClaim(key.clone(), claim.clone())))
    }

    fn change_device_claim(
        &mut self,
        key: &ObjectKey,
        change: impl FnOnce(&mut ResourceClaim),
    ) -> Result<Event> {
        let version = self.next_version();
        let claim = self.device_claims.get_mut(key).ok_or_else(|| gone(&key.name))?;
        let mut changed = ResourceClaim { resource_version: version, ..(**claim).clone() };
        change(&mut changed);
        *claim = Arc::new(changed);
        Ok(Event::seen(ClusterObject::ResourceClaim(key.clone(), claim.clone())))
    }

    /// The volumes that claims are bound to.
    #[cfg(test)]
    pub fn in_use(&self) -> impl Iterator<Item = &Arc<str>> {
        self.claims.values().filter_map(|claim| claim.bound_to())
    }

    fn next_version(&mut self) -> Arc<str> {
        self.writes += 1;
        // Behind those that the workload's objects have.
        (self.writes + 1).to_string().into()
    }
}

fn user(prepare: &Prepare) -> ClaimUser {
    let (name, uid) = (prepare.pod.name.clone(), prepare.uid.as_str().into());
    ClaimUser { is_pod: true, name, uid }
}

fn gone(name: &str) -> Error {
    Error::Violated(format!("{name} is written to, and was never there"))
}
