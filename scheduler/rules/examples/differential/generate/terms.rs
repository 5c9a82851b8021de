//! Selectors, terms of affinity, spread constraints.

use serde_json::{Value, json};

use super::{NODE_NAMES, node_name};
use crate::random::Random;

pub fn label_selector(random: &mut Random) -> Value {
    let expression = |key: &str, operator: &str| json!({"key": key, "operator": operator});
    match random.below(12) {
        0 => Value::Null,
        1 => json!({}),
        2 => {
            let not_db = json!({"key": "app", "operator": "NotIn", "values": ["db"]});
            json!({"matchExpressions": [not_db]})
        }
        3 => json!({"matchExpressions": [expression("rev", "Exists")]}),
        4 => json!({"matchExpressions": [expression("rev", "DoesNotExist")]}),
        5 => {
            let rev = json!({"key": "rev", "operator": "In", "values": ["1", "2"]});
            json!({"matchLabels": {"app": "web"}, "matchExpressions": [rev]})
        }
        // `In` without values: it cannot be parsed.
        6 if random.chance(10) => json!({"matchExpressions": [expression("rev", "In")]}),
        6..=8 => json!({"matchLabels": {"app": "db"}}),
        _ => json!({"matchLabels": {"app": "web"}}),
    }
}

fn topology_key(random: &mut Random) -> &'static str {
    random.pick(&["zone", "zone", "rack", "kubernetes.io/hostname"])
}

fn pod_term(random: &mut Random) -> Value {
    let mut term =
        json!({"topologyKey": topology_key(random), "labelSelector": label_selector(random)});
    if random.chance(15) {
        term["namespaces"] = json!(["team-b"]);
    }
    if random.chance(20) {
        let not_b = json!({"key": "team", "operator": "NotIn", "values": ["b"]});
        let no_team = json!({"key": "team", "operator": "DoesNotExist"});
        term["namespaceSelector"] = random.pick(&[
            json!({}),
            json!({"matchLabels": {"team": "b"}}),
            json!({"matchExpressions": [not_b]}),
            json!({"matchExpressions": [no_team]}),
        ]);
    }
    term
}

/// `spec.affinity` with each kind of term of Pods as likely as this.
pub fn pod_affinity(random: &mut Random, percent: u64) -> Value {
    let mut affinity = json!({});
    for kind in ["podAffinity", "podAntiAffinity"] {
        if random.chance(percent) {
            affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!(random.list(1, 2, pod_term));
        }
        if random.chance(percent) {
            let weighted = |random: &mut Random| json!({"weight": random.between(1, 100), "podAffinityTerm": pod_term(random)});
            affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!(random.list(1, 2, weighted));
        }
    }
    affinity
}

fn node_requirement(random: &mut Random) -> Value {
    random.pick(&[
        json!({"key": "zone", "operator": "In", "values": ["a"]}),
        json!({"key": "zone", "operator": "In", "values": ["a", "b"]}),
        json!({"key": "zone", "operator": "NotIn", "values": ["b"]}),
        json!({"key": "zone", "operator": "Exists"}),
        json!({"key": "disk", "operator": "DoesNotExist"}),
        json!({"key": "num", "operator": "Gt", "values": ["3"]}),
        json!({"key": "num", "operator": "Lt", "values": ["5"]}),
        // The last two cannot be parsed.
        json!({"key": "num", "operator": "Gt", "values": ["x"]}),
        json!({"key": "zone", "operator": "In", "values": ["a b"]}),
    ])
}

fn node_term(random: &mut Random) -> Value {
    let mut term = json!({});
    if random.chance(75) {
        term["matchExpressions"] = json!(random.list(1, 2, node_requirement));
    }
    if random.chance(20) {
        let operator = random.pick(&["In", "In", "NotIn"]);
        let mut fields = vec![name_field(random, operator)];
        if random.chance(15) {
            fields.push(name_field(random, "In"));
        }
        term["matchFields"] = json!(fields);
    }
    term
}

fn name_field(random: &mut Random, operator: &str) -> Value {
    let name = node_name(random.below(NODE_NAMES));
    json!({"key": "metadata.name", "operator": operator, "values": [name]})
}

/// Half of the time Nodes by name: then kube-scheduler tries no others. A list without terms is
/// rare, and matches nothing.
pub fn required_nodes(random: &mut Random) -> Value {
    if random.chance(50) {
        let named = |random: &mut Random| json!({"matchFields": [name_field(random, "In")]});
        return json!({"nodeSelectorTerms": random.list(1, 2, named)});
    }
    let fewest = u64::from(!random.chance(3));
    json!({"nodeSelectorTerms": random.list(fewest, 2, node_term)})
}

pub fn preferred_nodes(random: &mut Random) -> Value {
    let preferred = |random: &mut Random| {
        // Mostly simple ones: one that cannot be parsed fails the attempt.
        let term = if random.chance(20) { node_term(random) } else { label_term(random) };
        json!({"weight": random.between(1, 100), "preference": term})
    };
    json!(random.list(1, 3, preferred))
}

fn label_term(random: &mut Random) -> Value {
    let (key, value) = (random.pick(&["zone", "num", "rack"]), random.pick(&["a", "b", "1", "4"]));
    json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]})
}

pub fn spread_constraint(random: &mut Random) -> Value {
    let when = random.pick(&["DoNotSchedule", "ScheduleAnyway"]);
    let mut constraint = json!({
        "maxSkew": random.between(1, 3),
        "topologyKey": topology_key(random),
        "whenUnsatisfiable": when,
        "labelSelector": label_selector(random),
    });
    if when == "DoNotSchedule" && random.chance(25) {
        constraint["minDomains"] = json!(random.between(1, 4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if random.chance(25) {
            constraint[policy] = json!(random.pick(&["Honor", "Ignore"]));
        }
    }
    if random.chance(20) {
        constraint["matchLabelKeys"] = json!(["rev"]);
    }
    constraint
}
