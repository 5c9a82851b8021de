//! The quick form of DynamicResources. What devices a Node has for a class of Pods is found out when the Node is about to
//! win, and kept until something that it depends on changes. Until then the Node is taken to have them, with any score.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rules::{ClaimScope, Cluster, DeviceChange, DeviceFit, DeviceNeeds, Reason};

use super::log::Changed;
use super::node_index::NodeIndex;
use super::pod_classes::PodClass;
use super::rows::Slot;
use super::score_cache::Context;
use super::{Placing, View};

/// How often devices have changed that are not of a single Node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceChanges {
    /// Any Node may have more than before.
    pub freed: u32,
    /// Any Node may have less than before, and none more.
    pub taken: u32,
}

/// What is known of Nodes for one class.
#[derive(Debug)]
pub(super) struct DeviceRoom {
    needs: Arc<DeviceNeeds>,
    /// The scores that a Node can have, in order.
    pub scores: Vec<i64>,
    /// By slot. Filled in while Nodes are compared, which changes nothing else.
    known: Vec<AtomicU64>,
    seen: DeviceChanges,
}

/// What is known of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    DoesNotFit,
    /// With the score in this place.
    Fits(u8),
}

impl DeviceRoom {
    pub fn new(needs: &Arc<DeviceNeeds>, index: &NodeIndex) -> Self {
        Self {
            scores: needs.scores().into_iter().collect(),
            needs: needs.clone(),
            known: Vec::new(),
            seen: index.device_changes,
        }
    }

    fn known(&self, slot: Slot) -> Known {
        let Some(known) = self.known.get(slot as usize) else { return Known::Nothing };
        Known::from_bits(known.load(Ordering::Relaxed), self.seen.taken)
    }

    /// Finds it out if it is not known.
    fn look(&self, slot: Slot, context: Context<'_>) -> Known {
        match self.known(slot) {
            Known::Nothing => {}
            known => return known,
        }
        let Context { view: View { cluster, .. }, index, .. } = context;
        let node = index.rows.name(slot).and_then(|name| cluster.nodes.get(name));
        let found = match node.map(|node| self.needs.on(cluster, node)) {
            Some(DeviceFit::Fits(score)) => {
                let place = self.scores.iter().position(|it| *it == score);
                Known::Fits(place.and_then(|it| u8::try_from(it).ok()).unwrap_or(0))
            }
            Some(DeviceFit::Rejected(_)) | None => Known::DoesNotFit,
        };
        if let Some(known) = self.known.get(slot as usize) {
            known.store(found.to_bits(self.seen.taken), Ordering::Relaxed);
        }
        found
    }

    /// Nothing is known of the Node from now on.
    fn forget(&mut self, slot: Slot) {
        if let Some(known) = self.known.get_mut(slot as usize) {
            *known = AtomicU64::default();
        }
    }
}

impl Known {
    const DOES_NOT_FIT: u64 = 1;
    /// From here on, places of scores.
    const FITS: u64 = 2;

    fn to_bits(self, taken: u32) -> u64 {
        let low = match self {
            Self::Nothing => 0,
            Self::DoesNotFit => Self::DOES_NOT_FIT,
            Self::Fits(place) => Self::FITS + u64::from(place),
        };
        u64::from(taken) << 32 | low
    }

    /// What fitted no longer holds if something was taken since. What did not does.
    fn from_bits(bits: u64, taken: u32) -> Self {
        match bits & u64::from(u32::MAX) {
            Self::DOES_NOT_FIT => Self::DoesNotFit,
            fits @ Self::FITS.. if bits >> 32 == u64::from(taken) => {
                u8::try_from(fits - Self::FITS).map_or(Self::Nothing, Self::Fits)
            }
            _ => Self::Nothing,
        }
    }
}

impl Placing {
    /// A placed Pod has taken devices, or has let go of them.
    pub fn devices_changed(&mut self, change: DeviceChange<'_>, cluster: &Cluster) {
        self.index.devices_changed(change, cluster);
    }
}

