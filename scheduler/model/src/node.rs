use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{NodeName, Resources, Taint};

pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// What scheduling needs to know of a Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: NodeName,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`: the Node is cordoned.
    pub unschedulable: bool,
    pub allocatable: Resources,
    /// `status.allocatable.pods`.
    pub pods_max: i64,
}

impl Node {
    /// Whether every pair of the selector is among the Node's labels.
    pub fn matches(&self, selector: &Labels) -> bool {
        selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }
}
