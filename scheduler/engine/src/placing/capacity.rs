//! The free capacity of a Node: what a class of Pods lacks there, and which victims would provide it.

use std::sync::{Arc, LazyLock};

use model::ClusterPod;
use rules::{PreemptionDryRun, Reason, Victims, victims_by};

use super::node_fit::NodeFit;
use super::plugins::node_resources_fit::Missing;
use super::pod_classes::PodClass;
use super::rows::{Extras, Row, Slot, add_requests, is_extreme};
use super::score_cache::Context;

impl PodClass {
    /// Why the Node cannot take it; nothing when it can.
    pub fn reasons(&self, slot: Slot, context: Context<'_>, reasons: &mut Vec<Reason>) {
        let Context { view, index, groups } = context;
        if let Some(rejection) = groups.rejection(slot).filter(|it| !it.is_empty()) {
            reasons.extend_from_slice(rejection);
            return;
        }
        let Some(capacity) = self.capacity_of(slot, context) else {
            let node = index.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
            if let Some(node) = node {
                reasons.extend(rules::filter(view.rules, view.cluster, &self.pod, node));
            }
            return;
        };
        if self.node_fit.has_conflict(index.rows.extras(slot)) {
            reasons.push(Reason::HOST_PORTS);
            return;
        }
        let fit = &self.node_fit;
        match &capacity {
            NodeCapacity::Current(row, extras) => missing(fit, row, extras, reasons),
            NodeCapacity::WithNominated(it) => missing(fit, &it.row, &it.extras, reasons),
        }
        if reasons.is_empty() {
            self.reasons_of_volumes(slot, context, reasons);
        }
        if reasons.is_empty() {
            reasons.extend(self.constraints.reason(slot, index));
        }
        if reasons.is_empty() {
            self.reasons_of_devices(slot, context, reasons);
        }
        let lacks_features = groups.group(slot).is_some_and(|it| groups.all()[it].lacks_features);
        if reasons.is_empty() && lacks_features {
            reasons.push(Reason::DECLARED_FEATURES);
        }
    }

    /// Whether it fits beside the Pods that are nominated for the Node.
    pub fn fits_beside_nominated(&self, slot: Slot, context: Context<'_>) -> bool {
        match self.capacity_of(slot, context) {
            Some(NodeCapacity::Current(row, extras)) => self.node_fit.fits(row, extras),
            Some(NodeCapacity::WithNominated(capacity)) => capacity.fits(),
            None => {
                let Context { view, index, .. } = context;
                let node = index.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
                node.is_some_and(|node| {
                    rules::filter(view.rules, view.cluster, &self.pod, node).is_empty()
                })
            }
        }
    }

    /// The capacity of the Node, less what Pods take that are nominated for it and have at least the same priority: they
    /// count as if they were there. `None`: they affect more than capacity, and only the plain rules can tell.
    fn capacity_of<'a>(&'a self, slot: Slot, context: Context<'a>) -> Option<NodeCapacity<'a>> {
        let Context { view, index, .. } = context;
        let (row, extras) = (index.rows.row(slot), index.rows.extras(slot));
        if row.nominated == 0 {
            return Some(NodeCapacity::Current(row, extras));
        }
        let nominated = view.cluster.nominated(index.rows.name(slot)?);
        let mut nominated = nominated.filter(|it| it.priority >= self.pod.priority).peekable();
        if nominated.peek().is_none() {
            return Some(NodeCapacity::Current(row, extras));
        }
        if !self.constraints.are_soft()
            || !self.node_fit.ports.is_empty()
            || index.rows.is_extreme(slot)
        {
            return None;
        }
        let mut capacity =
            CapacityTrial { node_fit: &self.node_fit, row: row.clone(), extras: extras.clone() };
        for pod in nominated {
            if is_extreme(pod) || !pod.pod_affinity.anti_required.is_empty() {
                return None;
            }
            add_requests(&mut capacity.row, &mut capacity.extras, pod, 1);
        }
        Some(NodeCapacity::WithNominated(capacity))
    }

    /// The victims, when capacity is all that the Node lacks. `None`: other rules matter, too.
    pub fn victims_by_capacity<'a>(
        &self,
        slot: Slot,
        context: Context<'a>,
    ) -> Option<Result<Victims<'a>, rules::PreemptionRefusal>> {
        let Context { view, index, groups } = context;
        let lacks_features = groups.group(slot).is_none_or(|it| groups.all()[it].lacks_features);
        if !self.constraints.are_soft()
            || !self.node_fit.ports.is_empty()
            || lacks_features
            || index.rows.is_extreme(slot)
            || !self.takes_volumes(slot, context)
            || !self.takes_devices(slot, context, None)
        {
            return None;
        }
        let node = match self.capacity_of(slot, context)? {
            NodeCapacity::Current(row, extras) => {
                CapacityTrial { node_fit: &self.node_fit, row: row.clone(), extras: extras.clone() }
            }
            NodeCapacity::WithNominated(capacity) => capacity,
        };
        let pods = view.cluster.pods_on(index.rows.name(slot)?);
        let lesser = pods.filter(|other| other.priority < self.pod.priority);
        Some(victims_by(node, lesser, &view.cluster.objects.budgets))
    }
}

/// The capacity of a Node and what is taken of it.
enum NodeCapacity<'a> {
    Current(&'a Row, &'a Extras),
    WithNominated(CapacityTrial<'a>),
}

/// The names of what a [`Row`] holds: every Node that lacks something names it.
static STANDARD: LazyLock<[Arc<str>; 3]> =
    LazyLock::new(|| ["cpu", "memory", "ephemeral-storage"].map(Arc::from));

fn missing(node_fit: &NodeFit, row: &Row, extras: &Extras, reasons: &mut Vec<Reason>) {
    node_fit.missing(row, extras, |missing| {
        reasons.push(match missing {
            Missing::Places => Reason::TOO_MANY_PODS,
            Missing::Standard { index, exceeds_node } => {
                Reason::Insufficient { resource: STANDARD[index].clone(), exceeds_node }
            }
            Missing::Scalar { name, exceeds_node } => {
                Reason::Insufficient { resource: name.clone(), exceeds_node }
            }
        });
    });
}

/// A dry run of preemption on a Node where only capacity matters.
struct CapacityTrial<'a> {
    node_fit: &'a NodeFit,
    row: Row,
    extras: Extras,
}

impl<'a> PreemptionDryRun<'a> for CapacityTrial<'_> {
    fn take_away(&mut self, pod: &'a ClusterPod) {
        add_requests(&mut self.row, &mut self.extras, pod, -1);
    }

    fn put_back(&mut self, pod: &'a ClusterPod) {
        add_requests(&mut self.row, &mut self.extras, pod, 1);
    }

    fn rejections(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        missing(self.node_fit, &self.row, &self.extras, &mut reasons);
        reasons
    }

    fn fits(&self) -> bool {
        let mut fits = true;
        self.node_fit.missing(&self.row, &self.extras, |_| fits = false);
        fits
    }
}
