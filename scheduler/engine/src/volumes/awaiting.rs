//! Claims that placed Pods wait for: PersistentVolumeClaims until they are bound, ResourceClaims until their devices are
//! ready. Derived from the Pods' records.

use std::collections::{BTreeMap, BTreeSet};

use model::{Instant, ObjectKey, PodUid};

use crate::record::Record;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AwaitedClaim {
    OfVolume(ObjectKey),
    OfDevices(ObjectKey),
}

#[derive(Debug, Default)]
pub(crate) struct AwaitedClaims {
    by_claim: BTreeMap<AwaitedClaim, BTreeSet<PodUid>>,
    due: BTreeSet<(Instant, PodUid)>,
}

impl AwaitedClaims {
    pub fn insert(&mut self, record: &Record, until: Instant) {
        let pod = &record.pod.uid;
        self.due.insert((until, pod.clone()));
        for claim in awaited_by(record) {
            self.by_claim.entry(claim).or_default().insert(pod.clone());
        }
    }

    pub fn remove(&mut self, record: &Record, until: Instant) {
        let pod = &record.pod.uid;
        self.due.remove(&(until, pod.clone()));
        for claim in awaited_by(record) {
            let Some(pods) = self.by_claim.get_mut(&claim) else { continue };
            pods.remove(pod);
            if pods.is_empty() {
                self.by_claim.remove(&claim);
            }
        }
    }

    /// The Pods that wait for the claim.
    pub fn of(&self, claim: &AwaitedClaim) -> Vec<PodUid> {
        self.by_claim.get(claim).into_iter().flatten().cloned().collect()
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }

    /// The next Pod that has waited too long.
    pub fn overdue(&self, now: Instant) -> Option<PodUid> {
        self.due.first().filter(|(until, _)| *until <= now).map(|(_, pod)| pod.clone())
    }
}

fn awaited_by(record: &Record) -> impl Iterator<Item = AwaitedClaim> {
    let volumes = record.volumes().into_iter().flat_map(model::PodVolumeBindings::claims);
    let devices = record.resource_claims().iter();
    volumes
        .map(|claim| AwaitedClaim::OfVolume(claim.clone()))
        .chain(devices.map(|claim| AwaitedClaim::OfDevices(claim.key.clone())))
}
