//! Pods with volumes return when a change behind volumes may help them. Thousands may wait whose claims differ, so they
//! are found by what they are interested in.

use std::collections::BTreeMap;

use rules::{VolumeChange, VolumeScope};

use super::cluster_change::Scope;
use crate::engine::Engine;
use crate::queue::ParkKey;

impl Engine {
    pub(super) fn wake_after_volume_change(&mut self, change: VolumeChange<'_>) {
        let scopes = self.scopes_of(change);
        // Whether or not a Node takes them now, why not may be something else: that the claim is there, but not bound.
        let is_reason = matches!(change, VolumeChange::Claim { .. } | VolumeChange::Class);
        for (class, scope) in scopes {
            self.judge(&class, &scope);
            if scope != Scope::Everywhere {
                continue;
            }
            self.file(&class);
            if is_reason {
                for (_, _, pod) in self.queues.parked.of_class(&class) {
                    self.wake(&pod);
                }
            }
        }
    }

    /// The classes that the change may concern, and where.
    fn scopes_of(&self, change: VolumeChange<'_>) -> BTreeMap<ParkKey, Scope> {
        let index = &self.queues.wake_index;
        let mut scopes = BTreeMap::new();
        for (interest, scope) in change.concerns(&self.observed.cluster) {
            for class in index.interested_in(&interest) {
                let known = scopes.entry(class.clone()).or_insert(Scope::Nodes([].into()));
                match (known, &scope) {
                    (known, VolumeScope::Everywhere) => *known = Scope::Everywhere,
                    (Scope::Nodes(known), VolumeScope::Nodes(nodes))
                        if !index.lacks_volumes(class) =>
                    {
                        known.extend(nodes.iter().cloned());
                    }
                    (_, VolumeScope::Nodes(_)) => {}
                }
            }
        }
        scopes.retain(|_, scope| *scope != Scope::Nodes([].into()));
        scopes
    }
}
