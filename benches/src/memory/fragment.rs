//! What of Nodes and Pods the workloads use. A field that is not here is refused, not overlooked: a bench
//! must not claim to have placed what it has not understood.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::devices::PodClaimFragment;
use super::volumes::fragment::PodVolumeFragment;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeFragment {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub metadata: Metadata,
    pub status: NodeStatus,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeStatus {
    pub allocatable: BTreeMap<String, String>,
    #[serde(rename = "capacity")]
    _capacity: IgnoredAny,
    #[serde(rename = "conditions")]
    _conditions: IgnoredAny,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PodFragment {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub metadata: Metadata,
    pub spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Spec {
    pub node_name: Option<String>,
    pub scheduler_name: String,
    pub priority: i32,
    /// The number says it, and there are no classes here.
    #[serde(rename = "priorityClassName")]
    _priority_class_name: Option<IgnoredAny>,
    #[serde(rename = "terminationGracePeriodSeconds")]
    _termination_grace_period_seconds: Option<IgnoredAny>,
    pub node_selector: BTreeMap<String, String>,
    pub affinity: Affinity,
    pub topology_spread_constraints: Vec<Spread>,
    pub scheduling_gates: Vec<Gate>,
    pub volumes: Vec<PodVolumeFragment>,
    pub resource_claims: Vec<PodClaimFragment>,
    pub containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    pub name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    #[serde(rename = "name")]
    _name: IgnoredAny,
    pub image: String,
    #[serde(default)]
    pub resources: ContainerResources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainerResources {
    pub requests: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Affinity {
    #[serde(rename = "nodeAffinity")]
    pub to_nodes: NodeAffinityFragment,
    #[serde(rename = "podAffinity")]
    pub to_pods: PodTerms,
    #[serde(rename = "podAntiAffinity")]
    pub away_from_pods: PodTerms,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeAffinityFragment {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeTerms>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeTerms {
    pub node_selector_terms: Vec<NodeTerm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NodeTerm {
    pub match_expressions: Vec<RequirementFragment>,
    pub match_fields: Vec<RequirementFragment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodTerms {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Vec<PodTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<WeightedTerm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WeightedTerm {
    pub weight: i32,
    pub pod_affinity_term: PodTerm,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PodTerm {
    pub topology_key: String,
    #[serde(default)]
    pub label_selector: Option<Selector>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Spread {
    pub max_skew: i32,
    pub topology_key: String,
    pub when_unsatisfiable: String,
    #[serde(default)]
    pub label_selector: Option<Selector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Selector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<RequirementFragment>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementFragment {
    pub key: String,
    pub operator: String,
    #[serde(default)]
    pub values: Vec<String>,
}
