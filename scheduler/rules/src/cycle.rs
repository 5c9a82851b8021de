//! One scheduling cycle: what the plugins find out of the Pod and the whole cluster once (PreFilter), before they are
//! asked about single Nodes.

use std::collections::BTreeSet;

use model::{ClusterNode, ClusterPod, NodeName};

use crate::cluster::Cluster;
use crate::failure::{Failure, FailureCause};
use crate::plugins::{
    ClaimsToBind, Counts, DeviceClaims, ExclusiveClaims, Plugin, Spread, ZoneConditions,
};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::trial::Trial;

/// One Pod, to be placed in a cluster by the rules of its profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodContext<'a> {
    pub rules: &'a Rules,
    pub cluster: &'a Cluster,
    pub pod: &'a ClusterPod,
}

/// What PreFilter leaves for Filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct CycleState {
    /// The Nodes that its affinity names, when it names any.
    pub named: Option<BTreeSet<NodeName>>,
    pub affinity: Counts,
    pub spread: Spread,
    /// `None`: VolumeRestrictions has nothing to say about the Pod, whatever comes and goes.
    pub exclusive_claims: Option<ExclusiveClaims>,
    pub claims_to_bind: ClaimsToBind,
    pub volume_zones: ZoneConditions,
    pub device_claims: DeviceClaims,
}

/// Why a plugin ends the cycle before any Node is looked at.
#[derive(Clone, Debug)]
pub(crate) enum PreFilterStatus {
    Rejected(Reason),
    Failed(FailureCause),
}

/// The same, of the first plugin that does.
#[derive(Clone, Debug)]
pub(crate) enum NotFiltered {
    Rejected(Reason),
    Failed(Failure),
}

impl<'a> PodContext<'a> {
    pub fn pre_filter(self) -> Result<CycleState, NotFiltered> {
        let mut state = CycleState::default();
        for plugin in Plugin::ALL.iter().copied() {
            let Some(pre_filter) = plugin.registration().pre_filter else { continue };
            if !self.rules.filters_by(plugin) {
                continue;
            }
            pre_filter(self, &mut state).map_err(|status| match status {
                PreFilterStatus::Rejected(reason) => NotFiltered::Rejected(reason),
                PreFilterStatus::Failed(why) => NotFiltered::Failed(Failure { plugin, why }),
            })?;
        }
        Ok(state)
    }

    pub fn on(self, node: &'a ClusterNode, state: &'a CycleState) -> Trial<'a> {
        let Self { rules, cluster, pod } = self;
        Trial { rules, cluster, pod, state, node, changes: Vec::new() }
    }
}

impl CycleState {
    /// Whether the Pod's affinity names the Node, or none at all.
    pub fn names(&self, node: &NodeName) -> bool {
        self.named.as_ref().is_none_or(|named| named.contains(node))
    }
}
