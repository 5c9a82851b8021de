//! Profiles: one process, several schedulers by name, each with its own rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{FailurePolicy, PodUid};
use rules::Rules;

use crate::engine::{Engine, EngineConfig};
use crate::record::{Record, Stage};

/// How Pods that name one scheduler are placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// For Pods that name none.
    pub failure_policy: FailurePolicy,
    /// The arguments and weights of kube-scheduler's plugins.
    pub rules: Rules,
}

/// By the `schedulerName` that Pods choose them with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiles {
    named: BTreeMap<Arc<str>, Profile>,
    /// For a name that is not among them: a Pod of a profile that was taken away meanwhile.
    fallback: Profile,
}

impl Profiles {
    /// The one before, if the name was taken.
    pub fn insert(&mut self, name: &str, profile: Profile) -> Option<Profile> {
        self.named.insert(name.into(), profile)
    }

    pub fn of(&self, name: &str) -> &Profile {
        self.named.get(name).unwrap_or(&self.fallback)
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.named.keys()
    }

    pub fn len(&self) -> usize {
        self.named.len()
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

impl Engine {
    pub(crate) fn rules_of(&self, profile: &str) -> &Rules {
        &self.config.profiles.of(profile).rules
    }

    /// Pods that the old settings rejected are tried with the new ones. Bound Pods stay: new settings evict none.
    pub(crate) fn reconfigured(&mut self, config: EngineConfig) {
        let seed = self.config.seed;
        self.config = EngineConfig { seed, ..config };
        self.placing.reconfigured(self.config.cache);
        let was_rejected = |record: &Record| {
            matches!(record.stage, Stage::Parked | Stage::InQueue(_) | Stage::Blocked(_))
        };
        let rejected =
            self.observed.pods.sorted().into_iter().filter(|(_, record)| was_rejected(record));
        let rejected: Vec<PodUid> = rejected.map(|(uid, _)| uid.clone()).collect();
        for pod in rejected {
            self.move_to(&pod, Stage::Active);
        }
    }
}
