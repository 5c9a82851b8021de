//! Why a Pod fits nowhere, in kube-scheduler's words.

use std::collections::BTreeMap;

use model::NodeName;

use crate::plugins::Preemption;
use crate::reason::Reason;

/// Every Node with why it cannot take the Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why the Pod was rejected before any Node was tried; then every Node has this reason.
    pub whole_pod: Option<Reason>,
    pub nodes: BTreeMap<NodeName, Vec<Reason>>,
}

impl Rejection {
    pub(crate) fn of_pod<'a>(reason: Reason, nodes: impl Iterator<Item = &'a NodeName>) -> Self {
        let nodes = nodes.map(|name| (name.clone(), vec![reason.clone()])).collect();
        Self { whole_pod: Some(reason), nodes }
    }

    pub(crate) fn of_nodes(nodes: BTreeMap<NodeName, Vec<Reason>>) -> Self {
        Self { whole_pod: None, nodes }
    }

    /// How many Nodes each reason was given for. A Node can have several.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        counts(self.nodes.values().flatten().map(ToString::to_string))
    }

    /// Nodes that removing Pods may help: none of their reasons is beyond that.
    pub(crate) fn resolvable(&self) -> impl Iterator<Item = &NodeName> {
        let hopeless = |reasons: &[Reason]| reasons.iter().any(Reason::is_unresolvable);
        self.nodes.iter().filter(move |(_, reasons)| !hopeless(reasons)).map(|(name, _)| name)
    }

    /// kube-scheduler's message, without what it says about preemption.
    pub fn message(&self) -> String {
        if self.nodes.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        match &self.whole_pod {
            Some(reason) => format!("0/{} nodes are available: {reason}.", self.nodes.len()),
            None => nodes_available(self.nodes.len(), &self.counts()),
        }
    }

    /// The whole message, as it stands in the Pod's condition.
    pub fn message_with(&self, preemption: &Preemption) -> String {
        match preemption.message() {
            Some(more) => format!("{} {more}", self.message()),
            None => self.message(),
        }
    }
}

pub(crate) fn counts(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_insert(0) += 1;
    }
    counts
}

/// The parts are sorted as texts, so "10 …" comes before "2 …".
pub fn nodes_available(total: usize, counts: &BTreeMap<String, usize>) -> String {
    let mut parts: Vec<String> =
        counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    let parts = parts.join(", ");
    let end = if parts.is_empty() { String::new() } else { format!(" {parts}.") };
    format!("0/{total} nodes are available:{end}")
}