impl NodeIndex {
    pub fn devices_changed(&mut self, change: DeviceChange<'_>, cluster: &Cluster) {
        let effect = change.effect(&cluster.devices.pools);
        let named = |scope: &ClaimScope| match scope {
            ClaimScope::Nodes(nodes) => Some(nodes.clone()),
            ClaimScope::Everywhere => None,
        };
        let mut nodes = BTreeSet::new();
        let (freed, taken) = (effect.freed.as_ref(), effect.taken.as_ref());
        match freed.map(named) {
            Some(None) => self.device_changes.freed = self.device_changes.freed.wrapping_add(1),
            Some(Some(named)) => nodes.extend(named),
            None => {}
        }
        match taken.map(named) {
            Some(None) => self.device_changes.taken = self.device_changes.taken.wrapping_add(1),
            Some(Some(named)) => nodes.extend(named),
            None => {}
        }
        for slot in nodes.iter().filter_map(|node| self.rows.slot_of(node)).collect::<Vec<_>>() {
            self.changed(slot, Changed::Pods);
        }
    }
}

impl PodClass {
    /// Whether the Node has devices for it; of a score, if one is named.
    pub fn takes_devices(&self, slot: Slot, context: Context<'_>, score: Option<u8>) -> bool {
        let Some(devices) = &self.devices else { return true };
        match devices.look(slot, context) {
            Known::Fits(found) => score.is_none_or(|score| score == found),
            Known::Nothing | Known::DoesNotFit => false,
        }
    }

    /// The same, as far as it is known: true if not.
    pub fn may_take_devices(&self, slot: Slot, score: Option<u8>) -> bool {
        let Some(devices) = &self.devices else { return true };
        match devices.known(slot) {
            Known::Nothing => true,
            Known::DoesNotFit => false,
            Known::Fits(found) => score.is_none_or(|score| score == found),
        }
    }

    /// What the Node's devices score for it, before that is normalized. 0 if all score alike.
    pub fn device_score(&self, slot: Slot, context: Context<'_>) -> i64 {
        let Some(devices) = &self.devices else { return 0 };
        match devices.look(slot, context) {
            Known::Fits(place) => devices.scores.get(usize::from(place)).copied().unwrap_or(0),
            Known::Nothing | Known::DoesNotFit => 0,
        }
    }

    /// How many scores devices can have.
    pub fn device_scores(&self) -> &[i64] {
        self.devices.as_ref().map_or(&[], |devices| &devices.scores)
    }

    /// The Node has changed.
    pub fn forget_devices(&mut self, slot: Slot) {
        if let Some(devices) = &mut self.devices {
            devices.forget(slot);
        }
    }

    /// Devices may have changed that are not of a single Node.
    pub fn follow_devices(&mut self, index: &NodeIndex) {
        let Some(devices) = &mut self.devices else { return };
        let now = index.device_changes;
        if devices.seen == now {
            return;
        }
        if devices.seen.freed != now.freed {
            devices.known.clear();
            self.score_cache = None;
        }
        // A Node that has less may have another score, or an exact one that is kept.
        if devices.scores.len() > 1 || self.constraints.tells_nodes_apart() {
            self.score_cache = None;
        }
        devices.seen = now;
        self.unschedulable = None;
        self.diagnosis = None;
    }

    /// Nothing is known of any Node from now on.
    pub fn forget_all_devices(&mut self, index: &NodeIndex) {
        if let Some(devices) = &mut self.devices {
            devices.known.clear();
            devices.known.resize_with(index.rows.len(), AtomicU64::default);
        }
    }

    /// Why the Node has no devices for it.
    pub fn reasons_of_devices(&self, slot: Slot, context: Context<'_>, reasons: &mut Vec<Reason>) {
        let Context { view: View { cluster, .. }, index, .. } = context;
        let Some(devices) = &self.devices else { return };
        let node = index.rows.name(slot).and_then(|name| cluster.nodes.get(name));
        if let Some(DeviceFit::Rejected(why)) = node.map(|node| devices.needs.on(cluster, node)) {
            reasons.extend(why);
        }
    }
}
