//! Makers of test objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    ClusterNode, ClusterPod, Effect, HostPort, LabelSelector, Labels, Node, NodeImage,
    NodeSelectorTerm, ObjectKey, PodAffinityTerm, PodDisruptionBudget, PodRequests, PodUid,
    PreferredNodeTerm, RawRequirement, Resources, Taint, Toleration, TolerationOperator,
    TopologySpreadConstraint, WeightedPodAffinityTerm, WhenUnsatisfiable, listed_image_name,
};

use crate::{Cluster, Decision, Placement, Reason, Rejection, Rules, decide, filter};

/// `key=value` pairs, separated by commas.
pub(crate) fn labels(text: &str) -> Labels {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into())).collect()
}

pub(crate) fn selector(text: &str) -> LabelSelector {
    LabelSelector::of_labels(&labels(text))
}

pub(crate) fn raw(key: &str, operator: &str, values: &[&str]) -> RawRequirement {
    RawRequirement::new(key, operator, values)
}

pub(crate) fn invalid() -> LabelSelector {
    LabelSelector::parse(&Labels::new(), &[raw("a", "In", &[])])
}

/// A Node with 4 CPUs, 16 GiB, room for 110 Pods and its own hostname.
pub(crate) fn node(name: &str) -> NodeBuilder {
    let allocatable = Resources { cpu_milli: 4000, memory_bytes: 16 << 30, ..Default::default() };
    NodeBuilder(ClusterNode::new(Node {
        name: name.into(),
        labels: labels(&format!("kubernetes.io/hostname={name}")),
        taints: Vec::new(),
        unschedulable: false,
        allocatable,
        pods_max: 110,
    }))
}

pub(crate) struct NodeBuilder(ClusterNode);

impl NodeBuilder {
    pub fn labels(mut self, text: &str) -> Self {
        self.0.node.labels.extend(labels(text));
        self
    }

    pub fn unlabelled(mut self) -> Self {
        self.0.node.labels.clear();
        self
    }

    pub fn cpu(mut self, milli: i64) -> Self {
        self.0.node.allocatable.cpu_milli = milli;
        self
    }

    pub fn memory(mut self, bytes: i64) -> Self {
        self.0.node.allocatable.memory_bytes = bytes;
        self
    }

    pub fn scalar(mut self, name: &str, amount: i64) -> Self {
        self.0.node.allocatable.scalar.insert(name.into(), amount);
        self
    }

    pub fn pods_max(mut self, pods_max: i64) -> Self {
        self.0.node.pods_max = pods_max;
        self
    }

    pub fn cordoned(mut self) -> Self {
        self.0.node.unschedulable = true;
        self
    }

    pub fn taint(mut self, key: &str, effect: Effect) -> Self {
        self.0.node.taints.push(Taint { key: key.into(), value: "".into(), effect });
        self
    }

    pub fn image(mut self, name: &str, size_bytes: i64) -> Self {
        let image = NodeImage { names: vec![name.into()], size_bytes }.into();
        self.0.images = self.0.images.iter().cloned().chain([image]).collect();
        self
    }

    pub fn build(self) -> ClusterNode {
        self.0
    }
}

/// A waiting Pod of namespace `team-a` that asks for nothing. `team-b/name` is of another.
pub(crate) fn pod(name: &str) -> PodBuilder {
    let (namespace, name) = name.split_once('/').unwrap_or(("team-a", name));
    let uid = PodUid::new(&format!("{namespace}/{name}"));
    PodBuilder(ClusterPod::new(ObjectKey::new(namespace, name), uid))
}

pub(crate) struct PodBuilder(ClusterPod);

impl PodBuilder {
    pub fn on(mut self, node: &str) -> Self {
        self.0.node = Some(node.into());
        self
    }

    pub fn nominated(mut self, node: &str) -> Self {
        self.0.nominated_node = Some(node.into());
        self
    }

    pub fn labels(mut self, text: &str) -> Self {
        self.0.labels = labels(text);
        self
    }

    pub fn priority(mut self, priority: i32) -> Self {
        self.0.priority = priority;
        self
    }

    pub fn started(mut self, unix_s: i64) -> Self {
        self.0.started_at_unix_s = Some(unix_s);
        self
    }

    /// The same amounts everywhere.
    pub fn asks(mut self, cpu_milli: i64, memory_bytes: i64) -> Self {
        let asked = Resources { cpu_milli, memory_bytes, ..Resources::default() };
        self.0.requests = PodRequests {
            asked: asked.clone(),
            effective: asked.clone(),
            effective_in_scores: asked.clone(),
            asked_in_scores: asked,
        };
        self
    }

