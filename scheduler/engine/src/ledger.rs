//! Reservations of Corridors and MemoryBundles, with undo. What Pods take of Nodes is counted from the Pods themselves.
//!
//! The ledger is derived state. It is rebuilt from bound Pods at start; nothing in it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{Amount, Granted, NodeName, ObjectKey, ObjectUid, Pod, PodUid, PodVolumeBindings};

use rules::ClaimToReserve;

use crate::queue::Order;

/// What one Pod takes where it is placed: all of it, or nothing. It lasts while the Pod is bound or being bound, and
/// while the Pod is nominated and its victims terminate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reservation {
    pub node: NodeName,
    pub granted: Box<[Granted]>,
    /// Claims that are bound for the sake of this Pod, with their volumes.
    #[serde(default)]
    pub volumes: Option<Box<PodVolumeBindings>>,
    /// Its ResourceClaims, which are reserved for it, with what it gets of those that have no devices yet.
    #[serde(default)]
    pub claims: Box<[ClaimToReserve]>,
}

/// The Pod that holds a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub uid: PodUid,
    pub key: ObjectKey,
}

impl Holder {
    fn of(pod: &Pod) -> Self {
        Self { uid: pod.uid.clone(), key: pod.key.clone() }
    }
}

/// What the Pods that use one object hold of it together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectUse {
    pub reserved: Amount,
    pub users: BTreeMap<PodUid, ObjectKey>,
    by_namespace: BTreeMap<Arc<str>, NamespaceUse>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceUse {
    pub reserved: Amount,
    pub pods: usize,
}

impl ObjectUse {
    pub fn of_namespace(&self, namespace: &str) -> NamespaceUse {
        self.by_namespace.get(namespace).copied().unwrap_or_default()
    }

    fn add(&mut self, holder: &Holder, amount: Amount) {
        self.reserved = self.reserved.saturating_add(amount);
        self.users.insert(holder.uid.clone(), holder.key.clone());
        let share = self.by_namespace.entry(holder.key.namespace.clone()).or_default();
        share.reserved = share.reserved.saturating_add(amount);
        share.pods += 1;
    }

