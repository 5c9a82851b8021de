//! What the claims of a Pod ask of any Node, apart from which claims they are: Pods with equal needs can have devices on
//! the same Nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    ClaimSpec, ClusterNode, ClusterPod, Constraint, DeviceCount, DeviceSelector, NodeName,
    ObjectKey, RequestAlternatives, ResourceClaim, SelectedNodes, SubRequest,
};

use super::filter::reason;
use super::pre_filter::device_claims;
use super::score::score_of;
use crate::cluster::Cluster;
use crate::devices::{allocate, allocation_score, possible_scores};
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::rules::Rules;

/// More scores than this are not told apart.
const SCORES_MAX: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceNeeds {
    to_allocate: Vec<Arc<ClaimSpec>>,
    /// From where the devices of allocated claims can be used.
    allocated: Vec<Arc<SelectedNodes>>,
    score_of_allocated: i64,
}

/// What a Node has for the needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceFit {
    /// All, with this score before it is normalized.
    Fits(i64),
    Rejected(Vec<Reason>),
}

impl DeviceNeeds {
    /// `None`: a Node that is never looked at could end the attempt, so all must be; or the claims keep the Pod from
    /// every Node.
    pub fn of(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Option<Self> {
        if !rules.filters_by(Plugin::DynamicResources) {
            return pod.resource_claims.is_empty().then(Self::default);
        }
        let claims = device_claims(cluster, pod).ok()?;
        let has_failed = |claim: &Arc<ResourceClaim>| claim.failed_device().is_some();
        let may_fail = |claim: &Arc<ResourceClaim>| may_fail(cluster, &claim.spec);
        if claims.allocated.iter().any(has_failed) || claims.to_allocate.iter().any(may_fail) {
            return None;
        }
        if !claims.to_allocate.is_empty() && cluster.devices.pools.has_odd_places() {
            return None;
        }
        let allocated = claims.allocated.iter();
        let nodes = allocated.clone().filter_map(|it| it.allocation.as_ref()?.nodes.clone());
        let needs = Self {
            to_allocate: claims.to_allocate.iter().map(|it| it.spec.clone()).collect(),
            allocated: nodes.collect(),
            score_of_allocated: allocated
                .filter_map(|it| Some(score_of(it, it.allocation.as_deref()?)))
                .sum(),
        };
        (needs.scores().len() <= SCORES_MAX).then_some(needs)
    }

    /// Whether any Node will do.
    pub fn is_empty(&self) -> bool {
        self.to_allocate.is_empty() && self.allocated.is_empty()
    }

    /// The only Nodes that it can be on, if allocated claims name them.
    pub fn named_nodes(&self) -> Option<BTreeSet<NodeName>> {
        self.allocated.iter().find_map(|nodes| nodes.selector.named_nodes())
    }

    /// The scores that a Node can have, in order. One if all have the same.
    pub fn scores(&self) -> BTreeSet<i64> {
        let mut scores: BTreeSet<i64> = [self.score_of_allocated].into();
        for spec in &self.to_allocate {
            let each = possible_scores(spec);
            scores = scores.iter().flat_map(|it| each.iter().map(move |of| it + of)).collect();
            if scores.len() > SCORES_MAX {
                break;
            }
        }
        scores
    }

    pub fn on(&self, cluster: &Cluster, node: &ClusterNode) -> DeviceFit {
        let unnamed = |spec: &Arc<ClaimSpec>| ResourceClaim {
            spec: spec.clone(),
            ..ResourceClaim::new(ObjectKey::new("", ""))
        };
        let claims: Vec<ResourceClaim> = self.to_allocate.iter().map(unnamed).collect();
        let each: Vec<&ResourceClaim> = claims.iter().collect();
        let found = match allocate(&cluster.allocator_input(), &node.node, &each) {
            Ok(found) => found,
            Err(failure) => return DeviceFit::Rejected(vec![reason(failure)]),
        };
        if !self.allocated.iter().all(|nodes| nodes.matches(&node.node)) {
            return DeviceFit::Rejected(vec![Reason::CLAIM_NOT_AVAILABLE]);
        }
        let scores = self.to_allocate.iter().zip(&found);
        let of_found = scores.map(|(spec, found)| allocation_score(spec, found));
        DeviceFit::Fits(self.score_of_allocated + of_found.sum::<i64>())
    }
}

/// Whether the attempt may end with an error, depending on what a Node has.
fn may_fail(cluster: &Cluster, spec: &ClaimSpec) -> bool {
    let is_odd = |asked: &SubRequest| !matches!(asked.count, DeviceCount::Exact(_));
    let fails = |selector: &DeviceSelector| match selector {
        DeviceSelector::Cel(expression) => cluster.devices.verdicts.fails_somewhere(expression),
        DeviceSelector::Unknown => true,
    };
    let may_fail = |asked: &SubRequest| {
        let class = cluster.objects.device_classes.get(&asked.class);
        is_odd(asked)
            || asked.selectors.iter().any(fails)
            || class.is_none_or(|class| class.selectors.iter().any(fails))
    };
    let of_request = |alternatives: &RequestAlternatives| match alternatives {
        RequestAlternatives::Exactly(asked) => may_fail(asked),
        RequestAlternatives::FirstAvailable(all) => all.is_empty() || all.iter().any(may_fail),
        RequestAlternatives::Unknown => true,
    };
    spec.requests.iter().any(|request| of_request(&request.alternatives))
        || spec.constraints.contains(&Constraint::Unknown)
        || most_devices(spec) > crate::devices::DEVICES_PER_CLAIM_MAX
}

/// How many devices the claim asks for, whichever alternatives it gets.
fn most_devices(spec: &ClaimSpec) -> usize {
    let count = |asked: &SubRequest| match asked.count {
        DeviceCount::Exact(count) => usize::try_from(count).unwrap_or(0),
        DeviceCount::All | DeviceCount::Unknown(_) => 0,
    };
    let of_request = |alternatives: &RequestAlternatives| match alternatives {
        RequestAlternatives::Exactly(asked) => count(asked),
        RequestAlternatives::FirstAvailable(all) => all.iter().map(count).max().unwrap_or(0),
        RequestAlternatives::Unknown => 0,
    };
    let counts = spec.requests.iter().map(|request| of_request(&request.alternatives));
    counts.fold(0, usize::saturating_add)
}
