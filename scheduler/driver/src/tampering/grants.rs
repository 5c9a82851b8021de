//! What a Pod's annotations say about its grant, as far as it must hang together.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crds::annotations::{
    CORRIDOR_GBPS, CORRIDOR_REF, GRANT, LEADER, MEMORY_BUNDLE_GBS, MEMORY_BUNDLE_REF, RESULTS,
};
use model::Need;

use crate::translate::{needs, parse_grant};
use crate::wire::WirePod;

/// The result annotations of a Pod, by what they say and not how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Results {
    /// All but the leader's.
    pub granted: u64,
    pub leader: u32,
    /// What the Pod asks for, which is the tenant's to write.
    pub asked: u32,
}

const ASKED: [&str; 4] = [CORRIDOR_REF, CORRIDOR_GBPS, MEMORY_BUNDLE_REF, MEMORY_BUNDLE_GBS];

/// Every Pod has one of these.
fn short(digest: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a part of a digest is one, too")]
    let short = digest as u32;
    short
}

/// One look at a Pod.
#[derive(Debug)]
pub(super) struct Look<'a> {
    annotations: Option<&'a BTreeMap<String, String>>,
    /// A field manager owns a result annotation by `metadata.managedFields`. A Binding never does.
    pub is_edited: bool,
}

impl<'a> Look<'a> {
    pub fn at(pod: &'a WirePod) -> Self {
        Self {
            annotations: pod.metadata.annotations.as_ref(),
            is_edited: pod.metadata.managed_fields.is_some(),
        }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.annotations?.get(key).map(String::as_str)
    }

    pub fn results(&self) -> Results {
        let digest = |keys: &mut dyn Iterator<Item = &'static str>| {
            let mut hasher = DefaultHasher::new();
            for key in keys {
                self.get(key).hash(&mut hasher);
            }
            hasher.finish()
        };
        Results {
            granted: digest(&mut RESULTS.into_iter().filter(|key| *key != LEADER)),
            leader: short(digest(&mut [LEADER].into_iter())),
            asked: short(digest(&mut ASKED.into_iter())),
        }
    }

    pub fn has_results(&self) -> bool {
        RESULTS.into_iter().any(|key| self.get(key).is_some())
    }

    pub fn refers(&self) -> bool {
        [CORRIDOR_REF, MEMORY_BUNDLE_REF].into_iter().any(|key| self.get(key).is_some())
    }

    pub fn grant(&self) -> Option<&'a str> {
        self.get(GRANT)
    }

    pub fn leader(&self) -> Option<&'a str> {
        self.get(LEADER)
    }

    /// Whether the grant is one, and gives what the Pod asks for and nothing else.
    pub fn grant_agrees(&self) -> bool {
        if self.grant().is_none() {
            // A Pod that asks for nothing is granted nothing, and names at most the leader that bound it.
            return !self.refers();
        }
        let empty = BTreeMap::new();
        let asked = needs(self.annotations.unwrap_or(&empty));
        let (Some(grant), Ok(asked)) = (self.grant().and_then(parse_grant), asked) else {
            return false;
        };
        let granted = [grant.corridor, grant.bundle].into_iter().flatten();
        granted.map(|part| part.amount).eq(asked.iter().map(Need::reserves))
            && asked.len() == self.references()
    }

    fn references(&self) -> usize {
        [CORRIDOR_REF, MEMORY_BUNDLE_REF].into_iter().filter(|key| self.get(key).is_some()).count()
    }
}
