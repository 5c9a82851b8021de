//! Nodes on which nothing more is put for now: a Pod there cannot be read and what it uses is not known, or their
//! kubelet has just rejected what we put there, so that it knows more than we do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{ClusterNode, Instant, NodeName, PodUid};

/// After a first rejection: as long as it takes what the kubelet knows to reach us.
const REJECTING_FIRST: Duration = Duration::from_secs(10);
/// Doubled by each further one, up to this: somebody has mended the Node, or will be called by the metric.
const REJECTING_MAX: Duration = Duration::from_mins(5);
/// A Node that took Pods for so long since it was opened begins anew.
const REJECTION_FORGOTTEN: Duration = Duration::from_mins(10);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClosedNodes {
    /// Pods that cannot be read.
    because_of: BTreeMap<PodUid, NodeName>,
    /// Nodes whose kubelets reject. They are forgotten with the Node.
    rejecting: BTreeMap<NodeName, Rejecting>,
    /// The closed ones as they are in truth.
    open: BTreeMap<NodeName, ClusterNode>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rejecting {
    times: u32,
    why: Arc<str>,
    /// Closed until then.
    until: Instant,
    is_closed: bool,
}

impl ClosedNodes {
    /// Beside what it was closed for before. Call [`Self::shown`] for the Node, if it is known.
    pub fn close(&mut self, pod: PodUid, node: NodeName) {
        self.because_of.insert(pod, node);
    }

    /// The Pod can be read, or is gone. The Node as it is in truth, if nothing else keeps it closed.
    pub fn reopen(&mut self, pod: &PodUid) -> Option<ClusterNode> {
        let node = self.because_of.remove(pod)?;
        self.opened(&node)
    }

    /// The kubelet has rejected a Pod. While the Node is closed for that, further ones say nothing new: they were on
    /// their way. Call [`Self::shown`] for the Node.
    pub fn rejected(&mut self, now: Instant, node: NodeName, why: Arc<str>) {
        let new = Rejecting { times: 0, why: why.clone(), until: now, is_closed: false };
        let rejecting = self.rejecting.entry(node).or_insert(new);
        if rejecting.is_closed {
            return;
        }
        if now.saturating_since(rejecting.until) >= REJECTION_FORGOTTEN {
            rejecting.times = 0;
        }
        let doublings = rejecting.times.min(31);
        let closed_for = REJECTING_FIRST.saturating_mul(1 << doublings).min(REJECTING_MAX);
        *rejecting = Rejecting {
            times: rejecting.times.saturating_add(1),
            why,
            until: now + closed_for,
            is_closed: true,
        };
    }

    /// Opens the Nodes whose time is over. As they are in truth, without those that something else keeps closed.
    pub fn open_due(&mut self, now: Instant) -> Vec<ClusterNode> {
        let due = |it: &Rejecting| it.is_closed && it.until <= now;
        let mut over = Vec::new();
        for (name, rejecting) in self.rejecting.iter_mut().filter(|(_, it)| due(it)) {
            rejecting.is_closed = false;
            over.push(name.clone());
        }
        over.iter().filter_map(|name| self.opened(name)).collect()
    }

    /// When the next Node is opened by time alone.
    pub fn next_due(&self) -> Option<Instant> {
        self.rejecting.values().filter(|it| it.is_closed).map(|it| it.until).min()
    }

    fn opened(&mut self, node: &NodeName) -> Option<ClusterNode> {
        if self.is_closed(node) { None } else { self.open.remove(node) }
    }

    fn is_closed(&self, node: &NodeName) -> bool {
        self.rejecting.get(node).is_some_and(|it| it.is_closed)
            || self.because_of.values().any(|closed| closed == node)
    }

    pub fn is_shown_closed(&self, node: &NodeName) -> bool {
        self.open.contains_key(node)
    }

    /// The Node as the rules see it. Every Pod takes a place: without one there is no way around it,
    /// as there would be for a taint.
    pub fn shown(&mut self, mut node: ClusterNode) -> ClusterNode {
        let is_any_closed = !self.because_of.is_empty() || !self.rejecting.is_empty();
        if is_any_closed && self.is_closed(&node.node.name) {
            self.open.insert(node.node.name.clone(), node.clone());
            node.node.pods_max = 0;
        }
        node
    }

    pub fn node_gone(&mut self, node: &NodeName) {
        self.open.remove(node);
        self.rejecting.remove(node);
    }

    /// What people are told beside what the rules say: to these a closed Node is a full one.
    pub fn told(&self) -> Option<String> {
        let rejecting = self.rejecting.iter().filter(|(_, it)| it.is_closed);
        let rejecting: Vec<_> = rejecting.map(|(node, it)| (node, &it.why)).collect();
        let unreadable = self.open.len().saturating_sub(rejecting.len());
        let mut sentences = Vec::new();
        if let [(node, why), others @ ..] = rejecting.as_slice() {
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
        let (mut closed, mut now) = (ClosedNodes::default(), Instant::START);
        let mut seconds = Vec::new();
        for _ in 0..7 {
            closed.rejected(now, "n".into(), "OutOfcpu".into());
            let until = closed.next_due().unwrap();
            closed.rejected(now + REJECTING_FIRST / 2, "n".into(), "OutOfcpu".into());
            assert_eq!(closed.next_due(), Some(until), "it was on its way");
            seconds.push(until.saturating_since(now).as_secs());
            now = until;
            closed.open_due(now);
            assert_eq!(closed.next_due(), None);
        }
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300]);
        now = now + REJECTION_FORGOTTEN;
        closed.rejected(now, "n".into(), "OutOfcpu".into());
        assert_eq!(closed.next_due(), Some(now + REJECTING_FIRST));
        closed.node_gone(&"n".into());
        assert_eq!(closed.next_due(), None);
    }
}
