//! Calls that are under way, and which of them take a slot.
//!
//! A call takes one of a few slots, so that the API server is not asked for more than it can answer. One that is overdue
//! waits for something else (a webhook of one namespace, for instance), and gives its slot back: it keeps only its
//! namespace waiting.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use model::Instant;

/// Five times what an API server takes that is as busy as it can be.
pub(crate) const OVERDUE_AFTER: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Calls<K> {
    open: HashMap<K, Call>,
    /// In the order in which they began. Some have ended since.
    begun: VecDeque<(Instant, K)>,
    /// Calls that take a slot.
    in_slots: usize,
    /// Calls without a slot, by namespace.
    overdue: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Call {
    namespace: Arc<str>,
    takes_slot: bool,
}

impl<K> Default for Calls<K> {
    fn default() -> Self {
        Self { open: HashMap::new(), begun: VecDeque::new(), in_slots: 0, overdue: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash> Calls<K> {
    pub fn begin(&mut self, key: K, namespace: Arc<str>, now: Instant) {
        self.begun.push_back((now, key.clone()));
        let is_new = self.open.insert(key, Call { namespace, takes_slot: true }).is_none();
        assert!(is_new, "a call is made again only after it has ended");
        self.in_slots += 1;
    }

    pub fn end(&mut self, key: &K) {
        let Some(call) = self.open.remove(key) else { return };
        if call.takes_slot {
            self.in_slots -= 1;
        } else if let Some(overdue) = self.overdue.get_mut(&call.namespace) {
            *overdue -= 1;
            if *overdue == 0 {
                self.overdue.remove(&call.namespace);
            }
        }
        if self.open.is_empty() {
            self.begun.clear();
        }
    }

    /// The call goes on without a slot.
    pub fn give_slot_back(&mut self, key: &K) {
        let Some(call) = self.open.get_mut(key).filter(|call| call.takes_slot) else { return };
        call.takes_slot = false;
        *self.overdue.entry(call.namespace.clone()).or_default() += 1;
        self.in_slots -= 1;
    }

    /// Calls that are overdue now give their slots back.
    pub fn expire(&mut self, now: Instant) {
        while self.begun.front().is_some_and(|(began, _)| *began + OVERDUE_AFTER <= now) {
            if let Some((_, key)) = self.begun.pop_front() {
                self.give_slot_back(&key);
            }
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.begun.front().map(|(began, _)| *began + OVERDUE_AFTER)
    }

    pub fn in_slots(&self) -> usize {
        self.in_slots
    }

    pub fn open(&self) -> usize {
        self.open.len()
    }

    pub fn overdue_of(&self, namespace: &str) -> usize {
        self.overdue.get(namespace).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_start(Duration::from_millis(millis))
    }

    #[test]
    fn a_call_that_is_overdue_gives_its_slot_back_and_stays_open() {
        let mut calls = Calls::default();
        calls.begin("a", "slow".into(), at(0));
        calls.begin("b", "quick".into(), at(100));
        calls.end(&"b");
        assert_eq!((calls.in_slots(), calls.due()), (1, Some(at(500))));
        calls.expire(at(499));
        assert_eq!(calls.in_slots(), 1);
        calls.expire(at(700));
        assert_eq!((calls.in_slots(), calls.open()), (0, 1));
        assert_eq!((calls.overdue_of("slow"), calls.overdue_of("quick")), (1, 0));
        calls.end(&"a");
        assert_eq!((calls.open(), calls.overdue_of("slow"), calls.due()), (0, 0, None));
    }

    #[test]
    fn a_slot_is_given_back_once() {
        let mut calls = Calls::default();
        calls.begin(1, "a".into(), at(0));
        calls.begin(2, "a".into(), at(0));
        calls.give_slot_back(&1);
        calls.give_slot_back(&1);
        calls.expire(at(500));
        assert_eq!((calls.in_slots(), calls.overdue_of("a")), (0, 2));
        calls.end(&1);
        calls.end(&1);
        assert_eq!((calls.open(), calls.overdue_of("a")), (1, 1));
    }
}
