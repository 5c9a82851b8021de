//! What the Nodes said of a Pod that fits on none of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::{Deserialize, Serialize};

use model::NodeName;
use rules::{
    CLAIMS_NOT_FOUND, Cluster, PREEMPTION, PREEMPTION_WITH_CLAIMS, Preemption, Reason,
    VolumeDiagnosis,
};

/// What the Nodes said. A Node may give several reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodesRejection {
    /// Why the Pod was rejected before any Node was tried.
    pub whole_pod: Option<Box<str>>,
    /// By what it says.
    pub reasons: BTreeMap<String, ReasonCount>,
    /// Why preemption does not help either. `None`: it does help, or was not tried.
    pub preemption: Option<Box<str>>,
    /// What the Pod lacks that only a feature which is not implemented could give it.
    #[serde(default)]
    pub unsupported: Option<Box<str>>,
    /// Whether kube-scheduler would not have got to preemption: see [`Preemption::ClaimsNotFound`].
    #[serde(default)]
    pub claims_not_found: bool,
    /// Whether the Pod has ResourceClaims: kube-scheduler then says that it has looked whether one can be given back.
    #[serde(default)]
    pub has_claims: bool,
    /// What stands behind those of the reasons that are about claims: known once the Pod was reported.
    #[serde(default)]
    pub volumes: Option<Box<VolumeDiagnosis>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    pub reason: Reason,
    pub nodes: usize,
    /// A few of the Nodes, to look at.
    pub examples: Vec<NodeName>,
}

/// Enough to start looking, few enough to read.
pub(crate) const EXAMPLES_MAX: usize = 3;

impl ReasonCount {
    pub(crate) fn of(reason: &Reason, node: &NodeName) -> Self {
        Self { reason: reason.clone(), nodes: 1, examples: vec![node.clone()] }
    }

    pub(crate) fn add(&mut self, node: &NodeName) {
        self.nodes += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(node.clone());
        }
    }
}

impl NodesRejection {
    /// Reasons that read alike are one.
    pub(crate) fn of_counts(counts: Vec<ReasonCount>, preemption: Option<String>) -> Self {
        let mut reasons: BTreeMap<String, ReasonCount> = BTreeMap::new();
        for count in counts {
            match reasons.entry(count.reason.to_string()) {
                Entry::Occupied(known) => {
                    let known = known.into_mut();
                    known.nodes += count.nodes;
                    known.examples.extend(count.examples);
                    known.examples.truncate(EXAMPLES_MAX);
                }
                Entry::Vacant(new) => drop(new.insert(count)),
            }
        }
        Self { reasons, preemption: preemption.map(Into::into), ..Self::default() }
    }

    /// Of a Pod that is rejected before any Node is tried. `preempts`: whether kube-scheduler would try to preempt.
    pub(crate) fn of_pod(reason: Reason, cluster: &Cluster, preempts: bool) -> Self {
        let examples = cluster.nodes.keys().take(EXAMPLES_MAX).cloned().collect();
        let text = reason.to_string();
        let count = ReasonCount { reason, nodes: cluster.nodes.len(), examples };
        Self {
            whole_pod: Some(text.as_str().into()),
            reasons: [(text, count)].into(),
            claims_not_found: preempts,
            ..Self::default()
        }
    }

    pub(crate) fn new(rejection: &rules::Rejection, preemption: &Preemption) -> Self {
        Self {
            whole_pod: rejection.whole_pod.as_ref().map(|it| it.to_string().into()),
            preemption: preemption_outcome(preemption),
            claims_not_found: *preemption == Preemption::ClaimsNotFound,
            ..Self::of_nodes(&rejection.nodes)
        }
    }

    pub(crate) fn of_nodes(nodes: &BTreeMap<NodeName, Vec<Reason>>) -> Self {
        let mut reasons: BTreeMap<String, ReasonCount> = BTreeMap::new();
        for (node, reason) in
            nodes.iter().flat_map(|(node, all)| all.iter().map(move |it| (node, it)))
        {
            match reasons.entry(reason.to_string()) {
                Entry::Occupied(known) => known.into_mut().add(node),
                Entry::Vacant(new) => drop(new.insert(ReasonCount::of(reason, node))),
            }
        }
        Self { reasons, ..Self::default() }
    }
}

/// Without what kube-scheduler says there about ResourceClaims.
fn preemption_outcome(preemption: &Preemption) -> Option<Box<str>> {
    match preemption {
        Preemption::NotEligible(_) | Preemption::NotHelpful(_) => {
            let message = preemption.message()?;
            message.strip_prefix(PREEMPTION).map(Into::into)
        }
        Preemption::NotTried | Preemption::ClaimsNotFound | Preemption::Possible { .. } => None,
    }
}

impl fmt::Display for NodesRejection {
    /// Word for word as kube-scheduler writes it: what the Nodes said, sorted as texts, counts included, and why
    /// preemption does not help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.whole_pod {
            write!(f, "{reason}.")?;
        } else {
            let reasons = self.reasons.iter();
            let mut texts: Vec<_> =
                reasons.map(|(reason, count)| format!("{} {reason}", count.nodes)).collect();
            texts.sort();
            write!(f, "{}.", texts.join(", "))?;
        }
        match &self.preemption {
            Some(outcome) if self.has_claims => write!(f, " {PREEMPTION_WITH_CLAIMS}{outcome}"),
            Some(outcome) => write!(f, " {PREEMPTION}{outcome}"),
            None if self.claims_not_found => write!(f, " {CLAIMS_NOT_FOUND}"),
            None => Ok(()),
        }
    }
}
