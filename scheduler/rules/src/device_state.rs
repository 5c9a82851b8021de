//! What follows from ResourceSlices and ResourceClaims, kept with every change: which devices there are, who has each,
//! and what expressions say of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use model::{Allocation, DeviceType, PodUid, ResourceClaim, SelectorVerdict};

use crate::devices::{DevicePools, Selectors, TakenChange, TakenDevices};
use crate::plugins::{ClaimToReserve, ClusterObjectChange};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    pub pools: DevicePools,
    pub taken: TakenDevices,
    pub verdicts: SelectorVerdicts,
    /// By UIDs of claims: what Pods that are placed but not bound yet make of them. Written soon, not observed yet.
    assumed: BTreeMap<Arc<str>, Assumed>,
    /// By UIDs of claims, the allocations that were observed.
    allocations: BTreeMap<Arc<str>, Arc<Allocation>>,
}

/// By Pods, because they may share a claim, and what one lets go the others still hold.
type Assumed = BTreeMap<PodUid, Option<Arc<Allocation>>>;

impl DeviceState {
    pub(crate) fn follow(&mut self, change: &ClusterObjectChange) {
        match change {
            ClusterObjectChange::ResourceSlice { before, after } => match (before, after) {
                (_, Some(after)) => self.pools.set(after.clone()),
                (Some(before), None) => drop(self.pools.remove(&before.name)),
                (None, None) => {}
            },
            ClusterObjectChange::ResourceClaim { before, after } => {
                if let Some(before) = before {
                    self.allocations.remove(&before.uid);
                }
                if let Some((uid, allocation)) =
                    after.as_ref().and_then(|it| Some((&it.uid, it.allocation.as_ref()?)))
                {
                    self.allocations.insert(uid.clone(), allocation.clone());
                }
                for claim in before.iter().chain(after) {
                    self.count_again(&claim.uid);
                }
            }
            _ => {}
        }
    }

    /// The Pod takes this of its claims. Returns whether a device is in use that was not.
    pub fn assume(&mut self, pod: &PodUid, claims: &[ClaimToReserve]) -> bool {
        let mut has_changed = false;
        for claim in claims {
            let assumed = self.assumed.entry(claim.uid.clone()).or_default();
            assumed.insert(pod.clone(), claim.allocation.clone());
            has_changed |= !self.count_again(&claim.uid).is_empty();
        }
        has_changed
    }

    /// Undoes [`Self::assume`]: the Pod is bound, or has let go. What was written of it is observed by now. Returns whether
    /// a device is free that was not.
    pub fn forget(&mut self, pod: &PodUid, claims: &[ClaimToReserve]) -> bool {
        let mut has_changed = false;
        for claim in claims {
            if let Some(assumed) = self.assumed.get_mut(&claim.uid) {
                assumed.remove(pod);
                if assumed.is_empty() {
                    self.assumed.remove(&claim.uid);
                }
            }
            has_changed |= !self.count_again(&claim.uid).is_empty();
        }
        has_changed
    }

    /// Undoes every [`Self::assume`].
    pub fn forget_all(&mut self) {
        let uids: Vec<_> = std::mem::take(&mut self.assumed).into_keys().collect();
        for uid in uids {
            self.count_again(&uid);
        }
    }

    /// What is written goes before what will be.
    fn count_again(&mut self, uid: &Arc<str>) -> TakenChange {
        let observed = self.allocations.get(uid);
        let assumed = || self.assumed.get(uid).and_then(|it| it.values().flatten().next());
        let allocation = observed.or_else(assumed).cloned();
        self.taken.set(uid, allocation.as_deref())
    }

    pub fn is_any_assumed(&self) -> bool {
        !self.assumed.is_empty()
    }

    /// Whether a Pod that is placed has the claim or is about to.
    pub fn is_assumed_by_any(&self, claim: &ResourceClaim) -> bool {
        self.assumed.contains_key(&claim.uid)
    }

    /// Whether another Pod is about to have the claim allocated.
    pub(crate) fn is_assumed_for_other(&self, claim: &ResourceClaim, pod: &PodUid) -> bool {
        let assumed = self.assumed.get(&claim.uid);
        let mut others = assumed.into_iter().flatten().filter(|(other, _)| *other != pod);
        others.any(|(_, allocation)| allocation.is_some())
    }

