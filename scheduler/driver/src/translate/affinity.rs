//! Affinity to Nodes and to other Pods.

use std::sync::Arc;

use model::{
    NodeAffinity, NodeSelector, NodeSelectorTerm, PodAffinity, PodAffinityTerm, PreferredNodeTerm,
    RawNodeTerm, WeightedPodAffinityTerm,
};

use super::selector::{label_selector, requirements};
use crate::wire::{
    WireAffinity, WireNodeAffinity, WireNodeSelector, WireNodeSelectorTerm, WirePodAffinity,
    WirePodTerm,
};

/// Of a Pod, or `addedAffinity` of a profile.
pub(crate) fn node_affinity(wire: &WireNodeAffinity) -> NodeAffinity {
    let required = wire.required.as_ref().map(|required| NodeSelector {
        terms: required.node_selector_terms.iter().map(node_term).collect(),
    });
    let preferred = wire.preferred.iter().map(|preferred| PreferredNodeTerm {
        weight: preferred.weight,
        term: node_term(&preferred.preference),
    });
    NodeAffinity { required, preferred: preferred.collect() }
}

/// Of a volume: the terms as they stand, because it may be a disk for which they are translated.
pub(crate) fn raw_node_terms(wire: &WireNodeSelector) -> Vec<RawNodeTerm> {
    let term = |wire: &WireNodeSelectorTerm| RawNodeTerm {
        expressions: requirements(&wire.match_expressions),
        fields: requirements(&wire.match_fields),
    };
    wire.node_selector_terms.iter().map(term).collect()
}

fn node_term(wire: &WireNodeSelectorTerm) -> NodeSelectorTerm {
    let fields = requirements(&wire.match_fields);
    NodeSelectorTerm::parse(&requirements(&wire.match_expressions), &fields)
}

/// The terms of a Pod of this namespace.
pub(super) fn pod_affinity(namespace: &Arc<str>, wire: &WireAffinity) -> PodAffinity {
    let (required, preferred) = terms(namespace, &wire.pod);
    let (anti_required, anti_preferred) = terms(namespace, &wire.pod_anti);
    PodAffinity { required, preferred, anti_required, anti_preferred }
}

fn terms(
    namespace: &Arc<str>,
    wire: &WirePodAffinity,
) -> (Vec<PodAffinityTerm>, Vec<WeightedPodAffinityTerm>) {
    let required = wire.required.iter().map(|term| pod_term(namespace, term));
    let preferred = wire.preferred.iter().map(|weighted| WeightedPodAffinityTerm {
        weight: weighted.weight,
        term: pod_term(namespace, &weighted.pod_affinity_term),
    });
    (required.collect(), preferred.collect())
}

fn pod_term(namespace: &Arc<str>, wire: &WirePodTerm) -> PodAffinityTerm {
    let namespaces = wire.namespaces.iter().map(|name| name.as_str().into());
    let namespace_selector = wire.namespace_selector.as_ref();
    PodAffinityTerm::new(
        namespace,
        &wire.topology_key,
        label_selector(wire.label_selector.as_ref()),
        namespaces.collect(),
        namespace_selector.map(|selector| label_selector(Some(selector))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{LabelSelector, Labels, NodeName};
    use serde_json::{Value, json};

    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

    fn of_nodes(json: Value) -> NodeAffinity {
        node_affinity(&serde_json::from_value(json).unwrap())
    }

    fn of_pods(json: Value) -> PodAffinity {
        pod_affinity(&"own".into(), &serde_json::from_value(json).unwrap())
    }

    /// Whether a Node `n1` with the label `a: 5` is meant by one required term.
    fn accepts(term: &Value) -> bool {
        let affinity = of_nodes(json!({REQUIRED: {"nodeSelectorTerms": [term]}}));
        let labels: Labels = [("a".into(), "5".into())].into();
        affinity.required.unwrap().matches(&NodeName::new("n1"), &labels)
    }

    #[test]
    fn every_operator_of_a_node_selector_is_read() {
        let cases = [
            ("In", json!(["5"]), true),
            ("NotIn", json!(["5"]), false),
            ("Exists", json!([]), true),
            ("DoesNotExist", json!([]), false),
            ("Gt", json!(["4"]), true),
            ("Lt", json!(["5"]), false),
            ("Near", json!(["5"]), false),
            ("Gt", json!(["much"]), false),
        ];
        for (operator, values, expected) in cases {
            let expression = json!({"key": "a", "operator": operator, "values": values});
            let term = json!({"matchExpressions": [expression]});
            assert_eq!(accepts(&term), expected, "{operator} {values}");
        }
        let name = |name| json!({"key": "metadata.name", "operator": "In", "values": [name]});
        assert!(accepts(&json!({"matchFields": [name("n1")]})));
        assert!(!accepts(&json!({"matchFields": [name("n2")]})));
        assert!(!accepts(&json!({})), "a term without requirements matches nothing");
    }

    #[test]
    fn an_absent_requirement_asks_for_nothing_and_an_empty_one_cannot_be_met() {
        assert_eq!(of_nodes(json!({})), NodeAffinity::default());
        for terms in [json!([]), Value::Null] {
            let required = of_nodes(json!({REQUIRED: {"nodeSelectorTerms": terms}})).required;
            assert!(!required.unwrap().matches(&NodeName::new("n1"), &Labels::new()));
        }
    }

    #[test]
    fn preferences_keep_their_weights() {
        let exists = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        let preferred = json!([{"weight": 7, "preference": exists}, {"weight": -1}]);
        let affinity = of_nodes(json!({PREFERRED: preferred}));
        let labels: Labels = [("a".into(), "".into())].into();
        assert_eq!(affinity.preference(&NodeName::new("n"), &labels), 7);
    }

    #[test]
    fn all_four_lists_of_pod_terms_are_read() {
        let term = |key: &str| json!({"topologyKey": key, "labelSelector": {}});
        let weighted = |key: &str| json!({"weight": 3, "podAffinityTerm": term(key)});
        let lists = |required: &str, preferred: &str| json!({REQUIRED: [term(required)], PREFERRED: [weighted(preferred)]});
        let affinity = of_pods(json!({
            "podAffinity": lists("a", "b"), "podAntiAffinity": lists("c", "d"),
        }));
        assert_eq!(&*affinity.required[0].topology_key, "a");
        assert_eq!(&*affinity.preferred[0].term.topology_key, "b");
        assert_eq!(&*affinity.anti_required[0].topology_key, "c");
        let last = &affinity.anti_preferred[0];
        assert_eq!((&*last.term.topology_key, last.weight), ("d", 3));
    }

    #[test]
    fn a_term_means_its_own_namespace_unless_it_says_otherwise() {
        let term = |json: Value| {
            let affinity = of_pods(json!({"podAffinity": {REQUIRED: [json]}}));
            let term = affinity.required.into_iter().next().unwrap();
            let names: Vec<String> = term.namespaces.iter().map(ToString::to_string).collect();
            (names.join(","), term.namespace_selector, term.selector)
        };
        let nothing = LabelSelector::Nothing;
        assert_eq!(term(json!({})), ("own".into(), nothing.clone(), nothing.clone()));
        let (names, selector, _) = term(json!({"namespaces": ["x", "y"]}));
        assert_eq!((names.as_str(), selector), ("x,y", nothing));
        let (names, everywhere, selector) =
            term(json!({"namespaceSelector": {}, "labelSelector": {}}));
        assert!(names.is_empty() && everywhere.is_everything() && selector.is_everything());
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]});
        assert!(term(json!({"namespaceSelector": bad})).1.error().is_some());
    }
}