    pub fn asks_scalar(mut self, name: &str, amount: i64) -> Self {
        let PodRequests { asked, effective, effective_in_scores, asked_in_scores } =
            &mut self.0.requests;
        for resources in [asked, effective, effective_in_scores, asked_in_scores] {
            resources.scalar.insert(name.into(), amount);
        }
        self
    }

    pub fn port(mut self, ip: &str, port: i32) -> Self {
        self.0.host_ports.extend(HostPort::new(ip, "TCP", port));
        self
    }

    pub fn tolerates(mut self, key: &str, effect: Option<Effect>) -> Self {
        let operator = TolerationOperator::Exists;
        self.0.tolerations.push(Toleration { key: key.into(), operator, value: "".into(), effect });
        self
    }

    pub fn image(mut self, name: &str) -> Self {
        self.0.images.push(listed_image_name(name));
        self
    }

    pub fn near(mut self, term: PodAffinityTerm) -> Self {
        self.0.pod_affinity.required.push(term);
        self
    }

    pub fn away_from(mut self, term: PodAffinityTerm) -> Self {
        self.0.pod_affinity.anti_required.push(term);
        self
    }

    pub fn likes(mut self, weight: i32, term: PodAffinityTerm) -> Self {
        self.0.pod_affinity.preferred.push(WeightedPodAffinityTerm { weight, term });
        self
    }

    pub fn dislikes(mut self, weight: i32, term: PodAffinityTerm) -> Self {
        self.0.pod_affinity.anti_preferred.push(WeightedPodAffinityTerm { weight, term });
        self
    }

    pub fn prefers_node(mut self, weight: i32, expressions: &[RawRequirement]) -> Self {
        let term = NodeSelectorTerm::parse(expressions, &[]);
        self.0.node_affinity.preferred.push(PreferredNodeTerm { weight, term });
        self
    }

    pub fn spread(mut self, constraint: TopologySpreadConstraint) -> Self {
        self.0.topology_spread.push(constraint);
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut ClusterPod)) -> Self {
        change(&mut self.0);
        self
    }

    pub fn build(self) -> ClusterPod {
        self.0
    }
}

/// A term of a Pod in `team-a` that means Pods of its own namespace.
pub(crate) fn term(topology_key: &str, pods: &str) -> PodAffinityTerm {
    let own: Arc<str> = "team-a".into();
    PodAffinityTerm::new(&own, topology_key, selector(pods), BTreeSet::new(), None)
}

pub(crate) fn hard(topology_key: &str, max_skew: i32, pods: &str) -> TopologySpreadConstraint {
    let kind = WhenUnsatisfiable::DoNotSchedule;
    TopologySpreadConstraint::new(topology_key, max_skew, kind, selector(pods))
}

pub(crate) fn soft(topology_key: &str, max_skew: i32, pods: &str) -> TopologySpreadConstraint {
    let kind = WhenUnsatisfiable::ScheduleAnyway;
    TopologySpreadConstraint::new(topology_key, max_skew, kind, selector(pods))
}

pub(crate) fn cluster<const N: usize, const P: usize>(
    nodes: [NodeBuilder; N],
    pods: [PodBuilder; P],
) -> Cluster {
    let nodes = nodes.map(NodeBuilder::build);
    let mut cluster = Cluster::new(nodes, pods.map(PodBuilder::build));
    cluster.objects.namespaces.insert("team-a".into(), labels("team=a"));
    cluster.objects.namespaces.insert("team-b".into(), labels("team=b"));
    cluster
}

pub(crate) fn insert_budget(cluster: &mut Cluster, budget: PodDisruptionBudget) {
    cluster.objects.budgets.insert(budget.key.clone(), budget);
}

/// The reasons on one Node of the cluster, by the default rules.
pub(crate) fn reasons(cluster: &Cluster, pod: &ClusterPod, node: &str) -> Vec<Reason> {
    filter(&Rules::default(), cluster, pod, &cluster.nodes[&node.into()])
}

pub(crate) fn fits(cluster: &Cluster, pod: &ClusterPod, node: &str) -> bool {
    reasons(cluster, pod, node).is_empty()
}

pub(crate) fn placed(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Placement {
    match decide(rules, cluster, pod) {
        Decision::Placed(placement) => placement,
        other => panic!("not placed: {other:?}"),
    }
}

pub(crate) fn rejected(cluster: &Cluster, pod: &ClusterPod) -> Rejection {
    match decide(&Rules::default(), cluster, pod) {
        Decision::Rejected(rejection) => rejection,
        other => panic!("not rejected: {other:?}"),
    }
}
