//! What is remembered of watched objects between two changes, besides what the engine knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use model::{Assignment, ObjectRef, ObjectUid};
use own_writes::OwnWrites;

use super::WireObjectCondition;
use super::selector_evaluations::SelectorEvaluations;
use crate::act::Condition;
use crate::backends::Renewals;
use crate::phases::Phases;
use crate::profile_names::ProfileNames;
use crate::shared::Shared;
use crate::tampering::{Guard, OURS};
use crate::time_to_ready::{ReadySample, TimeToReady};
use crate::tracker::Gone;
use crate::translate;
use crate::wire::WirePod;

/// What the driver itself keeps of watched objects between two events.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    pub profiles: ProfileNames,
    /// The engine's time of the input that is being handled.
    pub now: model::Instant,
    pub renewals: Renewals,
    pub time_to_ready: TimeToReady,
    /// Objects that have become Ready, or have not in time.
    pub became_ready: Vec<ReadySample>,
    pub phases: Phases,
    /// What the objects' conditions of ours say, and since when: a restarted scheduler goes on from
    /// there. They go with the object.
    pub use_conditions: BTreeMap<ObjectUid, Vec<Condition>>,
    /// UIDs of objects that could not be read, and for which that was logged.
    warned: BTreeSet<String>,
    /// Another replica leads, and writes them.
    pub follows: bool,
    pub guard: Guard,
    pub(super) shared: Shared,
    pub selectors: SelectorEvaluations,
    /// What the controllers of this process have really written.
    pub own_writes: Arc<OwnWrites>,
    /// Objects whose status has to be written again, because another writer has overwritten it.
    pub overwritten: Vec<ObjectRef>,
}

/// Beyond this many, a warning may be logged twice.
const WARNINGS_MAX: usize = 10_000;

impl WatchState {
    pub fn of(profiles: ProfileNames) -> Self {
        Self { profiles, ..Self::default() }
    }

    /// Whether it has not been logged yet that this object cannot be read.
    pub fn is_first_warning(&mut self, uid: Option<&str>) -> bool {
        if self.warned.len() >= WARNINGS_MAX {
            self.warned.clear();
        }
        self.warned.insert(uid.unwrap_or_default().to_owned())
    }

    pub(super) fn conditions(&mut self, uid: &ObjectUid, conditions: &[WireObjectCondition]) {
        let known = || conditions.iter().filter_map(condition).collect();
        if self.follows {
            self.use_conditions.insert(uid.clone(), known());
        }
        self.use_conditions.entry(uid.clone()).or_insert_with(known);
    }

    pub(super) fn forget(&mut self, gone: &Gone) {
        let uid = ObjectUid::from(gone.1.uid.clone());
        self.use_conditions.remove(&uid);
        self.guard.uses.gone(&uid);
        self.time_to_ready.forget(&uid);
        self.phases.forget(&uid);
        self.own_writes.forget(&gone.1.uid);
    }

    /// The Pod as the engine sees it: without a forged grant.
    pub fn pod(&mut self, wire: &WirePod) -> Option<model::Pod> {
        let counts = self.guard.pods.sees(wire, &self.profiles, Instant::now());
        let mut pod = self.shared.pod(translate::pod(wire, &self.profiles)?);
        if let Assignment::Bound { grant, .. } = &mut pod.assignment
            && !counts
        {
            *grant = None;
        }
        Some(pod)
    }
}

/// A condition that is ours to write.
fn condition(wire: &WireObjectCondition) -> Option<Condition> {
    let name = OURS.into_iter().find(|it| *it == wire.condition_type)?;
    Some(Condition { name, status: wire.status == "True", since: wire.last_transition_time? })
}
