//! Whether a Node by itself fits a class of Pods (NodeResourcesFit, NodePorts), and its score.

use model::{HostPort, SchedulingSpec};
use rules::{Plugin, Rules};

use super::plugins::node_ports;
use super::plugins::node_resources_balanced_allocation::BalancedScore;
use super::plugins::node_resources_fit::{FitScore, Missing, ResourceNeeds, is_cpu_and_memory};
use super::quick::Quick;
use super::rows::{Extras, Row, three};
use super::tree::INFEASIBLE;

#[derive(Debug)]
pub(super) struct NodeFit {
    /// None: the profile does not check.
    needs: Option<ResourceNeeds>,
    pub ports: Vec<HostPort>,
    fit: Option<FitScore>,
    balanced: Option<BalancedScore>,
    /// The same in fewer steps, for what most Pods ask for.
    quick: Option<Quick>,
}

/// Scores of one Node that are compared with nothing must stay below this to take part in a tournament.
const SCORE_MAX: i64 = i16::MAX as i64;

impl NodeFit {
    /// `None`: weights so large that a tournament has no place for the scores.
    pub fn new(rules: &Rules, scheduling: &SchedulingSpec) -> Option<Self> {
        let weight = |plugin| rules.scores_by(plugin).then(|| rules.weight_of(plugin));
        let fit = weight(Plugin::NodeResourcesFit);
        let balanced = weight(Plugin::NodeResourcesBalancedAllocation);
        let requested = &scheduling.requests.effective;
        let is_idle = rules.balanced_resources.iter().all(|name| requested.amount(name) == 0);
        let balanced = balanced.filter(|_| !is_idle);
        // A score is between 0 and 100, but what evens out much can get up to 125.
        let most = fit.unwrap_or(0).saturating_mul(100);
        let most = most.saturating_add(balanced.unwrap_or(0).saturating_mul(125));
        if most >= SCORE_MAX {
            return None;
        }
        let ports = rules.filters_by(Plugin::NodePorts).then(|| scheduling.host_ports.clone());
        let mut node_fit = Self {
            quick: None,
            needs: rules
                .filters_by(Plugin::NodeResourcesFit)
                .then(|| ResourceNeeds::new(rules, scheduling)),
            ports: ports.unwrap_or_default(),
            fit: fit.map(|weight| FitScore::new(rules, scheduling, weight)),
            balanced: balanced.map(|weight| BalancedScore {
                weight,
                asked: requested.clone(),
                resources: (!is_cpu_and_memory(rules.balanced_resources.iter()))
                    .then(|| rules.balanced_resources.clone()),
            }),
        };
        node_fit.quick = node_fit.as_quick();
        Some(node_fit)
    }

    /// `None`: it takes looking at more than CPU, memory, storage and places for Pods.
    fn as_quick(&self) -> Option<Quick> {
        let (needs, fit) = (self.needs.as_ref()?, self.fit.as_ref()?);
        let balanced = self.balanced.as_ref();
        let is_plain = needs.scalars.is_empty()
            && self.ports.is_empty()
            && balanced.is_none_or(|it| it.resources.is_none());
        let evened = balanced.map(|it| (it.weight, three(&it.asked)));
        Quick::new(needs.asked, (fit.weight, three(&fit.asked)), fit.least?, evened)
            .filter(|_| is_plain)
    }

    /// For scoring many Nodes.
    pub fn quick(&self) -> Option<&Quick> {
        self.quick.as_ref()
    }

    /// Whether a [`Row`] tells whether a Node has room.
    pub fn look_at_rows_only(&self) -> bool {
        self.ports.is_empty() && self.needs.as_ref().is_none_or(|needs| needs.scalars.is_empty())
    }

    /// What a Node must have. `None`: the profile does not check.
    pub fn needs(&self) -> Option<&ResourceNeeds> {
        self.needs.as_ref()
    }

    /// The score of the Node; `INFEASIBLE` if it does not fit.
    pub fn score(&self, row: &Row, extras: &Extras) -> i16 {
        match &self.quick {
            Some(quick) if row.is_ordinary() => quick.score(row),
            _ => self.score_by_parts(row, extras),
        }
    }

    fn score_by_parts(&self, row: &Row, extras: &Extras) -> i16 {
        if !self.fits(row, extras) {
            return INFEASIBLE;
        }
        let fit = self.fit.as_ref().map_or(0, |fit| fit.weight * fit.score(row, extras));
        let balanced =
            self.balanced.as_ref().map_or(0, |even| even.weight * even.score(row, extras));
        i16::try_from(fit + balanced).unwrap_or(i16::MAX)
    }

    pub fn fits(&self, row: &Row, extras: &Extras) -> bool {
        let has_room = self.needs.as_ref().is_none_or(|needs| needs.fits(row, extras));
        has_room && !self.has_conflict(extras)
    }

    pub fn has_conflict(&self, extras: &Extras) -> bool {
        node_ports::has_conflict(&self.ports, extras)
    }

    /// What is missing on the Node.
    pub fn missing(&self, row: &Row, extras: &Extras, tell: impl FnMut(Missing<'_>)) {
        if let Some(needs) = &self.needs {
            needs.missing(row, extras, tell);
        }
    }
}
