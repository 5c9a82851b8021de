//! The plugins of kube-scheduler's default profile, and ours: where each takes part, and what it is here.

use engine::Plugin;

use super::CORRIDOR_PLUGIN;

/// The places of a scheduling cycle at which plugins take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
    /// For groups of Pods, which are not scheduled here as groups.
    PlacementGenerate,
    PlacementScore,
}

impl Point {
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
            Self::PlacementGenerate => "placementGenerate",
            Self::PlacementScore => "placementScore",
        }
    }
}

/// What becomes of a plugin that a profile switches off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A rule that can be done without.
    Rule(Plugin),
    Preemption,
    /// Nothing works without it.
    Indispensable,
    /// Part of kube-scheduler, not of this scheduler: Pods that need it are held, on or off.
    NotImplemented,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub name: &'static str,
    pub role: Role,
    pub points: &'static [Point],
}

impl Known {
    pub fn is_at(&self, point: Point) -> bool {
        self.points.contains(&point)
    }
}

pub(super) fn known(name: &str) -> Option<&'static Known> {
    PLUGINS.iter().chain([&OURS]).find(|known| known.name == name)
}

const fn plugin(name: &'static str, role: Role, points: &'static [Point]) -> Known {
    Known { name, role, points }
}

use Point::{
    Bind, Filter, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve, Score,
};
use Role::{Indispensable, NotImplemented, Preemption, Rule};

/// In kube-scheduler's order.
pub(super) const PLUGINS: [Known; 20] = [
    plugin("SchedulingGates", Indispensable, &[PreEnqueue]),
    plugin("PrioritySort", Indispensable, &[QueueSort]),
    plugin("NodeUnschedulable", Rule(Plugin::NodeUnschedulable), &[Filter]),
    plugin("NodeName", Rule(Plugin::NodeName), &[Filter]),
    plugin("TaintToleration", Rule(Plugin::TaintToleration), &[Filter, PreScore, Score]),
    plugin("NodeAffinity", Rule(Plugin::NodeAffinity), &[PreFilter, Filter, PreScore, Score]),
    plugin("NodePorts", Rule(Plugin::NodePorts), &[PreFilter, Filter]),
    plugin(
        "NodeResourcesFit",
        Rule(Plugin::NodeResourcesFit),
        &[PreFilter, Filter, PreScore, Score],
    ),
    plugin("VolumeRestrictions", NotImplemented, &[PreFilter, Filter]),
    plugin("NodeVolumeLimits", NotImplemented, &[PreFilter, Filter]),
    plugin(
        "VolumeBinding",
        NotImplemented,
        &[PreFilter, Filter, PreScore, Score, Reserve, PreBind],
    ),
    plugin("VolumeZone", NotImplemented, &[PreFilter, Filter]),
    plugin(
        "PodTopologySpread",
        Rule(Plugin::PodTopologySpread),
        &[PreFilter, Filter, PreScore, Score],
    ),
    plugin(
        "InterPodAffinity",
        Rule(Plugin::InterPodAffinity),
        &[PreFilter, Filter, PreScore, Score],
    ),
    plugin("DefaultPreemption", Preemption, &[PreEnqueue, PostFilter]),
    plugin(
        "NodeResourcesBalancedAllocation",
        Rule(Plugin::NodeResourcesBalancedAllocation),
        &[PreScore, Score],
    ),
    plugin("ImageLocality", Rule(Plugin::ImageLocality), &[Score]),
    plugin("DefaultBinder", Indispensable, &[Bind]),
    plugin("NodeDeclaredFeatures", Rule(Plugin::NodeDeclaredFeatures), &[PreFilter, Filter]),
    plugin(
        "DynamicResources",
        NotImplemented,
        &[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind],
    ),
];

/// Ours: the floors. It takes part before and after the Nodes, and is not to be chosen.
pub(super) const OURS: Known =
    plugin(CORRIDOR_PLUGIN, Indispensable, &[PreFilter, Filter, Reserve]);
