//! Why a Node cannot take a Pod, in kube-scheduler's words.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{ObjectRef, SelectorError};

use crate::plugins::Plugin;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    NodeUnschedulable,
    NodeName,
    UntoleratedTaint,
    /// `nodeSelector` or node affinity of the Pod.
    NodeAffinity,
    /// The affinity that the profile adds.
    EnforcedNodeAffinity,
    /// The Pod's affinity names Nodes, and this is none of them.
    NotNamed {
        /// The rule that rejected the Node nominated for the Pod, which is tried before: by an
        /// oversight kube-scheduler blames it for the other Nodes too.
        nominee_rejected_by: Option<Plugin>,
    },
    /// The Pod's affinity names Nodes, and no Node can be all of them.
    NodeNamesConflict,
    /// What the Pod refers to cannot be used at this Node.
    OutOfReach {
        object: ObjectRef,
    },
    HostPorts,
    TooManyPods,
    Insufficient {
        resource: Arc<str>,
        /// More than the Node has, however empty it is.
        exceeds_node: bool,
    },
    TopologySpread,
    TopologySpreadLabelMissing,
    PodAffinity,
    PodAntiAffinity,
    ExistingPodsAntiAffinity,
    DeclaredFeatures,
    /// Pod affinity or spread constraints that cannot be parsed.
    Unparsable {
        plugin: Plugin,
        why: SelectorError,
    },
}

impl Reason {
    pub fn plugin(&self) -> Plugin {
        match self {
            Self::NodeUnschedulable => Plugin::NodeUnschedulable,
            Self::NodeName => Plugin::NodeName,
            Self::UntoleratedTaint => Plugin::TaintToleration,
            Self::NodeAffinity
            | Self::EnforcedNodeAffinity
            | Self::NotNamed { .. }
            | Self::NodeNamesConflict => Plugin::NodeAffinity,
            Self::OutOfReach { .. } => Plugin::Corridor,
            Self::HostPorts => Plugin::NodePorts,
            Self::TooManyPods | Self::Insufficient { .. } => Plugin::NodeResourcesFit,
            Self::TopologySpread | Self::TopologySpreadLabelMissing => Plugin::PodTopologySpread,
            Self::PodAffinity | Self::PodAntiAffinity | Self::ExistingPodsAntiAffinity => {
                Plugin::InterPodAffinity
            }
            Self::DeclaredFeatures => Plugin::NodeDeclaredFeatures,
            Self::Unparsable { plugin, .. } => *plugin,
        }
    }

    /// kube-scheduler's `UnschedulableAndUnresolvable`: no preemption on this Node can help.
    pub fn is_unresolvable(&self) -> bool {
        match self {
            Self::HostPorts
            | Self::TooManyPods
            | Self::TopologySpread
            | Self::PodAntiAffinity
            | Self::ExistingPodsAntiAffinity => false,
            Self::Insufficient { exceeds_node, .. } => *exceeds_node,
            Self::NodeUnschedulable
            | Self::NodeName
            | Self::UntoleratedTaint
            | Self::NodeAffinity
            | Self::EnforcedNodeAffinity
            | Self::NotNamed { .. }
            | Self::NodeNamesConflict
            | Self::OutOfReach { .. }
            | Self::TopologySpreadLabelMissing
            | Self::PodAffinity
            | Self::DeclaredFeatures
            | Self::Unparsable { .. } => true,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodeUnschedulable => "node(s) were unschedulable",
            Self::NodeName => "node(s) didn't match the requested node name",
            Self::UntoleratedTaint => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::EnforcedNodeAffinity => "node(s) didn't match scheduler-enforced node affinity",
            Self::NotNamed { nominee_rejected_by } => {
                let mut names = vec![Plugin::NodeAffinity.to_string()];
                names.extend(nominee_rejected_by.map(|plugin| plugin.to_string()));
                names.sort();
                names.dedup();
                return write!(f, "node(s) didn't satisfy plugin(s) [{}]", names.join(" "));
            }
            Self::NodeNamesConflict => "pod affinity terms conflict",
            Self::OutOfReach { object } => {
                return write!(f, "node(s) didn't match the node selector of {object}");
            }
            Self::HostPorts => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient { resource, .. } => return write!(f, "Insufficient {resource}"),
            Self::TopologySpread => "node(s) didn't match pod topology spread constraints",
            Self::TopologySpreadLabelMissing => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingPodsAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
            Self::DeclaredFeatures => "node(s) didn't match Pod's required features",
            Self::Unparsable { why, .. } => return write!(f, "parsing pod: {why}"),
        })
    }
}

/// For a filter that has one reason.
pub(crate) fn unless(passes: bool, reason: Reason) -> Vec<Reason> {
    if passes { Vec::new() } else { vec![reason] }
}
