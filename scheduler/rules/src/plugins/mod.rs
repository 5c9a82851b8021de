//! The plugins: a folder for each, named as in kube-scheduler, with a file for each extension point, and one entry in
//! the registry below. Names, switches, weights and the configuration's table all derive from that entry.

mod corridor;
mod default_preemption;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_balanced_allocation;
mod node_resources_fit;
mod node_unschedulable;
mod pod_topology_spread;
mod registration;
mod taint_toleration;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use default_preemption::{
    CLAIMS_NOT_FOUND, Candidate, Ineligible, PREEMPTION, Preemption, PreemptionDryRun,
    PreemptionRefusal, VictimCost, Victims, candidates, has_leaving_victims, preempt,
    preempt_after, protects, victims_by,
};
pub(crate) use default_preemption::{candidate, may_preempt};
pub(crate) use inter_pod_affinity::Counts;
pub use inter_pod_affinity::{own_term_means, placed_term_means};
pub use node_resources_balanced_allocation::balanced_score;
pub use node_resources_fit::{ResourceUse, fit_score};
pub(crate) use pod_topology_spread::Spread;
pub use pod_topology_spread::{Constraint, constraints, has_every_key, score_needs_every_key};
pub use registration::{Point, Registration, Role};

use Point::{Bind, Filter, PostFilter, PreBind, PreEnqueue, PreFilter, QueueSort, Reserve, Score};

/// Defines [`Plugin`] and the registry from the same entries.
macro_rules! plugins {
    ($($(#[$doc:meta])* $name:ident: $registration:expr,)+) => {
        /// A plugin, by its name.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Plugin {
            $($(#[$doc])* $name,)+
        }

        impl Plugin {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            pub const fn registration(self) -> &'static Registration {
                const REGISTRY: &[Registration] = &[$($registration,)+];
                &REGISTRY[self as usize]
            }
        }
    };
}

// In kube-scheduler's order: the first filter that rejects a Node supplies its reasons.
plugins! {
    SchedulingGates: Registration::required(&[PreEnqueue]),
    PrioritySort: Registration::required(&[QueueSort]),
    NodeUnschedulable: node_unschedulable::PLUGIN,
    NodeName: node_name::PLUGIN,
    TaintToleration: taint_toleration::PLUGIN,
    NodeAffinity: node_affinity::PLUGIN,
    /// The one that kube-scheduler does not have.
    Corridor: corridor::PLUGIN,
    NodePorts: node_ports::PLUGIN,
    NodeResourcesFit: node_resources_fit::PLUGIN,
    VolumeRestrictions: Registration::not_implemented(&[PreFilter, Filter]),
    NodeVolumeLimits: Registration::not_implemented(&[PreFilter, Filter]),
    VolumeBinding: Registration::not_implemented(&[
        PreFilter, Filter, Point::PreScore, Score, Reserve, PreBind,
    ]),
    VolumeZone: Registration::not_implemented(&[PreFilter, Filter]),
    PodTopologySpread: pod_topology_spread::PLUGIN,
    InterPodAffinity: inter_pod_affinity::PLUGIN,
    DefaultPreemption: default_preemption::PLUGIN,
    NodeResourcesBalancedAllocation: node_resources_balanced_allocation::PLUGIN,
    ImageLocality: image_locality::PLUGIN,
    DefaultBinder: Registration::required(&[Bind]),
    NodeDeclaredFeatures: node_declared_features::PLUGIN,
    DynamicResources: Registration::not_implemented(&[
        PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind,
    ]),
}

impl Plugin {
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|plugin| plugin.name() == name)
    }

    /// Whether it scores Nodes here.
    pub fn scores(self) -> bool {
        self.registration().score.is_some()
    }

    /// Whether it rejects Nodes here.
    pub fn filters(self) -> bool {
        self.registration().filter.is_some()
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
