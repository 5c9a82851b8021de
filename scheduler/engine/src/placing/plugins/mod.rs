//! The quick form of each plugin, in a file with its name. NodeName has none: it matters only to Pods that are bound.
//! Those of volumes have one together, `../volumes.rs`. Pods with ResourceClaims are not asked about here: DynamicResources
//! has nothing to say of others.

use rules::{Plugin, Rules};

pub(super) mod corridor;
pub(super) mod image_locality;
pub(super) mod inter_pod_affinity;
pub(super) mod node_affinity;
pub(super) mod node_declared_features;
pub(super) mod node_ports;
pub(super) mod node_resources_balanced_allocation;
pub(super) mod node_resources_fit;
pub(super) mod node_unschedulable;
pub(super) mod pod_topology_spread;
pub(super) mod taint_toleration;

/// The plugins that this folder knows. While another one takes part, the plain rules decide.
const QUICK: [Plugin; 17] = [
    Plugin::NodeUnschedulable,
    Plugin::NodeName,
    Plugin::TaintToleration,
    Plugin::NodeAffinity,
    Plugin::Corridor,
    Plugin::NodePorts,
    Plugin::NodeResourcesFit,
    Plugin::VolumeRestrictions,
    Plugin::NodeVolumeLimits,
    Plugin::VolumeBinding,
    Plugin::VolumeZone,
    Plugin::PodTopologySpread,
    Plugin::InterPodAffinity,
    Plugin::NodeResourcesBalancedAllocation,
    Plugin::ImageLocality,
    Plugin::NodeDeclaredFeatures,
    Plugin::DynamicResources,
];

/// Whether every plugin that takes part has a quick form.
pub(super) fn are_quick(rules: &Rules) -> bool {
    Plugin::ALL.iter().all(|plugin| {
        let takes_part = plugin.filters() && rules.filters_by(*plugin)
            || plugin.scores() && rules.scores_by(*plugin);
        !takes_part || QUICK.contains(plugin)
    })
}