    fn sub(&mut self, holder: &Holder, amount: Amount) {
        assert!(self.reserved >= amount, "only what was reserved is put back");
        self.reserved = self.reserved.saturating_sub(amount);
        self.users.remove(&holder.uid);
        if let Some(share) = self.by_namespace.get_mut(&holder.key.namespace) {
            share.reserved = share.reserved.saturating_sub(amount);
            share.pods -= 1;
            if share.pods == 0 {
                self.by_namespace.remove(&holder.key.namespace);
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    objects: BTreeMap<ObjectUid, ObjectUse>,
    /// What is reserved for nominated Pods, the most important first. It counts against Pods of the same and of lower
    /// priority, as the room on the Node does.
    nominated: BTreeMap<ObjectUid, BTreeMap<Order, Nominee>>,
    /// What was done since the last commit, newest last.
    undo: Vec<Undo>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nominee {
    pub holder: Holder,
    pub amount: Amount,
}

#[derive(Debug)]
enum Undo {
    Taken(Holder, Granted),
    Nominated(Order, ObjectUid),
    Withdrawn(Order, ObjectUid, Nominee),
}

/// A point to roll back to. Only valid until the next commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize);

impl Ledger {
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Takes everything under the current mark; `commit` keeps it.
    pub fn take(&mut self, pod: &Pod, reservation: &Reservation) {
        for granted in &reservation.granted {
            let holder = Holder::of(pod);
            self.objects.entry(granted.uid.clone()).or_default().add(&holder, granted.amount);
            self.undo.push(Undo::Taken(holder, granted.clone()));
        }
    }

    /// Reserves everything for a nominated Pod, under the current mark.
    pub fn nominate(&mut self, order: Order, pod: &Pod, reservation: &Reservation) {
        for Granted { uid, amount } in &reservation.granted {
            let nominee = Nominee { holder: Holder::of(pod), amount: *amount };
            self.nominated.entry(uid.clone()).or_default().insert(order, nominee);
            self.undo.push(Undo::Nominated(order, uid.clone()));
        }
    }

    /// Releases what is reserved for the nominated Pod, under the current mark.
    pub fn withdraw(&mut self, order: Order, reservation: &Reservation) {
        for Granted { uid, .. } in &reservation.granted {
            if let Some(nominee) = self.remove_nominee(order, uid) {
                self.undo.push(Undo::Withdrawn(order, uid.clone(), nominee));
            }
        }
    }

    /// Undoes everything since the mark.
    pub fn rollback(&mut self, mark: Mark) {
        assert!(mark.0 <= self.undo.len(), "a mark outlives no commit");
        for undo in self.undo.split_off(mark.0).into_iter().rev() {
            match undo {
                Undo::Taken(holder, granted) => self.put_back(&holder, &granted),
                Undo::Nominated(order, uid) => drop(self.remove_nominee(order, &uid)),
                Undo::Withdrawn(order, uid, nominee) => {
                    self.nominated.entry(uid).or_default().insert(order, nominee);
                }
            }
        }
    }

    /// What was taken stays taken, until its Pod is released.
    pub fn commit(&mut self) {
        self.undo.clear();
    }

    pub fn release(&mut self, pod: &Pod, reservation: &Reservation) {
        for granted in &reservation.granted {
            self.put_back(&Holder::of(pod), granted);
        }
    }

    pub fn object(&self, uid: &ObjectUid) -> Option<&ObjectUse> {
        self.objects.get(uid)
    }

    pub fn reserved(&self, uid: &ObjectUid) -> Amount {
        self.objects.get(uid).map(|used| used.reserved).unwrap_or_default()
    }

    /// Nominated Pods that hold some of the object, the most important first.
    pub fn nominees(&self, uid: &ObjectUid) -> impl Iterator<Item = (Order, &Nominee)> {
        self.nominated.get(uid).into_iter().flatten().map(|(order, nominee)| (*order, nominee))
    }

    /// Those that a Pod of this order must not push aside: none of lower priority, and not itself.
    pub fn nominees_before(&self, uid: &ObjectUid, order: Order) -> impl Iterator<Item = &Nominee> {
        let before = move |other: &Order| other.priority() >= order.priority() && *other != order;
        self.nominees(uid).filter(move |(other, _)| before(other)).map(|(_, nominee)| nominee)
    }

    /// What counts as taken for a Pod of this order.
    pub fn taken_for(&self, uid: &ObjectUid, order: Order) -> Amount {
        let nominated = self.nominees_before(uid, order).map(|nominee| nominee.amount);
        nominated.fold(self.reserved(uid), Amount::saturating_add)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.nominated.is_empty() && self.undo.is_empty()
    }

    fn remove_nominee(&mut self, order: Order, uid: &ObjectUid) -> Option<Nominee> {
        let nominees = self.nominated.get_mut(uid)?;
        let nominee = nominees.remove(&order);
        if nominees.is_empty() {
            self.nominated.remove(uid);
        }
        nominee
    }

    fn put_back(&mut self, holder: &Holder, granted: &Granted) {
        let Some(used) = self.objects.get_mut(&granted.uid) else {
            unreachable!("only what was taken of {} is put back", granted.uid)
        };
        used.sub(holder, granted.amount);
        if used.users.is_empty() {
            assert_eq!(*used, ObjectUse::default(), "an unused object holds nothing");
            self.objects.remove(&granted.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::PodBuilder;

    fn pod(name: &str) -> Pod {
        PodBuilder::new(name).build()
    }

    fn reservation(granted_milli: &[u64]) -> Reservation {
        let granted = |milli: &u64| Granted { uid: "c".into(), amount: Amount::from_milli(*milli) };
        Reservation {
            node: "n1".into(),
            granted: granted_milli.iter().map(granted).collect(),
            volumes: None,
            claims: Box::default(),
        }
    }

    #[test]
    fn rollback_puts_back_what_was_taken_since_the_mark_and_no_more() {
        let mut ledger = Ledger::default();
        ledger.take(&pod("first"), &reservation(&[2]));
        let mark = ledger.mark();
        ledger.take(&pod("second"), &reservation(&[40]));
        assert_eq!(ledger.reserved(&"c".into()), Amount::from_milli(42));
        ledger.rollback(mark);
        assert_eq!(ledger.reserved(&"c".into()), Amount::from_milli(2));
    }

    #[test]
    fn what_is_held_for_a_nominated_pod_counts_for_no_more_important_one() {
        let order = |priority, seen| Order::new(priority, 0, seen);
        let mut ledger = Ledger::default();
        ledger.take(&pod("bound"), &reservation(&[2]));
        ledger.nominate(order(5, 1), &pod("nominated"), &reservation(&[40]));
        ledger.commit();
        let taken = |ledger: &Ledger, order| ledger.taken_for(&"c".into(), order).milli();
        assert_eq!(taken(&ledger, order(5, 2)), 42);
        assert_eq!(taken(&ledger, order(5, 1)), 2, "its own");
        assert_eq!(taken(&ledger, order(6, 3)), 2, "who is more important may take it");
        let mark = ledger.mark();
        ledger.withdraw(order(5, 1), &reservation(&[40]));
        ledger.nominate(order(4, 4), &pod("other"), &reservation(&[7]));
        ledger.take(&pod("nominated"), &reservation(&[40]));
        assert_eq!(taken(&ledger, order(0, 9)), 49);
        ledger.rollback(mark);
        assert_eq!(taken(&ledger, order(0, 9)), 42);
        ledger.withdraw(order(5, 1), &reservation(&[40]));
        ledger.release(&pod("bound"), &reservation(&[2]));
        ledger.commit();
        assert!(ledger.is_empty());
    }

    #[test]
    fn released_holdings_leave_nothing() {
        let mut ledger = Ledger::default();
        let holdings =
            [("a", reservation(&[0])), ("b", reservation(&[0])), ("c", reservation(&[9]))];
        for (name, reservation) in &holdings {
            ledger.take(&pod(name), reservation);
        }
        let used = ledger.object(&"c".into()).unwrap();
        assert_eq!((used.users.len(), used.of_namespace("team-a").pods), (3, 3));
        for (name, reservation) in &holdings {
            ledger.release(&pod(name), reservation);
        }
        assert!(ledger.objects.is_empty());
    }
}
