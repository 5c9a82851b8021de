//! The limits on calls in flight.
//!
//! For one Pod a condition write and a Binding never overlap: the engine decides no Pod whose report is being written.

use std::sync::Arc;

use model::{Instant, PodUid};

use crate::calls::Calls;

/// Bindings in flight. Measured: enough to keep the API server busy; each holds a connection.
pub(crate) const BINDS_MAX: usize = 64;
/// Bindings without an outcome, those included that are overdue or unclear: the engine lets a namespace have few of
/// these, so only an outage for most of them comes near. Each holds a connection.
const OPEN_BINDS_MAX: usize = 512;
/// Conditions and Events in flight when nothing is to be bound …
const WRITES_MAX: usize = 16;
/// … beside Bindings: an Event costs the API server as much as a Binding …
const WRITES_BESIDE_BINDS_MAX: usize = 2;
/// … and while it has more Bindings than it can answer at once: one for so many of them, so that what waits is bound
/// first, and people still see that something happens.
const BINDS_FOR_A_WRITE: usize = 16;
/// Writes without an outcome, those included that are overdue.
const OPEN_WRITES_MAX: usize = 256;
/// A namespace with so many overdue writes gets no more until one of them has ended; so with evictions.
const OVERDUE_WRITES_OF_NAMESPACE_MAX: usize = 2;

/// One write that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WriteId(u64);

#[derive(Debug, Default)]
pub(crate) struct Slots {
    binds: Calls<PodUid>,
    writes: Calls<WriteId>,
    /// Writes, too, and counted by themselves: neither puts the other off.
    evictions: Calls<WriteId>,
    writes_begun: u64,
    /// Bindings that have ended since the last write began.
    bound_since_write: usize,
    /// Calls that have ended, ever.
    ended: u64,
}

impl Slots {
    pub fn can_bind(&self) -> bool {
        self.binds.in_slots() < BINDS_MAX && self.binds.open() < OPEN_BINDS_MAX
    }

    pub fn can_write(&self) -> bool {
        let has_binds = self.binds.in_slots() > 0;
        let max = if has_binds { WRITES_BESIDE_BINDS_MAX } else { WRITES_MAX };
        self.writes_in_slots() < max
            && self.writes_open() < OPEN_WRITES_MAX
            && (!self.has_many_binds() || self.bound_since_write >= BINDS_FOR_A_WRITE)
    }

    /// Whether writes to this namespace are overdue, so that more of them would only wait, too.
    pub fn are_writes_overdue(&self, namespace: &str) -> bool {
        self.writes.overdue_of(namespace) >= OVERDUE_WRITES_OF_NAMESPACE_MAX
    }

    /// The same of evictions: others wait for theirs.
    pub fn are_evictions_overdue(&self, namespace: &str) -> bool {
        self.evictions.overdue_of(namespace) >= OVERDUE_WRITES_OF_NAMESPACE_MAX
    }

    /// A call of a Pod's binding cycle begins: its Binding, or what must be written before.
    pub fn begin_bind(&mut self, pod: &PodUid, namespace: &Arc<str>, now: Instant) {
        self.binds.begin(pod.clone(), namespace.clone(), now);
    }

    /// The Binding has got no clear answer. It goes on without a slot.
    pub fn unclear_bind(&mut self, pod: &PodUid) {
        self.binds.give_slot_back(pod);
    }

    pub fn end_bind(&mut self, pod: &PodUid) {
        self.binds.end(pod);
        self.bound_since_write = self.bound_since_write.saturating_add(1);
        self.ended += 1;
    }

    pub fn begin_write(&mut self, namespace: &Arc<str>, now: Instant) -> WriteId {
        let id = self.next_write();
        self.writes.begin(id, namespace.clone(), now);
        id
    }

    /// Of a victim in this namespace.
    pub fn begin_eviction(&mut self, namespace: &Arc<str>, now: Instant) -> WriteId {
        let id = self.next_write();
        self.evictions.begin(id, namespace.clone(), now);
        id
    }

    fn next_write(&mut self) -> WriteId {
        self.writes_begun += 1;
        self.bound_since_write = 0;
        WriteId(self.writes_begun)
    }

    /// An eviction is one, too.
    pub fn end_write(&mut self, id: WriteId) {
        self.writes.end(&id);
        self.evictions.end(&id);
        self.ended += 1;
    }

    /// Calls that are overdue now give their slots back.
    pub fn expire(&mut self, now: Instant) {
        self.binds.expire(now);
        self.writes.expire(now);
        self.evictions.expire(now);
    }

    /// When [`Self::expire`] has something to do that a Binding or write may wait for.
    pub fn due(&self) -> Option<Instant> {
        let binds = self.binds.due().filter(|_| !self.can_bind());
        let writes = [self.writes.due(), self.evictions.due()].into_iter().flatten();
        binds.into_iter().chain(writes.filter(|_| !self.can_write())).min()
    }

    /// Whether so many calls wait for a reply that the API server has work for a while, whenever the next one is sent.
    pub fn are_saturated(&self) -> bool {
        self.has_many_binds() || self.writes_in_slots() > WRITES_MAX / 2
    }

    fn writes_in_slots(&self) -> usize {
        self.writes.in_slots() + self.evictions.in_slots()
    }

    fn writes_open(&self) -> usize {
        self.writes.open() + self.evictions.open()
    }

    fn has_many_binds(&self) -> bool {
        self.binds.in_slots() > BINDS_MAX / 2
    }

