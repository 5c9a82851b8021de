//! Selectors, terms of affinity, spread constraints.

use serde_json::{Value, json};

use crate::asked_node;
use crate::random::Random;
use crate::rules::Rules;

const TOPOLOGY_KEYS: [&str; 5] =
    ["zone", "zone", "rack", "kubernetes.io/hostname", "topology.kubernetes.io/zone"];

/// A selector, and whether it may be combined with keys that are matched by the Pod's own value.
struct Selector {
    value: Value,
    /// An API server wants its keys to be others than `rev`, and a selector at all.
    takes_revision: bool,
}

fn selector(random: &mut Random, rules: &Rules) -> Selector {
    if rules.is_unchecked() && random.chance(10) {
        // `In` without values cannot be parsed.
        let revisions: &[&str] = if random.chance(15) { &[] } else { &["1", "2"] };
        let listed = json!({"key": "rev", "operator": "In", "values": revisions});
        let value = json!({"matchLabels": {"app": "web"}, "matchExpressions": [listed]});
        return Selector { value, takes_revision: true };
    }
    let expression = |key: &str, operator: &str| json!({"matchExpressions": [{"key": key, "operator": operator}]});
    let listed = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
    let (value, takes_revision) = match random.below(13) {
        0 => (Value::Null, false),
        1 => (json!({}), true),
        2 => (listed("NotIn", &["db"]), true),
        3 => (listed("In", &["db", "web"]), true),
        4 => (expression("rev", "Exists"), false),
        5 => (expression("rev", "DoesNotExist"), false),
        6 => (json!({"matchLabels": {"app": "web", "rev": "1"}}), false),
        7 | 8 => (json!({"matchLabels": {"app": "db"}}), true),
        _ => (json!({"matchLabels": {"app": "web"}}), true),
    };
    Selector { value, takes_revision: takes_revision || rules.is_unchecked() }
}

pub(crate) fn label_selector(random: &mut Random, rules: &Rules) -> Value {
    selector(random, rules).value
}

fn pod_term(random: &mut Random, rules: &Rules) -> Value {
    let Selector { value, takes_revision } = selector(random, rules);
    let mut term = json!({"topologyKey": random.pick(&TOPOLOGY_KEYS), "labelSelector": value});
    if random.chance(15) {
        term["namespaces"] = random.pick(&[json!(["team-b"]), json!(["team-a", "team-c"])]);
    }
    if random.chance(25) {
        let teams = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "team", "operator": operator, "values": values}]});
        term["namespaceSelector"] = random.pick(&[
            json!({}),
            json!({"matchLabels": {"team": "b"}}),
            teams("In", json!(["a", "c"])),
            teams("NotIn", json!(["b"])),
            json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
        ]);
    }
    if takes_revision && random.chance(25) {
        let field = random.pick(&["matchLabelKeys", "mismatchLabelKeys"]);
        // A Pod may lack both labels: then the key is ignored.
        term[field] = json!([random.pick(&["rev", "rev", "tier"])]);
    }
    term
}

/// `spec.affinity` with each kind of term about Pods as likely as this.
pub(crate) fn pod_affinity(random: &mut Random, rules: &Rules, percent: usize) -> Value {
    let term = |random: &mut Random| pod_term(random, rules);
    let weighted = |random: &mut Random| json!({"weight": random.between(1, 100), "podAffinityTerm": term(random)});
    let mut affinity = json!({});
    for kind in ["podAffinity", "podAntiAffinity"] {
        if random.chance(percent) {
            affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!(random.list(1, 2, term));
        }
        if random.chance(percent) {
            affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!(random.list(1, 3, weighted));
        }
    }
    affinity
}

