//! How much is remembered, and what is forgotten when it becomes too much. What is forgotten is found out again when it is
//! asked for: it costs time, and changes no decision.

use rules::Cluster;
use serde::{Deserialize, Serialize};

use super::Placing;
use super::kinds::Kind;
use super::outlook::Outlook;
use super::standing::Standing;

/// What is remembered of Nodes for kinds of Pods takes no more than this, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLimit {
    pub bytes: u64,
}

impl Default for CacheLimit {
    /// Enough for all that 10,000 kinds remember of 5,000 Nodes.
    fn default() -> Self {
        Self { bytes: 128 << 20 }
    }
}

/// What a kind takes before it remembers any Node: its key, what it asks for, its constraints.
const KIND_BYTES: usize = 2 << 10;
/// Kinds, sorts of Nodes and counters that are remembered: beyond this all are forgotten.
const REMEMBERED_MAX: usize = 1 << 17;
/// So much of the limit is left when something was forgotten, so that this does not come again soon.
const KEPT_OF_FOUR: usize = 3;
/// How long it takes to find out what one Node says, and what a preemption there would cost, as a multiple of how long it
/// takes to score it.
const OUTLOOK_COST: u128 = 4;
const LOSSES_COST: u128 = 64;

impl Placing {
    /// Forgets what has become too much.
    pub(super) fn tidy(&mut self, cluster: &Cluster) {
        let remembered = self.kinds.len() + self.statics.len() + self.ground.counters.len();
        let limit = usize::try_from(self.limit.bytes).unwrap_or(usize::MAX);
        // What kinds share cannot be forgotten one by one.
        let shared = self.statics.bytes() + self.ground.counters.bytes();
        if self.is_outdated
            || remembered > REMEMBERED_MAX
            || self.ground.is_overgrown()
            || shared > (limit / 2).max(self.shared_bytes_min())
        {
            *self = Self::of(cluster, self.seats().to_vec(), self.limit);
            return;
        }
        let bytes = self.standing_bytes + self.kinds.len() * KIND_BYTES;
        let bytes_max = (limit / 2).max(self.kind_bytes_min());
        if bytes > bytes_max {
            self.forget_down_to(bytes_max / 4 * KEPT_OF_FOUR);
        }
    }

    /// A few sorts of Nodes and counters are always kept: without them nothing is quick.
    fn shared_bytes_min(&self) -> usize {
        const ALWAYS_KEPT: usize = 64;
        ALWAYS_KEPT * self.ground.rows.len() * size_of::<u32>()
    }

    /// The same for kinds.
    fn kind_bytes_min(&self) -> usize {
        const ALWAYS_KEPT: usize = 16;
        ALWAYS_KEPT * (KIND_BYTES + self.ground.rows.len() * size_of::<u64>())
    }

    /// Forgets first what was not asked for longest, weighed by how much it takes, and by how little time to find out again.
    fn forget_down_to(&mut self, bytes_max: usize) {
        let now = self.questions;
        let nodes = self.ground.rows.len().max(1) as u128;
        let mut parts: Vec<(u128, usize, Part)> = Vec::new();
        for kind in self.kinds.values_mut() {
            let age = u128::from(now - kind.used_at) + 1;
            let mut add = |bytes: usize, cost: u128, part| {
                parts.push((age * bytes as u128 / (cost * nodes), bytes, part));
            };
            if let Some(standing) = &kind.standing {
                add(standing.bytes(), 1, Part::Standing(kind.used_at));
            }
            if let Some(outlook) = &kind.outlook {
                let cost = if outlook.is_costly() { LOSSES_COST } else { OUTLOOK_COST };
                add(outlook.bytes(), cost, Part::Outlook(kind.used_at));
            }
        }
        parts.sort_unstable_by_key(|(badness, ..)| *badness);
        let (mut kept, mut forgotten) = (self.kinds.len() * KIND_BYTES, Vec::new());
        for (_, bytes, part) in parts {
            if kept + bytes > bytes_max {
                forgotten.push(part);
            } else {
                kept += bytes;
            }
        }
        forgotten.sort_unstable();
        for kind in self.kinds.values_mut() {
            if forgotten.binary_search(&Part::Standing(kind.used_at)).is_ok() {
                kind.standing = None;
            }
            if forgotten.binary_search(&Part::Outlook(kind.used_at)).is_ok() {
                kind.outlook = None;
            }
        }
        if kept > bytes_max {
            let mut used: Vec<u64> = self.kinds.values_mut().map(|kind| kind.used_at).collect();
            used.sort_unstable();
            let since = used.get(used.len() / 4).copied().unwrap_or(0);
            self.kinds.retain(|kind| kind.is_some_and(|kind| kind.used_at > since));
        }
        self.standing_bytes = self.kinds.values_mut().map(remembered_by).sum();
    }

    /// Forgets the kinds that were not asked about since this was last called: most often their last Pod has gone.
    pub fn forget_unused(&mut self) {
        let since = std::mem::replace(&mut self.questions_seen, self.questions);
        self.kinds.retain(|kind| kind.is_some_and(|kind| kind.used_at > since));
        self.standing_bytes = self.kinds.values_mut().map(remembered_by).sum();
    }

    /// How many kinds are remembered, and what they remember takes.
    #[cfg(test)]
    pub fn remembered(&self) -> (usize, usize) {
        (self.kinds.len(), self.kinds.len() * KIND_BYTES + self.standing_bytes)
    }

    /// How many questions were asked.
    #[cfg(test)]
    pub fn questions(&self) -> u64 {
        self.questions
    }
}

/// What can be forgotten by itself, with the number of the question that was last asked about the kind: no two kinds have
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Standing(u64),
    Outlook(u64),
}

fn remembered_by(kind: &mut Kind) -> usize {
    let standing = kind.standing.as_ref().map_or(0, Standing::bytes);
    standing + kind.outlook.as_ref().map_or(0, Outlook::bytes)
}
