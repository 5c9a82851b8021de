//! How many calls are under way.
//!
//! That for one Pod a condition write and a Binding never overlap is the engine's care: it decides
//! no Pod whose report is being written.

use std::collections::HashSet;

use model::PodUid;

/// Bindings in flight. Measured: enough to keep the API server busy; each holds a connection.
pub(crate) const BINDS_MAX: usize = 64;
/// Conditions and Events in flight when nothing is to be bound …
const WRITES_MAX: usize = 16;
/// … beside Bindings: an Event costs the API server as much as a Binding …
const WRITES_BESIDE_BINDS_MAX: usize = 2;
/// … and while it has more Bindings than it can answer at once: one for so many of them, so that what waits is bound
/// first, and people still see that something happens.
const BINDS_FOR_A_WRITE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    binding: HashSet<PodUid>,
    writes: usize,
    /// Bindings that have ended since the last write began.
    bound_since_write: usize,
    /// Calls that have ended, ever.
    ended: u64,
}

impl Slots {
    pub fn can_bind(&self) -> bool {
        self.binding.len() < BINDS_MAX
    }

    pub fn can_write(&self) -> bool {
        let max = if self.binding.is_empty() { WRITES_MAX } else { WRITES_BESIDE_BINDS_MAX };
        self.writes < max && (!self.has_many_binds() || self.bound_since_write >= BINDS_FOR_A_WRITE)
    }

    pub fn begin_bind(&mut self, pod: &PodUid) {
        let is_new = self.binding.insert(pod.clone());
        assert!(is_new, "a Pod is decided again only after the outcome of its Binding");
    }

    pub fn end_bind(&mut self, pod: &PodUid) {
        self.binding.remove(pod);
        self.bound_since_write = self.bound_since_write.saturating_add(1);
        self.ended += 1;
    }

    pub fn begin_write(&mut self) {
        self.writes += 1;
        self.bound_since_write = 0;
    }

    pub fn end_write(&mut self) {
        self.writes = self.writes.saturating_sub(1);
        self.ended += 1;
    }

    /// Whether so many calls wait for a reply that the API server has work for a while, whenever the next one is sent.
    pub fn are_saturated(&self) -> bool {
        self.has_many_binds() || self.writes > WRITES_MAX / 2
    }

    fn has_many_binds(&self) -> bool {
        self.binding.len() > BINDS_MAX / 2
    }

    /// Calls that have ended, ever.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    pub fn binds_in_flight(&self) -> usize {
        self.binding.len()
    }

    pub fn is_idle(&self) -> bool {
        self.binding.is_empty() && self.writes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_step_back_while_bindings_are_under_way() {
        let mut slots = Slots::default();
        for _ in 0..WRITES_BESIDE_BINDS_MAX {
            assert!(slots.can_write());
            slots.begin_write();
        }
        assert!(slots.can_write());
        slots.begin_bind(&"b".into());
        assert!(!slots.can_write());
        slots.end_bind(&"b".into());
        assert!(slots.can_write());
    }

    #[test]
    fn while_many_bindings_are_under_way_a_write_waits_for_some_of_them() {
        let mut slots = Slots::default();
        let uid = |number: usize| PodUid::from(format!("p{number}").as_str());
        for number in 0..BINDS_MAX {
            slots.begin_bind(&uid(number));
        }
        for number in 0..BINDS_FOR_A_WRITE {
            assert!(!slots.can_write());
            slots.end_bind(&uid(number));
        }
        assert!(slots.can_write());
        slots.begin_write();
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
            slots.begin_bind(&format!("p{number}").as_str().into());
        }
        assert!(!slots.can_bind());
        slots.end_bind(&"p7".into());
        assert!(slots.can_bind() && !slots.is_idle());
    }

    #[test]
    fn saturated_is_more_than_half_of_what_may_be_under_way() {
        let mut slots = Slots::default();
        for number in 0..=BINDS_MAX / 2 {
            assert!(!slots.are_saturated());
            slots.begin_bind(&format!("p{number}").as_str().into());
        }
        assert!(slots.are_saturated());
        slots.end_bind(&"p0".into());
        assert!(!slots.are_saturated());
        for _ in 0..=WRITES_MAX / 2 {
            assert!(!slots.are_saturated());
            slots.begin_write();
        }
        assert!(slots.are_saturated());
    }
}
