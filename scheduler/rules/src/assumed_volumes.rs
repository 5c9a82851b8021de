//! What Pods that are placed but not bound yet have taken of volumes: written soon, not observed yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{NodeName, ObjectKey, PersistentVolume, PersistentVolumeClaim, PodVolumeBindings};

/// Counted, because Pods may share a claim: what one lets go, the other still holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssumedVolumes {
    /// The claim that each PersistentVolume is for.
    claims: BTreeMap<Arc<str>, Counted<ObjectKey>>,
    /// The same, the other way round.
    volumes: BTreeMap<ObjectKey, Counted<Arc<str>>>,
    /// The Node on which a volume is made for each claim.
    nodes: BTreeMap<ObjectKey, Counted<NodeName>>,
}

/// Rules that read it agree on one value; should two meet nevertheless, the first of them counts.
type Counted<T> = BTreeMap<T, u32>;

impl AssumedVolumes {
    /// The Pod takes these, on this Node.
    pub fn assume(&mut self, bindings: &PodVolumeBindings, node: &NodeName) {
        for (claim, volume) in &bindings.static_bindings {
            *self.claims.entry(volume.clone()).or_default().entry(claim.clone()).or_default() += 1;
            *self.volumes.entry(claim.clone()).or_default().entry(volume.clone()).or_default() += 1;
        }
        for claim in &bindings.dynamic_provisions {
            *self.nodes.entry(claim.clone()).or_default().entry(node.clone()).or_default() += 1;
        }
    }

    /// Undoes [`Self::assume`] with the same arguments: the Pod is bound, or has let go.
    pub fn forget(&mut self, bindings: &PodVolumeBindings, node: &NodeName) {
        for (claim, volume) in &bindings.static_bindings {
            take_one(&mut self.claims, volume, claim);
            take_one(&mut self.volumes, claim, volume);
        }
        for claim in &bindings.dynamic_provisions {
            take_one(&mut self.nodes, claim, node);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.nodes.is_empty()
    }

    /// The claim that the PersistentVolume was taken for.
    pub fn claim_of(&self, volume: &str) -> Option<&ObjectKey> {
        self.claims.get(volume)?.keys().next()
    }

    /// The PersistentVolumes that were taken for the claim.
    pub fn volumes_of(&self, claim: &ObjectKey) -> impl Iterator<Item = &Arc<str>> {
        let volumes = self.volumes.get(claim).into_iter().flat_map(BTreeMap::keys);
        volumes.filter(move |volume| self.claim_of(volume) == Some(claim))
    }

    /// The Node on which a volume is to be made for the claim.
    pub fn node_of(&self, claim: &ObjectKey) -> Option<&NodeName> {
        self.nodes.get(claim)?.keys().next()
    }

    /// Whether the PersistentVolume is for this very claim, or for another, as far as is known.
    pub fn owner(&self, volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> VolumeOwner {
        let is_own = match (&volume.claim_ref, self.claim_of(&volume.name)) {
            (Some(observed), _) => {
                observed.key == claim.key
                    && observed.uid.as_ref().is_none_or(|uid| *uid == claim.uid)
            }
            (None, Some(assumed)) => *assumed == claim.key,
            (None, None) => return VolumeOwner::Free,
        };
        if is_own { VolumeOwner::Own } else { VolumeOwner::Other }
    }

    /// The selected Node of the claim: the one that is written, else the one that will be.
    pub fn selected_node<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
        let written = claim.selected_node.as_deref();
        written.or_else(|| self.node_of(&claim.key).map(NodeName::as_str))
    }
}

/// For whom a PersistentVolume is, seen from one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeOwner {
    Free,
    Own,
    Other,
}

