//! How good a Node is for a Pod, 0–100 for each plugin that scores.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterNode, ClusterPod, NodeName, SelectorError};

use crate::cluster::Cluster;
use crate::plugins::Plugin;
use crate::rules::Rules;

pub(crate) const SCORE_MAX: i64 = 100;

/// What one Node scored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeScore {
    /// In kube-scheduler's order, without the rules that had nothing to say about the Pod.
    pub plugins: Vec<PluginScore>,
    pub total: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginScore {
    pub plugin: Plugin,
    pub raw: i64,
    /// After comparison with the other Nodes, where the rule compares. 0–100 for every Pod that
    /// the API server accepts.
    pub normalised: i64,
    pub weighted: i64,
}

/// Preferences that cannot be parsed: kube-scheduler fails the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreError {
    pub plugin: Plugin,
    pub why: SelectorError,
}

/// The Nodes that compete for the Pod.
pub(crate) struct ScoreContext<'a> {
    pub rules: &'a Rules,
    pub cluster: &'a Cluster,
    pub pod: &'a ClusterPod,
    pub feasible: Vec<&'a ClusterNode>,
}

impl ScoreContext<'_> {
    /// A rule that scores each Node by itself and compares nothing.
    pub fn each(&self, score: impl Fn(&ClusterNode) -> i64) -> Scores {
        let raw: Vec<i64> = self.feasible.iter().map(|node| score(node)).collect();
        Scores { normalised: raw.clone(), raw }
    }
}

/// One number for each competing Node, in their order.
pub(crate) struct Scores {
    pub raw: Vec<i64>,
    pub normalised: Vec<i64>,
}

/// The result of one score plugin for a Pod.
pub(crate) enum PluginResult {
    Scored(Scores),
    /// The plugin does not apply to the Pod.
    Skipped,
    Unparsable(SelectorError),
}

/// The scores of the Nodes that can take the Pod. Names of unknown Nodes are left out.
pub fn score(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    feasible: &BTreeSet<NodeName>,
) -> Result<BTreeMap<NodeName, NodeScore>, ScoreError> {
    let nodes = feasible.iter().filter_map(|name| cluster.nodes.get(name));
    let context = ScoreContext { rules, cluster, pod, feasible: nodes.collect() };
    let mut table = vec![NodeScore::default(); context.feasible.len()];
    for plugin in Plugin::ALL.iter().copied().filter(|plugin| rules.scores_by(*plugin)) {
        let Some(score) = plugin.registration().score else { continue };
        let Scores { raw, normalised } = match score(&context) {
            PluginResult::Scored(scores) => scores,
            PluginResult::Skipped => continue,
            PluginResult::Unparsable(why) => return Err(ScoreError { plugin, why }),
        };
        let weight = rules.weight_of(plugin);
        for (node, (raw, normalised)) in table.iter_mut().zip(raw.into_iter().zip(normalised)) {
            let weighted = normalised.saturating_mul(weight);
            node.total = node.total.saturating_add(weighted);
            node.plugins.push(PluginScore { plugin, raw, normalised, weighted });
        }
    }
    let names = context.feasible.iter().map(|node| node.node.name.clone());
    Ok(names.zip(table).collect())
}

/// Stretches the scores so that the highest is 100. All zero stay zero.
pub(crate) fn up_to_max(raw: Vec<i64>) -> Scores {
    let highest = raw.iter().copied().max().unwrap_or(0);
    let share = |score: &i64| if highest <= 0 { *score } else { scaled(*score, highest) };
    Scores { normalised: raw.iter().map(share).collect(), raw }
}

/// `100 × part / whole`, rounded towards zero; 0 when there is no whole.
pub(crate) fn scaled(part: i64, whole: i64) -> i64 {
    let product = i128::from(part) * i128::from(SCORE_MAX);
    product.checked_div(i128::from(whole)).and_then(|it| i64::try_from(it).ok()).unwrap_or(0)
}
