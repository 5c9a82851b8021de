//! What Pods ask of a Node and what a Node has.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::scheduling_spec::is_default;

pub type MilliCpu = i64;
pub type MemoryBytes = i64;

/// An amount of each resource. Resources other than the three that every Node
/// has (hugepages, devices) are kept by name and only when not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    pub cpu_milli: MilliCpu,
    pub memory_bytes: MemoryBytes,
    #[serde(skip_serializing_if = "is_default")]
    pub ephemeral_storage_bytes: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub scalar: BTreeMap<Arc<str>, i64>,
}

impl Resources {
    pub fn add(&mut self, other: &Self) {
        self.zip(other, i64::saturating_add);
    }

    pub fn sub(&mut self, other: &Self) {
        self.zip(other, i64::saturating_sub);
        self.scalar.retain(|_, amount| *amount != 0);
    }

    /// The larger of the two, resource by resource.
    pub fn raise_to(&mut self, other: &Self) {
        self.zip(other, i64::max);
    }

    /// No resource more than `most`.
    pub fn limit_to(&mut self, most: i64) {
        let Self { cpu_milli, memory_bytes, ephemeral_storage_bytes, scalar } = self;
        let amounts = [cpu_milli, memory_bytes, ephemeral_storage_bytes];
        for amount in amounts.into_iter().chain(scalar.values_mut()) {
            *amount = (*amount).min(most);
        }
    }

    pub fn scalar(&self, name: &str) -> i64 {
        self.scalar.get(name).copied().unwrap_or(0)
    }

    /// By the name of the resource.
    pub fn amount(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu_milli,
            "memory" => self.memory_bytes,
            "ephemeral-storage" => self.ephemeral_storage_bytes,
            scalar => self.scalar(scalar),
        }
    }

    fn zip(&mut self, other: &Self, combine: impl Fn(i64, i64) -> i64) {
        let Self { cpu_milli, memory_bytes, ephemeral_storage_bytes, scalar } = other;
        self.cpu_milli = combine(self.cpu_milli, *cpu_milli);
        self.memory_bytes = combine(self.memory_bytes, *memory_bytes);
        self.ephemeral_storage_bytes =
            combine(self.ephemeral_storage_bytes, *ephemeral_storage_bytes);
        for (name, amount) in scalar {
            let mine = self.scalar.entry(name.clone()).or_insert(0);
            *mine = combine(*mine, *amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(n: i64) -> Resources {
        Resources { cpu_milli: n, scalar: [("gpu".into(), n)].into(), ..Resources::default() }
    }

    #[test]
    fn what_is_added_can_be_taken_away() {
        let mut sum = gpus(1);
        sum.add(&gpus(2));
        assert_eq!(sum.scalar("gpu"), 3);
        sum.sub(&gpus(2));
        sum.sub(&gpus(1));
        assert_eq!(sum, Resources::default());
    }

    #[test]
    fn sums_stop_at_the_largest_number_instead_of_wrapping() {
        let mut sum = gpus(i64::MAX);
        sum.add(&gpus(5));
        assert_eq!(sum.cpu_milli, i64::MAX);
    }
}