fn take_one<K: Ord, V: Ord>(counts: &mut BTreeMap<K, Counted<V>>, key: &K, value: &V) {
    let Some(values) = counts.get_mut(key) else { return };
    if let Some(count) = values.get_mut(value) {
        *count -= 1;
        if *count == 0 {
            values.remove(value);
        }
    }
    if values.is_empty() {
        counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ClaimRef;
    use proptest::prelude::*;

    fn claim(name: &str) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::new(ObjectKey::new("default", name));
        claim.uid = format!("uid-{name}").into();
        claim
    }

    fn static_binding(claim: &str, volume: &str) -> PodVolumeBindings {
        let static_bindings = vec![(ObjectKey::new("default", claim), volume.into())];
        PodVolumeBindings { static_bindings, ..PodVolumeBindings::default() }
    }

    #[test]
    fn what_two_pods_hold_stays_until_both_let_go() {
        let mut assumed = AssumedVolumes::default();
        let bindings = static_binding("a", "pv");
        let node = NodeName::new("n");
        assumed.assume(&bindings, &node);
        assumed.assume(&bindings, &node);
        assumed.forget(&bindings, &node);
        assert_eq!(assumed.claim_of("pv"), Some(&ObjectKey::new("default", "a")));
        assumed.forget(&bindings, &node);
        assert!(assumed.is_empty());
    }

    #[test]
    fn what_is_written_goes_before_what_will_be() {
        let mut assumed = AssumedVolumes::default();
        let mut volume = PersistentVolume::new("pv");
        assert_eq!(assumed.owner(&volume, &claim("a")), VolumeOwner::Free);
        assumed.assume(&static_binding("a", "pv"), &NodeName::new("n"));
        assert_eq!(assumed.owner(&volume, &claim("a")), VolumeOwner::Own);
        assert_eq!(assumed.owner(&volume, &claim("b")), VolumeOwner::Other);
        let stale = ClaimRef { key: ObjectKey::new("default", "a"), uid: Some("stale".into()) };
        volume.claim_ref = Some(stale);
        assert_eq!(assumed.owner(&volume, &claim("a")), VolumeOwner::Other);
    }

    #[test]
    fn an_empty_annotation_is_a_selected_node() {
        let mut assumed = AssumedVolumes::default();
        let mut claim = claim("a");
        let dynamic_provisions = vec![claim.key.clone()];
        let bindings = PodVolumeBindings { dynamic_provisions, ..PodVolumeBindings::default() };
        assumed.assume(&bindings, &NodeName::new("n"));
        assert_eq!(assumed.selected_node(&claim), Some("n"));
        claim.selected_node = Some("".into());
        assert_eq!(assumed.selected_node(&claim), Some(""));
    }

    fn any_bindings() -> impl Strategy<Value = (PodVolumeBindings, NodeName)> {
        let name = || prop_oneof![Just("a"), Just("b"), Just("c")];
        let statics = proptest::collection::vec((name(), name()), 0..3);
        let dynamics = proptest::collection::vec(name(), 0..3);
        (statics, dynamics, name()).prop_map(|(statics, dynamics, node)| {
            let key = |name: &str| ObjectKey::new("default", name);
            let bindings = PodVolumeBindings {
                static_bindings: statics.iter().map(|(c, v)| (key(c), (*v).into())).collect(),
                dynamic_provisions: dynamics.iter().map(|it| key(it)).collect(),
            };
            (bindings, NodeName::new(node))
        })
    }

    proptest! {
        #[test]
        fn to_forget_undoes_to_assume_whatever_came_between(
            before in proptest::collection::vec(any_bindings(), 0..5),
            one in any_bindings(),
            between in proptest::collection::vec(any_bindings(), 0..5),
        ) {
            let mut with = AssumedVolumes::default();
            let mut without = AssumedVolumes::default();
            for (bindings, node) in &before {
                with.assume(bindings, node);
                without.assume(bindings, node);
            }
            with.assume(&one.0, &one.1);
            for (bindings, node) in &between {
                with.assume(bindings, node);
                without.assume(bindings, node);
            }
            with.forget(&one.0, &one.1);
            prop_assert_eq!(&with, &without);
            for (bindings, node) in before.iter().chain(&between) {
                with.forget(bindings, node);
            }
            prop_assert!(with.is_empty());
        }
    }
}
