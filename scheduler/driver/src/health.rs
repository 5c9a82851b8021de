//! What `/readyz` says: which kinds have been listed. What `/livez` says: whether the process can go on.

use std::collections::BTreeMap;
use std::fmt::Write;

use engine::WatchedKind;
use parking_lot::RwLock;

use crate::kinds::NAMES;
use crate::pulse::{Pulse, Stuck};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindState {
    Syncing,
    Synced,
    /// Its CRD is not installed. Only Pods that refer to it wait for it.
    Absent,
}

/// Read by HTTP handlers, written by the driver.
#[derive(Debug)]
pub struct Health {
    /// With their names.
    kinds: RwLock<BTreeMap<WatchedKind, (&'static str, KindState)>>,
    /// Why the process cannot go on.
    failure: RwLock<Option<String>>,
    pub(crate) pulse: Pulse,
}

impl Default for Health {
    fn default() -> Self {
        let kinds = NAMES.map(|(kind, name)| (kind, (name, KindState::Syncing)));
        Self {
            kinds: RwLock::new(kinds.into()),
            failure: RwLock::default(),
            pulse: Pulse::default(),
        }
    }
}

impl Health {
    pub(crate) fn set(&self, kind: WatchedKind, state: KindState) {
        if let Some(known) = self.kinds.write().get_mut(&kind) {
            known.1 = state;
        }
    }

    /// Ready when a thread of the driver is stuck. To be awaited on none of them.
    pub async fn until_stuck(&self) -> Stuck {
        self.pulse.until_stuck().await
    }

    /// From now on the process only ends. What came first is the reason.
    pub fn fail(&self, why: String) {
        self.failure.write().get_or_insert(why);
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.read().clone()
    }

    pub fn is_ready(&self) -> bool {
        !self.kinds.read().values().any(|(_, state)| *state == KindState::Syncing)
    }

    /// One line per kind, as `/readyz` of Kubernetes components has it.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (name, state) in self.kinds.read().values() {
            let _ = match state {
                KindState::Synced => writeln!(text, "[+] {name} synced"),
                KindState::Syncing => writeln!(text, "[-] {name} not synced yet"),
                KindState::Absent => writeln!(text, "[absent] {name}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ObjectKind;

    #[test]
    fn an_absent_crd_is_named_and_does_not_stand_in_the_way() {
        let health = Health::default();
        assert!(!health.is_ready());
        let corridors = WatchedKind::Objects(ObjectKind::Corridor);
        for kind in WatchedKind::ALL.into_iter().filter(|kind| *kind != corridors) {
            health.set(kind, KindState::Synced);
        }
        assert!(!health.is_ready());
        health.set(corridors, KindState::Absent);
        assert!(health.is_ready());
        assert!(health.report().contains("[absent] corridors.corridoros.io\n"));
    }
}
