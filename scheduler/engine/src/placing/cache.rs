//! The memory limit of the caches, and what is evicted beyond it. What is evicted is computed again when needed: that
//! costs time and changes no decision.

use rules::Cluster;
use serde::{Deserialize, Serialize};

use super::Placing;
use super::pod_classes::PodClass;
use super::score_cache::ScoreCache;
use super::unschedulable_cache::UnschedulableCache;

/// The approximate memory limit of what is kept of Nodes for classes of Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLimit {
    pub bytes: u64,
}

impl Default for CacheLimit {
    /// Enough for 10,000 classes of Pods and 5,000 Nodes.
    fn default() -> Self {
        Self { bytes: 128 << 20 }
    }
}

/// What a class takes before it remembers any Node: its key, what it asks for, its constraints.
const CLASS_BYTES: usize = 2 << 10;
/// Pod classes, node filter classes and counters that are remembered: beyond this all are forgotten.
const REMEMBERED_MAX: usize = 1 << 17;
/// So much of the limit is left when something was forgotten, so that this does not come again soon.
const KEPT_OF_FOUR: usize = 3;
/// How long it takes to find out what one Node says, and what a preemption there would cost, as a multiple of how long it
/// takes to score it.
const DIAGNOSIS_COST: u128 = 4;
const VICTIM_COSTS_COST: u128 = 64;

impl Placing {
    /// Evicts what exceeds the limits.
    pub(super) fn tidy(&mut self, cluster: &Cluster) {
        let remembered = self.classes.len() + self.statics.len() + self.index.counters.len();
        let limit = usize::try_from(self.limit.bytes).unwrap_or(usize::MAX);
        // What classes share cannot be evicted one by one.
        let shared = self.statics.bytes() + self.index.counters.bytes();
        if self.is_outdated
            || remembered > REMEMBERED_MAX
            || self.index.is_overgrown()
            || shared > (limit / 2).max(self.shared_bytes_min())
        {
            *self = Self::of(cluster, self.seats().to_vec(), self.limit);
            return;
        }
        let bytes = self.cache_bytes + self.classes.len() * CLASS_BYTES;
        let bytes_max = (limit / 2).max(self.class_bytes_min());
        if bytes > bytes_max {
            self.forget_down_to(bytes_max / 4 * KEPT_OF_FOUR);
        }
    }

    /// A few node filter classes and counters are always kept: without them nothing is quick.
    fn shared_bytes_min(&self) -> usize {
        const ALWAYS_KEPT: usize = 64;
        ALWAYS_KEPT * self.index.rows.len() * size_of::<u32>()
    }

    /// The same for classes.
    fn class_bytes_min(&self) -> usize {
        const ALWAYS_KEPT: usize = 16;
        ALWAYS_KEPT * (CLASS_BYTES + self.index.rows.len() * size_of::<u64>())
    }

    /// Forgets first what was not asked for longest, weighed by how much it takes, and by how little time to find out again.
    fn forget_down_to(&mut self, bytes_max: usize) {
        let now = self.questions;
        let nodes = self.index.rows.len().max(1) as u128;
        let mut parts: Vec<(u128, usize, Part)> = Vec::new();
        for class in self.classes.values_mut() {
            let age = u128::from(now - class.used_at) + 1;
            let mut add = |bytes: usize, cost: u128, part| {
                parts.push((age * bytes as u128 / (cost * nodes), bytes, part));
            };
            if let Some(score_cache) = &class.score_cache {
                add(score_cache.bytes(), 1, Part::Scores(class.used_at));
            }
            if let Some(unschedulable) = &class.unschedulable {
                let cost =
                    if unschedulable.is_costly() { VICTIM_COSTS_COST } else { DIAGNOSIS_COST };
                add(unschedulable.bytes(), cost, Part::Unschedulable(class.used_at));
            }
        }
        parts.sort_unstable_by_key(|(badness, ..)| *badness);
        let (mut kept, mut forgotten) = (self.classes.len() * CLASS_BYTES, Vec::new());
        for (_, bytes, part) in parts {
            if kept + bytes > bytes_max {
                forgotten.push(part);
            } else {
                kept += bytes;
            }
        }
        forgotten.sort_unstable();
        for class in self.classes.values_mut() {
            if forgotten.binary_search(&Part::Scores(class.used_at)).is_ok() {
                class.score_cache = None;
            }
            if forgotten.binary_search(&Part::Unschedulable(class.used_at)).is_ok() {
                class.unschedulable = None;
            }
        }
        if kept > bytes_max {
            let mut used: Vec<u64> = self.classes.values_mut().map(|class| class.used_at).collect();
            used.sort_unstable();
            let since = used.get(used.len() / 4).copied().unwrap_or(0);
            self.classes.retain(|class| class.is_some_and(|class| class.used_at > since));
        }
        self.cache_bytes = self.classes.values_mut().map(remembered_by).sum();
    }

    /// Forgets the classes that were not asked about since this was last called: most often their last Pod has gone.
    pub fn forget_unused(&mut self) {
        let since = std::mem::replace(&mut self.questions_seen, self.questions);
        self.classes.retain(|class| class.is_some_and(|class| class.used_at > since));
        self.cache_bytes = self.classes.values_mut().map(remembered_by).sum();
    }

    /// How many classes are remembered, and what they remember takes.
    #[cfg(test)]
    pub fn remembered(&self) -> (usize, usize) {
        (self.classes.len(), self.classes.len() * CLASS_BYTES + self.cache_bytes)
    }

    /// How many questions were asked.
    #[cfg(test)]
    pub fn questions(&self) -> u64 {
        self.questions
    }
}

/// What can be forgotten by itself, with the number of the question that was last asked about the class: no two classes have
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Scores(u64),
    Unschedulable(u64),
}

fn remembered_by(class: &mut PodClass) -> usize {
    let score_cache = class.score_cache.as_ref().map_or(0, ScoreCache::bytes);
    score_cache + class.unschedulable.as_ref().map_or(0, UnschedulableCache::bytes)
}
