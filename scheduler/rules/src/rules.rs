//! What a profile of KubeSchedulerConfiguration can change about the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{LabelSelector, NodeAffinity, TopologySpreadConstraint, WhenUnsatisfiable};

use crate::plugins::Plugin;

/// The arguments of kube-scheduler's plugins. The default is its default profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    pub switched_off: SwitchedOff,
    /// What scores weigh, where it is not their default.
    pub weights: BTreeMap<Plugin, u32>,
    pub fit: ScoringStrategy,
    /// `NodeResourcesBalancedAllocationArgs.resources`; their weights have no effect.
    pub balanced_resources: Vec<Arc<str>>,
    /// Extended resources that the fit filter does not check.
    pub ignored_resources: BTreeSet<Arc<str>>,
    /// The same for every extended resource of a domain (`example.com`).
    pub ignored_resource_groups: BTreeSet<Arc<str>>,
    /// Holds for every Pod beside its own affinity.
    pub added_affinity: NodeAffinity,
    pub default_spread: DefaultSpread,
    /// What the required affinity of a placed Pod weighs in the score of a Pod that matches it.
    pub hard_pod_affinity_weight: i32,
    /// Whether a Pod without preferences of its own is spared those of the Pods already placed.
    pub ignore_preferred_terms_of_existing_pods: bool,
    /// How long a placed Pod waits for its claims to be bound: `bindTimeoutSeconds` of VolumeBinding.
    pub volume_bind_timeout: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            switched_off: SwitchedOff::default(),
            weights: BTreeMap::new(),
            fit: ScoringStrategy::LeastAllocated(cpu_and_memory()),
            balanced_resources: vec!["cpu".into(), "memory".into()],
            ignored_resources: BTreeSet::new(),
            ignored_resource_groups: BTreeSet::new(),
            added_affinity: NodeAffinity::default(),
            default_spread: DefaultSpread::System,
            hard_pod_affinity_weight: 1,
            ignore_preferred_terms_of_existing_pods: false,
            volume_bind_timeout: Duration::from_mins(10),
        }
    }
}

/// What a profile does without. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedOff {
    /// With what these find out before any Node is looked at.
    pub filters: BTreeSet<Plugin>,
    pub scores: BTreeSet<Plugin>,
    pub preemption: bool,
}

impl Rules {
    pub fn filters_by(&self, plugin: Plugin) -> bool {
        !self.switched_off.filters.contains(&plugin)
    }

    pub fn scores_by(&self, plugin: Plugin) -> bool {
        !self.switched_off.scores.contains(&plugin)
    }

    /// What the plugin's score weighs. A weight of 0 counts as 1, as kube-scheduler reads it.
    pub fn weight_of(&self, plugin: Plugin) -> i64 {
        let set = self.weights.get(&plugin).copied();
        i64::from(set.unwrap_or(plugin.registration().default_weight).max(1))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceWeight {
    pub resource: Arc<str>,
    pub weight: i64,
}

/// CPU and memory, weighing the same.
pub fn cpu_and_memory() -> Vec<ResourceWeight> {
    ["cpu", "memory"].map(|name| ResourceWeight { resource: name.into(), weight: 1 }).into()
}

/// `scoringStrategy` of NodeResourcesFit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScoringStrategy {
    LeastAllocated(Vec<ResourceWeight>),
    MostAllocated(Vec<ResourceWeight>),
    RequestedToCapacityRatio { resources: Vec<ResourceWeight>, shape: Vec<ShapePoint> },
}

impl ScoringStrategy {
    pub fn resources(&self) -> &[ResourceWeight] {
        match self {
            Self::LeastAllocated(resources)
            | Self::MostAllocated(resources)
            | Self::RequestedToCapacityRatio { resources, .. } => resources,
        }
    }
}

/// A point of the curve from utilization (0–100) to score (0–10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapePoint {
    pub utilization: i32,
    pub score: i32,
}

/// Constraints for Pods that have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultSpread {
    /// Over Nodes and zones, as a preference; a Node without a zone still counts as a Node.
    System,
    List(Vec<TopologySpreadConstraint>),
}

pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

impl DefaultSpread {
    pub(crate) fn constraints(&self) -> Vec<TopologySpreadConstraint> {
        let preference = |topology_key, max_skew| {
            TopologySpreadConstraint::new(
                topology_key,
                max_skew,
                WhenUnsatisfiable::ScheduleAnyway,
                LabelSelector::Nothing,
            )
        };
        match self {
            Self::System => vec![preference(HOSTNAME, 3), preference(ZONE, 5)],
            Self::List(constraints) => constraints.clone(),
        }
    }
}