    /// Calls that have ended, ever.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Bindings without an outcome.
    pub fn binds_in_flight(&self) -> usize {
        self.binds.open()
    }

    pub fn is_idle(&self) -> bool {
        self.binds.open() == 0 && self.writes_open() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::OVERDUE_AFTER;

    const NOW: Instant = Instant::START;

    impl Slots {
        fn bind(&mut self, namespace: &str, number: usize) {
            self.begin_bind(&uid(number), &namespace.into(), NOW);
        }

        fn write(&mut self, namespace: &str) -> WriteId {
            self.begin_write(&namespace.into(), NOW)
        }
    }

    fn uid(number: usize) -> PodUid {
        PodUid::from(format!("p{number}").as_str())
    }

    #[test]
    fn writes_step_back_while_bindings_are_under_way() {
        let mut slots = Slots::default();
        for _ in 0..WRITES_BESIDE_BINDS_MAX {
            assert!(slots.can_write());
            slots.write("a");
        }
        assert!(slots.can_write());
        slots.bind("a", 0);
        assert!(!slots.can_write());
        slots.end_bind(&uid(0));
        assert!(slots.can_write());
    }

    #[test]
    fn while_many_bindings_are_under_way_a_write_waits_for_some_of_them() {
        let mut slots = Slots::default();
        for number in 0..BINDS_MAX {
            slots.bind("a", number);
        }
        for number in 0..BINDS_FOR_A_WRITE {
            assert!(!slots.can_write());
            slots.end_bind(&uid(number));
        }
        assert!(slots.can_write());
        slots.write("a");
        assert!(!slots.can_write());
        for number in BINDS_FOR_A_WRITE..=BINDS_MAX / 2 {
            slots.end_bind(&uid(number));
        }
        assert!(slots.can_write(), "the others leave enough to the API server");
    }

    #[test]
    fn as_many_bindings_as_there_are_slots() {
        let mut slots = Slots::default();
        for number in 0..BINDS_MAX {
            assert!(slots.can_bind());
            slots.bind("a", number);
        }
        assert!(!slots.can_bind());
        slots.end_bind(&uid(7));
        assert!(slots.can_bind() && !slots.is_idle());
    }

    #[test]
    fn what_is_unclear_or_overdue_takes_no_slot_but_is_still_under_way() {
        let mut slots = Slots::default();
        for number in 0..BINDS_MAX {
            slots.bind("slow", number);
        }
        slots.write("slow");
        slots.unclear_bind(&uid(3));
        assert!(slots.can_bind() && !slots.can_write());
        slots.bind("slow", BINDS_MAX);
        assert_eq!(slots.due(), Some(NOW + OVERDUE_AFTER));
        slots.expire(NOW + OVERDUE_AFTER);
        assert!(slots.can_bind() && slots.can_write() && !slots.are_saturated());
        assert_eq!(slots.binds_in_flight(), BINDS_MAX + 1);
        for number in 0..=BINDS_MAX {
            slots.end_bind(&uid(number));
        }
        assert!(!slots.is_idle(), "the write is");
    }

    #[test]
    fn no_more_than_can_be_connected() {
        let mut slots = Slots::default();
        for number in 0..OPEN_BINDS_MAX {
            assert!(slots.can_bind());
            slots.bind("a", number);
            slots.unclear_bind(&uid(number));
        }
        assert!(!slots.can_bind());
    }

    #[test]
    fn a_namespace_whose_writes_are_overdue_gets_no_more_of_them() {
        let mut slots = Slots::default();
        let writes = [slots.write("slow"), slots.write("slow"), slots.write("quick")];
        assert!(!slots.are_writes_overdue("slow"));
        slots.expire(NOW + OVERDUE_AFTER);
        assert!(slots.are_writes_overdue("slow") && !slots.are_writes_overdue("quick"));
        slots.end_write(writes[0]);
        assert!(!slots.are_writes_overdue("slow"));
    }

    #[test]
    fn evictions_take_slots_as_writes_do_and_are_put_off_for_their_own_sake_alone() {
        let mut slots = Slots::default();
        let evictions = [(); 2].map(|()| slots.begin_eviction(&"slow".into(), NOW));
        slots.bind("a", 0);
        assert!(!slots.can_write(), "beside Bindings there are two slots");
        assert_eq!(slots.due(), Some(NOW + OVERDUE_AFTER));
        slots.expire(NOW + OVERDUE_AFTER);
        assert!(slots.can_write());
        assert!(slots.are_evictions_overdue("slow") && !slots.are_evictions_overdue("quick"));
        assert!(!slots.are_writes_overdue("slow"), "conditions and Events may be quick");
        slots.end_bind(&uid(0));
        slots.end_write(evictions[0]);
        assert!(!slots.are_evictions_overdue("slow") && !slots.is_idle());
        slots.end_write(evictions[1]);
        assert!(slots.is_idle());
    }

    #[test]
    fn saturated_is_more_than_half_of_what_may_be_under_way() {
        let mut slots = Slots::default();
        for number in 0..=BINDS_MAX / 2 {
            assert!(!slots.are_saturated());
            slots.bind("a", number);
        }
        assert!(slots.are_saturated());
        slots.end_bind(&uid(0));
        assert!(!slots.are_saturated());
        for _ in 0..=WRITES_MAX / 2 {
            assert!(!slots.are_saturated());
            slots.write("a");
        }
        assert!(slots.are_saturated());
    }
}
