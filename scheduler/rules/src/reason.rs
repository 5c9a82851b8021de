//! Why a Node cannot take a Pod, in kube-scheduler's words.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{ObjectRef, SelectorError};

use crate::plugins::{DeviceProblem, Plugin};
use crate::volume_problem::VolumeProblem;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// One of the reasons that its plugin lists, by its index there. Each has a constant: `Reason::NODE_NAME`.
    Fixed(Plugin, u8),
    /// The Pod's affinity names Nodes, and this is none of them.
    NotNamed {
        /// The rule that rejected the Node nominated for the Pod, which is tried before: by an
        /// oversight kube-scheduler blames it for the other Nodes too.
        nominated_node_rejected_by: Option<Plugin>,
    },
    /// What the Pod refers to cannot be used at this Node.
    OutOfReach { object: ObjectRef },
    Insufficient {
        resource: Arc<str>,
        /// More than the Node has, however empty it is.
        exceeds_node: bool,
    },
    /// What is wrong with the Pod's claims, before any Node is looked at.
    Volume { plugin: Plugin, problem: VolumeProblem },
    /// What is wrong with the Pod's ResourceClaims.
    Devices(DeviceProblem),
    /// What kube-scheduler ends the attempt for, at this Node.
    Failed { plugin: Plugin, why: Arc<str> },
    /// Pod affinity or spread constraints that cannot be parsed.
    Unparsable { plugin: Plugin, why: SelectorError },
}

/// A reason that is the same for every Pod and Node. Its plugin declares it by [`reasons!`].
#[derive(Debug)]
pub struct FixedReason {
    /// kube-scheduler's words.
    pub text: &'static str,
    /// kube-scheduler's `UnschedulableAndUnresolvable`: no preemption on this Node can help.
    pub is_unresolvable: bool,
    /// What would have to change.
    pub wakes_on: &'static str,
}

impl FixedReason {
    pub(crate) const fn resolvable(text: &'static str, wakes_on: &'static str) -> Self {
        Self { text, is_unresolvable: false, wakes_on }
    }

    pub(crate) const fn unresolvable(text: &'static str, wakes_on: &'static str) -> Self {
        Self { text, is_unresolvable: true, wakes_on }
    }
}

/// Declares the fixed reasons of a plugin: a constant of [`Reason`] for each, and their list for its registration.
macro_rules! reasons {
    (
        $plugin:ident:
        $($(#[$doc:meta])* $name:ident = $status:ident($text:literal, wakes_on: $wakes_on:literal $(,)?),)+
    ) => {
        const REASONS: &[$crate::reason::FixedReason] =
            &[$($crate::reason::FixedReason::$status($text, $wakes_on),)+];

        #[expect(non_camel_case_types, reason = "named as the constants whose indexes it counts")]
        enum Index {
            $($name,)+
        }

        impl $crate::Reason {
            $($(#[$doc])* pub const $name: Self =
                Self::Fixed($crate::Plugin::$plugin, Index::$name as u8);)+
        }
    };
}
pub(crate) use reasons;

impl Reason {
    pub fn plugin(&self) -> Plugin {
        match self {
            Self::Fixed(plugin, _)
            | Self::Volume { plugin, .. }
            | Self::Failed { plugin, .. }
            | Self::Unparsable { plugin, .. } => *plugin,
            Self::NotNamed { .. } => Plugin::NodeAffinity,
            Self::Devices(_) => Plugin::DynamicResources,
            Self::OutOfReach { .. } => Plugin::Corridor,
            Self::Insufficient { .. } => Plugin::NodeResourcesFit,
        }
    }

    /// kube-scheduler's `UnschedulableAndUnresolvable`: no preemption on this Node can help.
    pub fn is_unresolvable(&self) -> bool {
        match self {
            Self::Fixed(plugin, index) => fixed(*plugin, *index).is_unresolvable,
            Self::Insufficient { exceeds_node, .. } => *exceeds_node,
            Self::NotNamed { .. }
            | Self::OutOfReach { .. }
            | Self::Volume { .. }
            | Self::Devices(_)
            | Self::Failed { .. }
            | Self::Unparsable { .. } => true,
        }
    }
}

/// What the plugin declares at that index. A journal of another version may name one that is not there.
pub fn fixed(plugin: Plugin, index: u8) -> &'static FixedReason {
    const UNKNOWN: FixedReason =
        FixedReason::unresolvable("node(s) had an unknown reason", "a change of the Pod");
    plugin.registration().reasons.get(usize::from(index)).unwrap_or(&UNKNOWN)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(plugin, index) => f.write_str(fixed(*plugin, *index).text),
            Self::NotNamed { nominated_node_rejected_by } => {
                let mut names = vec![Plugin::NodeAffinity.to_string()];
                names.extend(nominated_node_rejected_by.map(|plugin| plugin.to_string()));
                names.sort();
                names.dedup();
                write!(f, "node(s) didn't satisfy plugin(s) [{}]", names.join(" "))
            }
            Self::OutOfReach { object } => {
                write!(f, "node(s) didn't match the node selector of {object}")
            }
            Self::Insufficient { resource, .. } => write!(f, "Insufficient {resource}"),
            Self::Volume { problem, .. } => problem.fmt(f),
            Self::Devices(problem) => problem.fmt(f),
            Self::Failed { why, .. } => f.write_str(why),
            Self::Unparsable { why, .. } => write!(f, "parsing pod: {why}"),
        }
    }
}

/// For a filter that has one reason.
pub(crate) fn unless(passes: bool, reason: Reason) -> Vec<Reason> {
    if passes { Vec::new() } else { vec![reason] }
}
