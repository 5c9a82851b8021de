use prost::Message;

use super::{Pair, all, texts};
use crate::wire::affinity::{WireNodeSelector, WirePreferredNodeTerm, WireWeightedPodTerm};
use crate::wire::{
    WireAffinity, WireNodeAffinity, WireNodeSelectorTerm, WirePodAffinity, WirePodTerm,
    WireRequirement, WireSelector, WireSpreadConstraint,
};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Affinity {
    #[prost(message, required, tag = "1")]
    node: NodeAffinity,
    #[prost(message, required, tag = "2")]
    pod: PodAffinity,
    #[prost(message, required, tag = "3")]
    pod_anti: PodAffinity,
}

impl From<Affinity> for WireAffinity {
    fn from(affinity: Affinity) -> Self {
        Self {
            node: affinity.node.into(),
            pod: affinity.pod.into(),
            pod_anti: affinity.pod_anti.into(),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct NodeAffinity {
    #[prost(message, optional, tag = "1")]
    required: Option<NodeSelector>,
    #[prost(message, repeated, tag = "2")]
    preferred: Vec<PreferredSchedulingTerm>,
}

impl From<NodeAffinity> for WireNodeAffinity {
    fn from(affinity: NodeAffinity) -> Self {
        Self {
            required: affinity.required.map(WireNodeSelector::from),
            preferred: all(affinity.preferred),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct NodeSelector {
    #[prost(message, repeated, tag = "1")]
    terms: Vec<NodeSelectorTerm>,
}

impl From<NodeSelector> for WireNodeSelector {
    fn from(selector: NodeSelector) -> Self {
        Self { node_selector_terms: all(selector.terms) }
    }
}

#[derive(Clone, PartialEq, Message)]
struct NodeSelectorTerm {
    #[prost(message, repeated, tag = "1")]
    match_expressions: Vec<Requirement>,
    #[prost(message, repeated, tag = "2")]
    match_fields: Vec<Requirement>,
}

impl From<NodeSelectorTerm> for WireNodeSelectorTerm {
    fn from(term: NodeSelectorTerm) -> Self {
        Self {
            match_expressions: all(term.match_expressions),
            match_fields: all(term.match_fields),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PreferredSchedulingTerm {
    #[prost(int32, tag = "1")]
    weight: i32,
    #[prost(message, required, tag = "2")]
    preference: NodeSelectorTerm,
}

impl From<PreferredSchedulingTerm> for WirePreferredNodeTerm {
    fn from(term: PreferredSchedulingTerm) -> Self {
        Self { weight: term.weight, preference: term.preference.into() }
    }
}

/// `PodAffinity` or `PodAntiAffinity`: they have the same form.
#[derive(Clone, PartialEq, Message)]
struct PodAffinity {
    #[prost(message, repeated, tag = "1")]
    required: Vec<PodAffinityTerm>,
    #[prost(message, repeated, tag = "2")]
    preferred: Vec<WeightedPodAffinityTerm>,
}

impl From<PodAffinity> for WirePodAffinity {
    fn from(affinity: PodAffinity) -> Self {
        Self { required: all(affinity.required), preferred: all(affinity.preferred) }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PodAffinityTerm {
    #[prost(message, optional, tag = "1")]
    label_selector: Option<LabelSelector>,
    #[prost(string, repeated, tag = "2")]
    namespaces: Vec<String>,
    #[prost(string, tag = "3")]
    topology_key: String,
    #[prost(message, optional, tag = "4")]
    namespace_selector: Option<LabelSelector>,
}

impl From<PodAffinityTerm> for WirePodTerm {
    fn from(term: PodAffinityTerm) -> Self {
        Self {
            topology_key: term.topology_key,
            label_selector: term.label_selector.map(WireSelector::from),
            namespaces: term.namespaces,
            namespace_selector: term.namespace_selector.map(WireSelector::from),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct WeightedPodAffinityTerm {
    #[prost(int32, tag = "1")]
    weight: i32,
    #[prost(message, required, tag = "2")]
    term: PodAffinityTerm,
}

impl From<WeightedPodAffinityTerm> for WireWeightedPodTerm {
    fn from(term: WeightedPodAffinityTerm) -> Self {
        Self { weight: term.weight, pod_affinity_term: term.term.into() }
    }
}

#[derive(Clone, PartialEq, Message)]
struct LabelSelector {
    #[prost(message, repeated, tag = "1")]
    match_labels: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    match_expressions: Vec<Requirement>,
}

impl From<LabelSelector> for WireSelector {
    fn from(selector: LabelSelector) -> Self {
        Self {
            match_labels: texts(selector.match_labels),
            match_expressions: all(selector.match_expressions),
        }
    }
}

/// `LabelSelectorRequirement` or `NodeSelectorRequirement`: they have the same form.
#[derive(Clone, PartialEq, Message)]
struct Requirement {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    operator: String,
    #[prost(string, repeated, tag = "3")]
    values: Vec<String>,
}

impl From<Requirement> for WireRequirement {
    fn from(requirement: Requirement) -> Self {
        Self { key: requirement.key, operator: requirement.operator, values: requirement.values }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TopologySpreadConstraint {
    #[prost(int32, tag = "1")]
    max_skew: i32,
    #[prost(string, tag = "2")]
    topology_key: String,
    #[prost(string, tag = "3")]
    when_unsatisfiable: String,
    #[prost(message, optional, tag = "4")]
    label_selector: Option<LabelSelector>,
    #[prost(int32, optional, tag = "5")]
    min_domains: Option<i32>,
    #[prost(string, optional, tag = "6")]
    node_affinity_policy: Option<String>,
    #[prost(string, optional, tag = "7")]
    node_taints_policy: Option<String>,
    #[prost(string, repeated, tag = "8")]
    match_label_keys: Vec<String>,
}

impl From<TopologySpreadConstraint> for WireSpreadConstraint {
    fn from(constraint: TopologySpreadConstraint) -> Self {
        Self {
            max_skew: constraint.max_skew,
            topology_key: constraint.topology_key,
            when_unsatisfiable: constraint.when_unsatisfiable,
            label_selector: constraint.label_selector.map(WireSelector::from),
            min_domains: constraint.min_domains,
            node_affinity_policy: constraint.node_affinity_policy,
            node_taints_policy: constraint.node_taints_policy,
            match_label_keys: constraint.match_label_keys,
        }
    }
}
