//! Which devices claims have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use model::{AllocatedDevice, Allocation, DeviceId, Quantity};

/// What the allocations of claims take, by claims and by devices. Results with admin access take nothing.
///
/// Of each device it is known which claims have it: two may wrongly hold one device, and when one of them lets go, it
/// is still taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenDevices {
    /// By UIDs of claims.
    claims: BTreeMap<Arc<str>, Vec<Held>>,
    /// For looking up; where an order matters, they are sorted.
    devices: HashMap<DeviceId, DeviceUse, FixedState>,
    /// Devices that more than one claim holds for itself, or one for itself and others in shares.
    contested: BTreeSet<DeviceId>,
}

/// What a claim holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    id: DeviceId,
    /// `None`: the device as a whole.
    share: Option<Share>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Share {
    id: Arc<str>,
    consumed: BTreeMap<Arc<str>, Quantity>,
}

/// Who has a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// How often the claims hold it as a whole, by UIDs.
    holders: BTreeMap<Arc<str>, u32>,
    /// Shares, by UIDs of claims and their own IDs.
    shares: BTreeMap<(Arc<str>, Arc<str>), u32>,
    consumed: BTreeMap<Arc<str>, Consumed>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Consumed {
    sum: Quantity,
    shares: u32,
}

/// What another allocation of a claim changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenChange {
    pub freed: Vec<DeviceId>,
    pub taken: Vec<DeviceId>,
}

impl TakenChange {
    pub fn is_empty(&self) -> bool {
        self.freed.is_empty() && self.taken.is_empty()
    }
}

impl TakenDevices {
    /// The claim has this allocation now, and no other. `None`: it has none, or is gone.
    pub fn set(&mut self, claim_uid: &Arc<str>, allocation: Option<&Allocation>) -> TakenChange {
        let devices = allocation.map_or(&[][..], |allocation| &allocation.devices);
        let now: Vec<_> = devices.iter().filter(|it| !it.admin_access).map(Held::of).collect();
        let before = self.claims.remove(claim_uid).unwrap_or_default();
        let change =
            TakenChange { freed: missing_in(&now, &before), taken: missing_in(&before, &now) };
        if before != now {
            for held in &before {
                self.let_go(claim_uid, held);
            }
            for held in &now {
                self.take(claim_uid, held);
            }
        }
        if !now.is_empty() {
            self.claims.insert(claim_uid.clone(), now);
        }
        change
    }

    pub fn remove(&mut self, claim_uid: &Arc<str>) -> TakenChange {
        self.set(claim_uid, None)
    }

    /// Who has the device. `None`: it is free.
    pub fn device(&self, id: &DeviceId) -> Option<&DeviceUse> {
        self.devices.get(id)
    }

    /// Every device that is taken, in order.
    pub fn devices(&self) -> Vec<(&DeviceId, &DeviceUse)> {
        let mut all: Vec<_> = self.devices.iter().collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// The devices of a claim, in the order of its allocation.
    pub fn devices_of(&self, claim_uid: &str) -> impl Iterator<Item = &DeviceId> {
        self.claims.get(claim_uid).into_iter().flatten().map(|held| &held.id)
    }

    /// Devices that were given out wrongly: to two claims as a whole, or to one as a whole and to another in shares.
    pub fn contested(&self) -> impl Iterator<Item = (&DeviceId, &DeviceUse)> {
        self.contested.iter().filter_map(|id| self.devices.get_key_value(id))
    }

    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    fn take(&mut self, claim_uid: &Arc<str>, held: &Held) {
        let of_device = self.devices.entry(held.id.clone()).or_default();
        of_device.add(claim_uid, held.share.as_ref());
        if of_device.is_contested() {
            self.contested.insert(held.id.clone());
        }
    }

    fn let_go(&mut self, claim_uid: &Arc<str>, held: &Held) {
        let Some(of_device) = self.devices.get_mut(&held.id) else { return };
        of_device.subtract(claim_uid, held.share.as_ref());
        if !of_device.is_contested() {
            self.contested.remove(&held.id);
        }
        if of_device.is_free() {
            self.devices.remove(&held.id);
        }
    }
}

impl DeviceUse {
    /// The UIDs of the claims that hold it as a whole: one, if all is well.
    pub fn holders(&self) -> impl Iterator<Item = &Arc<str>> {
        self.holders.keys()
    }

    pub fn is_held(&self) -> bool {
        !self.holders.is_empty()
    }

    pub fn is_shared(&self) -> bool {
        !self.shares.is_empty()
    }

    /// The UIDs of claims and the IDs of their shares.
    pub fn shares(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.shares.keys().map(|(claim_uid, share_id)| (claim_uid, share_id))
    }

    /// How much of a capacity the shares consume together.
    pub fn consumed(&self, capacity: &str) -> Quantity {
        self.consumed.get(capacity).map_or(Quantity::default(), |consumed| consumed.sum)
    }

    /// The sums of all capacities of which shares consume something.
    pub fn each_consumed(&self) -> impl Iterator<Item = (&Arc<str>, Quantity)> {
        self.consumed.iter().map(|(name, consumed)| (name, consumed.sum))
    }

    fn is_contested(&self) -> bool {
        let holds: u32 = self.holders.values().sum();
        holds > 1 || holds == 1 && self.is_shared()
    }

    fn is_free(&self) -> bool {
        !self.is_held() && !self.is_shared()
    }

    fn add(&mut self, claim_uid: &Arc<str>, share: Option<&Share>) {
        let Some(share) = share else {
            *self.holders.entry(claim_uid.clone()).or_default() += 1;
            return;
        };
        *self.shares.entry((claim_uid.clone(), share.id.clone())).or_default() += 1;
        for (name, amount) in &share.consumed {
            let consumed = self.consumed.entry(name.clone()).or_default();
            consumed.sum = consumed.sum.saturating_add(*amount);
            consumed.shares += 1;
        }
    }

    fn subtract(&mut self, claim_uid: &Arc<str>, share: Option<&Share>) {
        let Some(share) = share else {
            return take_one(&mut self.holders, claim_uid);
        };
        take_one(&mut self.shares, &(claim_uid.clone(), share.id.clone()));
        for (name, amount) in &share.consumed {
            let Some(consumed) = self.consumed.get_mut(name) else { continue };
            consumed.sum = consumed.sum.saturating_sub(*amount);
            consumed.shares -= 1;
            if consumed.shares == 0 {
                self.consumed.remove(name);
            }
        }
    }
}

impl Held {
    fn of(device: &AllocatedDevice) -> Self {
        let amounts = device.consumed_capacity.iter();
        let share = device.share_id.as_ref().map(|id| Share {
            id: id.clone(),
            consumed: amounts.map(|(name, amount)| (name.clone(), bounded(*amount))).collect(),
        });
        Self { id: device.id.clone(), share }
    }
}

/// A sum that saturated would come out too small after its largest part left.
fn bounded(amount: Quantity) -> Quantity {
    amount.clamp(Quantity::default(), Quantity::from_whole(i64::MAX))
}

/// The devices of what is in the second list and not in the first.
fn missing_in(list: &[Held], of: &[Held]) -> Vec<DeviceId> {
    of.iter().filter(|held| !list.contains(held)).map(|held| held.id.clone()).collect()
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
