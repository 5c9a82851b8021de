//! The profiles of this scheduler: which Pods are ours to place.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::EngineConfig;

/// The names of the profiles: a Pod chooses one by its `schedulerName`. They are fixed while the process
/// runs; a new one takes a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProfileNames {
    names: BTreeSet<Arc<str>>,
}

impl ProfileNames {
    /// Without any profile: our own name.
    pub fn of(config: &EngineConfig) -> Self {
        if config.profiles.is_empty() {
            return Self::default();
        }
        Self { names: config.profiles.names().cloned().collect() }
    }

    pub fn one(name: &str) -> Self {
        Self { names: [name.into()].into() }
    }

    pub fn none() -> Self {
        Self { names: BTreeSet::new() }
    }

    pub fn has(&self, scheduler_name: &str) -> bool {
        self.names.contains(scheduler_name)
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.iter()
    }

    /// The profile of a Pod that names none of ours: our own name, if it is served.
    pub fn first(&self) -> &str {
        let first = || self.names.first().map_or(crds::SCHEDULER_NAME, |name| &**name);
        self.names.get(crds::SCHEDULER_NAME).map_or_else(first, |name| &**name)
    }
}

/// Our own name alone.
impl Default for ProfileNames {
    fn default() -> Self {
        Self { names: [crds::SCHEDULER_NAME.into()].into() }
    }
}
