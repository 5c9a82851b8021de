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
/// … and beside Bindings: an Event costs the API server as much as a Binding.
const WRITES_BESIDE_BINDS_MAX: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    binding: HashSet<PodUid>,
    writes: usize,
}

impl Slots {
    pub fn can_bind(&self) -> bool {
        self.binding.len() < BINDS_MAX
    }

    pub fn can_write(&self) -> bool {
        let max = if self.binding.is_empty() { WRITES_MAX } else { WRITES_BESIDE_BINDS_MAX };
        self.writes < max
    }

    pub fn begin_bind(&mut self, pod: &PodUid) {
        let is_new = self.binding.insert(pod.clone());
        assert!(is_new, "a Pod is decided again only after the outcome of its Binding");
    }

    pub fn end_bind(&mut self, pod: &PodUid) {
        self.binding.remove(pod);
    }

    pub fn begin_write(&mut self) {
        self.writes += 1;
    }

    pub fn end_write(&mut self) {
        self.writes = self.writes.saturating_sub(1);
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
}
