//! Pods with claims return when a change behind their volumes or devices may help them. Thousands may wait whose claims
//! differ, so they are found by what they are interested in.

use std::collections::BTreeMap;

use model::PodClaim;
use rules::{ClaimInterest, ClaimScope, DeviceChange, VolumeChange};

use super::cluster_change::Scope;
use crate::engine::Engine;
use crate::queue::ParkKey;

impl Engine {
    pub(super) fn wake_after_volume_change(&mut self, change: VolumeChange<'_>) {
        // Whether or not a Node takes them now, why not may be something else: that the claim is there, but not bound.
        let is_reason = matches!(change, VolumeChange::Claim { .. } | VolumeChange::Class);
        self.wake_concerned(change.concerns(&self.observed.cluster), |_| is_reason);
    }

    pub(super) fn wake_after_device_change(&mut self, change: DeviceChange<'_>) {
        let is_reason = |class: &ParkKey| match change {
            DeviceChange::Claim { before, after } => {
                let of_class = class.resource_claims.iter().filter_map(PodClaim::claim);
                let changed = before.or(after).map(|claim| &claim.key);
                let name = changed.filter(|it| it.namespace == class.namespace).map(|it| &it.name);
                of_class.into_iter().any(|it| Some(it) == name)
            }
            DeviceChange::Class => true,
            DeviceChange::Slice { .. } | DeviceChange::Taken(_) | DeviceChange::Released(_) => {
                false
            }
        };
        let concerned = change.concerns(&self.observed.cluster.devices.pools);
        self.wake_concerned(concerned, is_reason);
    }

    fn wake_concerned(
        &mut self,
        concerned: Vec<(ClaimInterest, ClaimScope)>,
        is_reason: impl Fn(&ParkKey) -> bool,
    ) {
        for (class, scope) in self.scopes_of(concerned) {
            self.judge(&class, &scope);
            if scope != Scope::Everywhere {
                continue;
            }
            self.file(&class);
            if is_reason(&class) {
                for (_, _, pod) in self.queues.parked.of_class(&class) {
                    self.wake(&pod);
                }
            }
        }
    }

    /// The classes that the change may concern, and where.
    fn scopes_of(&self, concerned: Vec<(ClaimInterest, ClaimScope)>) -> BTreeMap<ParkKey, Scope> {
        let index = &self.queues.wake_index;
        let mut scopes = BTreeMap::new();
        for (interest, scope) in concerned {
            for class in index.interested_in(&interest) {
                let known = scopes.entry(class.clone()).or_insert(Scope::Nodes([].into()));
                match (known, &scope) {
                    (known, ClaimScope::Everywhere) => *known = Scope::Everywhere,
                    (Scope::Nodes(known), ClaimScope::Nodes(nodes))
                        if !index.lacks_claims(class) =>
                    {
                        known.extend(nodes.iter().cloned());
                    }
                    (_, ClaimScope::Nodes(_)) => {}
                }
            }
        }
        scopes.retain(|_, scope| *scope != Scope::Nodes([].into()));
        scopes
    }
}
