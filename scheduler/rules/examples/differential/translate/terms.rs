//! Selectors, terms of affinity, spread constraints.

use std::sync::Arc;

use model::{
    LabelSelector, NodeAffinity, NodeInclusionPolicy, NodeSelector, NodeSelectorTerm, PodAffinity,
    PodAffinityTerm, PreferredNodeTerm, RawRequirement, TopologySpreadConstraint,
    WeightedPodAffinityTerm, WhenUnsatisfiable,
};
use serde_json::Value;

use super::fields::{items, labels, small_int, text, texts};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn requirements(expressions: &Value) -> Vec<RawRequirement> {
    let requirement = |expression: &Value| RawRequirement {
        key: text(&expression["key"]).into(),
        operator: text(&expression["operator"]).into(),
        values: items(&expression["values"]).iter().map(|value| text(value).to_owned()).collect(),
    };
    items(expressions).iter().map(requirement).collect()
}

pub fn label_selector(selector: &Value) -> LabelSelector {
    if selector.is_null() {
        return LabelSelector::Nothing;
    }
    let expressions = requirements(&selector["matchExpressions"]);
    LabelSelector::parse(&labels(&selector["matchLabels"]), &expressions)
}

fn node_term(term: &Value) -> NodeSelectorTerm {
    let expressions = requirements(&term["matchExpressions"]);
    NodeSelectorTerm::parse(&expressions, &requirements(&term["matchFields"]))
}

pub fn node_affinity(affinity: &Value) -> NodeAffinity {
    let required = &affinity[REQUIRED];
    let preferred = |preferred: &Value| PreferredNodeTerm {
        weight: small_int(&preferred["weight"]),
        term: node_term(&preferred["preference"]),
    };
    NodeAffinity {
        required: (!required.is_null()).then(|| NodeSelector {
            terms: items(&required["nodeSelectorTerms"]).iter().map(node_term).collect(),
        }),
        preferred: items(&affinity[PREFERRED]).iter().map(preferred).collect(),
    }
}

fn pod_term(namespace: &Arc<str>, term: &Value) -> PodAffinityTerm {
    let namespaces = &term["namespaceSelector"];
    PodAffinityTerm::new(
        namespace,
        text(&term["topologyKey"]),
        label_selector(&term["labelSelector"]),
        texts(&term["namespaces"]).collect(),
        (!namespaces.is_null()).then(|| label_selector(namespaces)),
    )
}

/// The terms of a Pod of this Namespace about other Pods.
pub fn pod_affinity(namespace: &Arc<str>, affinity: &Value) -> PodAffinity {
    let required = |kind: &str| {
        let terms = items(&affinity[kind][REQUIRED]).iter();
        terms.map(|term| pod_term(namespace, term)).collect()
    };
    let weighted = |term: &Value| WeightedPodAffinityTerm {
        weight: small_int(&term["weight"]),
        term: pod_term(namespace, &term["podAffinityTerm"]),
    };
    let preferred = |kind: &str| items(&affinity[kind][PREFERRED]).iter().map(weighted).collect();
    PodAffinity {
        required: required("podAffinity"),
        preferred: preferred("podAffinity"),
        anti_required: required("podAntiAffinity"),
        anti_preferred: preferred("podAntiAffinity"),
    }
}

pub fn spread_constraint(constraint: &Value) -> TopologySpreadConstraint {
    let when_unsatisfiable = match text(&constraint["whenUnsatisfiable"]) {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        other => unreachable!("no case has {other:?} here"),
    };
    let mut translated = TopologySpreadConstraint::new(
        text(&constraint["topologyKey"]),
        small_int(&constraint["maxSkew"]),
        when_unsatisfiable,
        label_selector(&constraint["labelSelector"]),
    );
    let policy = |field: &str, default| match text(&constraint[field]) {
        "" => default,
        "Honor" => NodeInclusionPolicy::Honor,
        "Ignore" => NodeInclusionPolicy::Ignore,
        other => unreachable!("no case has {other:?} here"),
    };
    translated.node_affinity_policy = policy("nodeAffinityPolicy", NodeInclusionPolicy::Honor);
    translated.node_taints_policy = policy("nodeTaintsPolicy", NodeInclusionPolicy::Ignore);
    let min_domains = &constraint["minDomains"];
    translated.min_domains = (!min_domains.is_null()).then(|| small_int(min_domains));
    translated.match_label_keys = texts(&constraint["matchLabelKeys"]).collect();
    translated
}
