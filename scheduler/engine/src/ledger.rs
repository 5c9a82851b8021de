//! Who holds what of Corridors and MemoryBundles, with undo. What Pods take of Nodes is counted from
//! the Pods themselves.
//!
//! The ledger is derived state. It is rebuilt from bound Pods at start; nothing in it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{Amount, Granted, NodeName, ObjectKey, ObjectUid, Pod, PodUid};

/// What one Pod holds while it is bound or being bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holding {
    pub node: NodeName,
    pub granted: Box<[Granted]>,
}

/// Who holds it.
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
    /// What was taken since the last commit, newest last.
    undo: Vec<(Holder, Granted)>,
}

/// A point to roll back to. Only valid until the next commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize);

impl Ledger {
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Takes everything under the current mark; `commit` keeps it.
    pub fn take(&mut self, pod: &Pod, holding: &Holding) {
        for granted in &holding.granted {
            let holder = Holder::of(pod);
            self.objects.entry(granted.uid.clone()).or_default().add(&holder, granted.amount);
            self.undo.push((holder, granted.clone()));
        }
    }

    /// Puts back everything taken since the mark.
    pub fn rollback(&mut self, mark: Mark) {
        assert!(mark.0 <= self.undo.len(), "a mark outlives no commit");
        for (holder, granted) in self.undo.split_off(mark.0).iter().rev() {
            self.put_back(holder, granted);
        }
    }

    /// What was taken stays taken, until its Pod is released.
    pub fn commit(&mut self) {
        self.undo.clear();
    }

    pub fn release(&mut self, pod: &Pod, holding: &Holding) {
        for granted in &holding.granted {
            self.put_back(&Holder::of(pod), granted);
        }
    }

    pub fn object(&self, uid: &ObjectUid) -> Option<&ObjectUse> {
        self.objects.get(uid)
    }

    pub fn reserved(&self, uid: &ObjectUid) -> Amount {
        self.objects.get(uid).map(|used| used.reserved).unwrap_or_default()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.undo.is_empty()
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

    fn holding(granted_milli: &[u64]) -> Holding {
        let granted = |milli: &u64| Granted { uid: "c".into(), amount: Amount::from_milli(*milli) };
        Holding { node: "n1".into(), granted: granted_milli.iter().map(granted).collect() }
    }

    #[test]
    fn rollback_puts_back_what_was_taken_since_the_mark_and_no_more() {
        let mut ledger = Ledger::default();
        ledger.take(&pod("first"), &holding(&[2]));
        let mark = ledger.mark();
        ledger.take(&pod("second"), &holding(&[40]));
        assert_eq!(ledger.reserved(&"c".into()), Amount::from_milli(42));
        ledger.rollback(mark);
        assert_eq!(ledger.reserved(&"c".into()), Amount::from_milli(2));
    }

    #[test]
    fn released_holdings_leave_nothing() {
        let mut ledger = Ledger::default();
        let holdings = [("a", holding(&[0])), ("b", holding(&[0])), ("c", holding(&[9]))];
        for (name, holding) in &holdings {
            ledger.take(&pod(name), holding);
        }
        let used = ledger.object(&"c".into()).unwrap();
        assert_eq!((used.users.len(), used.of_namespace("team-a").pods), (3, 3));
        for (name, holding) in &holdings {
            ledger.release(&pod(name), holding);
        }
        assert!(ledger.objects.is_empty());
    }
}
