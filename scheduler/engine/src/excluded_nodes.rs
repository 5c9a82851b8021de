//! Nodes that are excluded from placement for now: a Pod there cannot be read, so that what it uses is unknown, or the
//! kubelet has just rejected a Pod that was bound there, for a reason that is not known here yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{ClusterNode, Instant, NodeName, PodUid};

/// After a first rejection: as long as it takes what the kubelet knows to reach us.
const BACKOFF_FIRST: Duration = Duration::from_secs(10);
/// Doubled by each further one, up to this: by then the Node is repaired, or the metric has raised an alert.
const BACKOFF_MAX: Duration = Duration::from_mins(5);
/// A Node without a rejection for this long since it was readmitted begins anew.
const BACKOFF_RESET: Duration = Duration::from_mins(10);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ExcludedNodes {
    /// Pods that cannot be read.
    unreadable_pods: BTreeMap<PodUid, NodeName>,
    /// Nodes whose kubelets have rejected Pods. They are forgotten with the Node.
    backoffs: BTreeMap<NodeName, NodeBackoff>,
    /// The excluded ones as they really are.
    actual: BTreeMap<NodeName, ClusterNode>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct NodeBackoff {
    times: u32,
    why: Arc<str>,
    /// Excluded until then.
    until: Instant,
    is_excluded: bool,
}

impl ExcludedNodes {
    /// Beside what it was excluded for before. Call [`Self::shown`] for the Node, if it is known.
    pub fn exclude(&mut self, pod: PodUid, node: NodeName) {
        self.unreadable_pods.insert(pod, node);
    }

    /// The Pod can be read, or is gone. The Node as it really is, if nothing else excludes it.
    pub fn readmit(&mut self, pod: &PodUid) -> Option<ClusterNode> {
        let node = self.unreadable_pods.remove(pod)?;
        self.readmitted(&node)
    }

    /// The kubelet has rejected a Pod. While the Node is excluded for that, further rejections are ignored:
    /// their Bindings were in flight. Call [`Self::shown`] for the Node.
    pub fn rejected(&mut self, now: Instant, node: NodeName, why: Arc<str>) {
        let new = NodeBackoff { times: 0, why: why.clone(), until: now, is_excluded: false };
        let backoff = self.backoffs.entry(node).or_insert(new);
        if backoff.is_excluded {
            return;
        }
        if now.saturating_since(backoff.until) >= BACKOFF_RESET {
            backoff.times = 0;
        }
        let doublings = backoff.times.min(31);
        let excluded_for = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX);
        *backoff = NodeBackoff {
            times: backoff.times.saturating_add(1),
            why,
            until: now + excluded_for,
            is_excluded: true,
        };
    }

    /// Readmits the Nodes whose time is over; returns them as they really are, without those that something else excludes.
    pub fn readmit_due(&mut self, now: Instant) -> Vec<ClusterNode> {
        let due = |it: &NodeBackoff| it.is_excluded && it.until <= now;
        let mut over = Vec::new();
        for (name, backoff) in self.backoffs.iter_mut().filter(|(_, it)| due(it)) {
            backoff.is_excluded = false;
            over.push(name.clone());
        }
        over.iter().filter_map(|name| self.readmitted(name)).collect()
    }

    /// When the next Node is readmitted by time alone.
    pub fn next_due(&self) -> Option<Instant> {
        self.backoffs.values().filter(|it| it.is_excluded).map(|it| it.until).min()
    }

    fn readmitted(&mut self, node: &NodeName) -> Option<ClusterNode> {
        if self.is_excluded(node) { None } else { self.actual.remove(node) }
    }

    fn is_excluded(&self, node: &NodeName) -> bool {
        self.backoffs.get(node).is_some_and(|it| it.is_excluded)
            || self.unreadable_pods.values().any(|closed| closed == node)
    }

    pub fn is_shown_excluded(&self, node: &NodeName) -> bool {
        self.actual.contains_key(node)
    }

    /// The Node as the rules see it. Every Pod takes a place: without one there is no way around it,
    /// as there would be for a taint.
    pub fn shown(&mut self, mut node: ClusterNode) -> ClusterNode {
        let is_any_excluded = !self.unreadable_pods.is_empty() || !self.backoffs.is_empty();
        if is_any_excluded && self.is_excluded(&node.node.name) {
            self.actual.insert(node.node.name.clone(), node.clone());
            node.node.pods_max = 0;
        }
        node
    }

    pub fn node_gone(&mut self, node: &NodeName) {
        self.actual.remove(node);
        self.backoffs.remove(node);
    }

    /// Added to the message of the rules, to which an excluded Node looks full.
    pub fn message(&self) -> Option<String> {
        let backoffs = self.backoffs.iter().filter(|(_, it)| it.is_excluded);
        let backoffs: Vec<_> = backoffs.map(|(node, it)| (node, &it.why)).collect();
        let unreadable = self.actual.len().saturating_sub(backoffs.len());
        let mut sentences = Vec::new();
        if let [(node, why), others @ ..] = backoffs.as_slice() {
            let others = match others.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            let first = format!("{node}{others}: the kubelet has rejected a Pod ({why})");
            sentences.push(format!("Closed for a short while: {first}."));
        }
        if unreadable > 0 {
            sentences.push(format!("Closed: {unreadable} with a Pod that cannot be read."));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_closed_longer_each_time_and_begins_anew_after_a_while() {
        let (mut excluded, mut now) = (ExcludedNodes::default(), Instant::START);
        let mut seconds = Vec::new();
        for _ in 0..7 {
            excluded.rejected(now, "n".into(), "OutOfcpu".into());
            let until = excluded.next_due().unwrap();
            excluded.rejected(now + BACKOFF_FIRST / 2, "n".into(), "OutOfcpu".into());
            assert_eq!(excluded.next_due(), Some(until), "it was on its way");
            seconds.push(until.saturating_since(now).as_secs());
            now = until;
            excluded.readmit_due(now);
            assert_eq!(excluded.next_due(), None);
        }
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300]);
        now = now + BACKOFF_RESET;
        excluded.rejected(now, "n".into(), "OutOfcpu".into());
        assert_eq!(excluded.next_due(), Some(now + BACKOFF_FIRST));
        excluded.node_gone(&"n".into());
        assert_eq!(excluded.next_due(), None);
    }
}
