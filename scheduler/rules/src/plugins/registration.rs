//! What the registry knows of a plugin.

use model::SchedulingSpec;

use super::Plugin;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::reason::{FixedReason, Reason};
use crate::rules::Rules;
use crate::score::{PluginResult, ScoreContext};
use crate::trial::Trial;

/// An extension point of kube-scheduler: a step of a scheduling cycle at which plugins take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
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
    /// As a configuration spells it.
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

/// What a profile may do with a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Switch it off.
    Optional,
    /// Nothing works without it.
    Required,
}

#[derive(Debug)]
pub struct Registration {
    pub role: Role,
    /// Where it takes part, as in kube-scheduler, also where its work is done at another point here.
    pub points: &'static [Point],
    /// What its score weighs unless the profile says otherwise.
    pub default_weight: u32,
    pub(crate) pre_filter: Option<PreFilterFn>,
    pub(crate) filter: Option<FilterFn>,
    /// For which it rejects Nodes, if their words are always the same.
    pub(crate) reasons: &'static [FixedReason],
    pub(crate) score: Option<ScoreFn>,
    /// Whether its filter judges a Node by Pods on other Nodes: then a change on one Node may wake a Pod that another
    /// Node rejected.
    pub(crate) looks_beyond_node: fn(&Rules, &SchedulingSpec) -> bool,
}

/// What can be said of the Pod before any Node is looked at. What the filter needs later is left in the state.
pub(crate) type PreFilterFn = fn(PodContext<'_>, &mut CycleState) -> Result<(), PreFilterStatus>;
/// Every reason for which the plugin rejects the Node; none when it passes.
pub(crate) type FilterFn = fn(&Trial<'_>) -> Vec<Reason>;
pub(crate) type ScoreFn = fn(&ScoreContext<'_>) -> PluginResult;

impl Registration {
    pub(super) const fn optional(points: &'static [Point]) -> Self {
        Self {
            role: Role::Optional,
            points,
            default_weight: 1,
            pre_filter: None,
            filter: None,
            reasons: &[],
            score: None,
            looks_beyond_node: |_, _| false,
        }
    }

    pub(super) const fn required(points: &'static [Point]) -> Self {
        Self { role: Role::Required, ..Self::optional(points) }
    }

    pub fn is_at(&self, point: Point) -> bool {
        self.points.contains(&point)
    }

    /// Whether it can reject a Pod before any Node is looked at.
    pub fn rejects_early(&self) -> bool {
        self.pre_filter.is_some()
    }
}

impl Rules {
    /// Whether some filter judges Nodes for such a Pod by Pods on other Nodes.
    pub fn look_beyond_nodes(&self, scheduling: &SchedulingSpec) -> bool {
        let filters = Plugin::ALL.iter().filter(|plugin| self.filters_by(**plugin));
        filters
            .map(|plugin| plugin.registration())
            .any(|it| (it.looks_beyond_node)(self, scheduling))
    }
}