fn node_requirement(random: &mut Random, rules: &Rules) -> Value {
    if rules.is_unchecked() && random.chance(20) {
        // Neither can be parsed.
        return random.pick(&[
            json!({"key": "num", "operator": "Gt", "values": ["x"]}),
            json!({"key": "zone", "operator": "In", "values": ["a b"]}),
        ]);
    }
    random.pick(&[
        json!({"key": "zone", "operator": "In", "values": ["a"]}),
        json!({"key": "zone", "operator": "In", "values": ["a", "b"]}),
        json!({"key": "zone", "operator": "NotIn", "values": ["b"]}),
        json!({"key": "rack", "operator": "NotIn", "values": ["1", "3"]}),
        json!({"key": "zone", "operator": "Exists"}),
        json!({"key": "disk", "operator": "DoesNotExist"}),
        json!({"key": "num", "operator": "Gt", "values": ["3"]}),
        json!({"key": "num", "operator": "Lt", "values": ["5"]}),
        json!({"key": "num", "operator": "Gt", "values": ["0"]}),
    ])
}

fn node_term(random: &mut Random, rules: &Rules) -> Value {
    let mut term = json!({});
    if random.chance(80) {
        let mut expressions = random.list(1, 2, |random| node_requirement(random, rules));
        if random.chance(4) {
            // The API server accepts it, but kube-scheduler cannot read it.
            expressions.push(json!({"key": "num", "operator": "Gt", "values": ["x"]}));
        }
        term["matchExpressions"] = json!(expressions);
    }
    if random.chance(20) {
        let operator = random.pick(&["In", "In", "NotIn"]);
        let mut fields = vec![name_field(random, operator)];
        if rules.is_unchecked() && random.chance(15) {
            fields.push(name_field(random, "In"));
        }
        term["matchFields"] = json!(fields);
    }
    term
}

fn name_field(random: &mut Random, operator: &str) -> Value {
    json!({"key": "metadata.name", "operator": operator, "values": [asked_node(random)]})
}

/// Sometimes Nodes by name: then kube-scheduler looks at no others.
pub(crate) fn required_nodes(random: &mut Random, rules: &Rules) -> Value {
    if random.chance(rules.if_unchecked(50, 30)) {
        let named = |random: &mut Random| json!({"matchFields": [name_field(random, "In")]});
        return json!({"nodeSelectorTerms": random.list(1, 3, named)});
    }
    // A list without terms matches nothing.
    let fewest = usize::from(!(rules.is_unchecked() && random.chance(10)));
    json!({"nodeSelectorTerms": random.list(fewest, 2, |random| node_term(random, rules))})
}

pub(crate) fn preferred_nodes(random: &mut Random, rules: &Rules) -> Value {
    let preferred = |random: &mut Random| {
        let term = if random.chance(40) { node_term(random, rules) } else { label_term(random) };
        json!({"weight": random.between(1, 100), "preference": term})
    };
    json!(random.list(1, 3, preferred))
}

fn label_term(random: &mut Random) -> Value {
    let labels = [("zone", "a"), ("zone", "b"), ("rack", "1"), ("num", "4")];
    // Only in a preference, the API server lets even this pass.
    let (key, value) = if random.chance(3) { ("zone", "a b") } else { random.pick(&labels) };
    json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]})
}

/// Two with the same topology and the same consequence are refused by an API server.
pub(crate) fn spread_constraints(random: &mut Random, rules: &Rules) -> Vec<Value> {
    let mut constraints: Vec<Value> = vec![];
    for constraint in random.list(1, 3, |random| spread_constraint(random, rules)) {
        let same = |other: &Value| {
            ["topologyKey", "whenUnsatisfiable"].iter().all(|key| other[key] == constraint[key])
        };
        if rules.is_unchecked() || !constraints.iter().any(same) {
            constraints.push(constraint);
        }
    }
    constraints
}

fn spread_constraint(random: &mut Random, rules: &Rules) -> Value {
    let when = random.pick(&["DoNotSchedule", "ScheduleAnyway"]);
    let Selector { value, takes_revision } = selector(random, rules);
    let mut constraint = json!({
        "maxSkew": random.between(1, 3),
        "topologyKey": random.pick(&TOPOLOGY_KEYS),
        "whenUnsatisfiable": when,
        "labelSelector": value,
    });
    if when == "DoNotSchedule" && random.chance(25) {
        constraint["minDomains"] = json!(random.between(1, 4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if random.chance(30) {
            constraint[policy] = json!(random.pick(&["Honor", "Ignore"]));
        }
    }
    if takes_revision && random.chance(25) {
        constraint["matchLabelKeys"] = json!([random.pick(&["rev", "rev", "tier"])]);
    }
    constraint
}
