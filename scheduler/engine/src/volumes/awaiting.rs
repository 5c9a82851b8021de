//! Claims that placed Pods wait for. Derived from the Pods' records.

use std::collections::{BTreeMap, BTreeSet};

use model::{Instant, ObjectKey, PodUid, PodVolumeBindings};

#[derive(Debug, Default)]
pub(crate) struct AwaitedClaims {
    by_claim: BTreeMap<ObjectKey, BTreeSet<PodUid>>,
    due: BTreeSet<(Instant, PodUid)>,
}

impl AwaitedClaims {
    pub fn insert(&mut self, pod: &PodUid, bindings: &PodVolumeBindings, until: Instant) {
        self.due.insert((until, pod.clone()));
        for claim in bindings.claims() {
            self.by_claim.entry(claim.clone()).or_default().insert(pod.clone());
        }
    }

    pub fn remove(&mut self, pod: &PodUid, bindings: &PodVolumeBindings, until: Instant) {
        self.due.remove(&(until, pod.clone()));
        for claim in bindings.claims() {
            let Some(pods) = self.by_claim.get_mut(claim) else { continue };
            pods.remove(pod);
            if pods.is_empty() {
                self.by_claim.remove(claim);
            }
        }
    }

    /// The Pods that wait for the claim.
    pub fn of(&self, claim: &ObjectKey) -> Vec<PodUid> {
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