    /// Whether the claim can be reserved for one more Pod, or is for this one.
    pub(crate) fn has_room_for_user(&self, claim: &ResourceClaim, pod: &PodUid) -> bool {
        let is_known = |uid: &PodUid| claim.is_reserved_for(uid);
        let assumed = self.assumed.get(&claim.uid).into_iter().flatten();
        let coming = assumed.filter(|(other, _)| *other != pod && !is_known(other)).count();
        is_known(pod) || claim.reserved_for.len() + coming < ResourceClaim::USERS_MAX
    }
}

/// What expressions say of types of devices. Evaluated elsewhere, each pair once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorVerdicts {
    by_expression: HashMap<Arc<str>, ByType, FixedState>,
}

/// What an expression says of each type.
pub type TypeVerdicts = Vec<(Arc<DeviceType>, SelectorVerdict)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ByType {
    verdicts: HashMap<Arc<DeviceType>, SelectorVerdict, FixedState>,
    /// The same by where the types are in memory: those of devices are most often these, and they are compared in full only
    /// if not. The type is kept with it, so that nothing else comes to lie there.
    by_address: HashMap<usize, (Arc<DeviceType>, SelectorVerdict), FixedState>,
    /// For how many types it fails.
    failing: usize,
}

impl ByType {
    fn set(&mut self, device_type: &Arc<DeviceType>, verdict: Option<SelectorVerdict>) {
        let fails = |it: &SelectorVerdict| matches!(it, SelectorVerdict::Fails(_));
        self.failing += usize::from(verdict.as_ref().is_some_and(fails));
        if let Some((known, _)) = self.verdicts.get_key_value(device_type) {
            self.by_address.remove(&Arc::as_ptr(known).addr());
        }
        // The key of an entry that is replaced would stay.
        let before = self.verdicts.remove(device_type);
        if let Some(verdict) = verdict {
            let by_address = (device_type.clone(), verdict.clone());
            self.by_address.insert(Arc::as_ptr(device_type).addr(), by_address);
            self.verdicts.insert(device_type.clone(), verdict);
        }
        self.failing -= usize::from(before.as_ref().is_some_and(fails));
    }
}

impl SelectorVerdicts {
    pub fn insert(
        &mut self,
        expression: &Arc<str>,
        device_type: &Arc<DeviceType>,
        verdict: SelectorVerdict,
    ) {
        self.by_expression.entry_ref(expression).or_default().set(device_type, Some(verdict));
    }

    /// Whether it fails for a type of devices.
    pub fn fails_somewhere(&self, expression: &str) -> bool {
        self.by_expression.get(expression).is_some_and(|it| it.failing > 0)
    }

    pub fn forget_expression(&mut self, expression: &str) {
        self.by_expression.remove(expression);
    }

    pub fn forget_type(&mut self, device_type: &Arc<DeviceType>) {
        for of_expression in self.by_expression.values_mut() {
            of_expression.set(device_type, None);
        }
    }

    /// All, in order.
    pub fn sorted(&self) -> Vec<(Arc<str>, TypeVerdicts)> {
        let of_expression = |of: &ByType| {
            let mut all: Vec<_> =
                of.verdicts.iter().map(|(it, said)| (it.clone(), said.clone())).collect();
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            all
        };
        let mut all: Vec<_> =
            self.by_expression.iter().map(|(it, of)| (it.clone(), of_expression(of))).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }
}

/// Pairs come with the objects that need them. One that did not come would be a fault of the scheduler's own: it is said,
/// and places no Pod.
const NOT_EVALUATED: &str = "CEL runtime error: the expression was not evaluated";

impl Selectors for SelectorVerdicts {
    fn verdict(&self, expression: &Arc<str>, device: &Arc<DeviceType>) -> SelectorVerdict {
        let of_expression = self.by_expression.get(expression);
        let known = of_expression.and_then(|of| {
            let by_address = of.by_address.get(&Arc::as_ptr(device).addr());
            by_address.map(|(_, verdict)| verdict).or_else(|| of.verdicts.get(device))
        });
        known.cloned().unwrap_or_else(|| SelectorVerdict::Fails(NOT_EVALUATED.into()))
    }
}
