//! What else decides where Pods go: Services, what Pods belong to, PodDisruptionBudgets.

use serde_json::{Value, json};

use crate::OWNERS;
use crate::random::Random;
use crate::rules::{Rule, Rules};
use crate::terms::label_selector;

#[derive(Debug)]
pub struct Other {
    /// Of its resource, without the namespace: `apis/apps/v1`, `replicasets`.
    pub group: &'static str,
    pub resource: &'static str,
    pub object: Value,
    /// Written after it was created, if it is not null.
    pub status: Value,
}

pub(crate) fn others(random: &mut Random, rules: &Rules) -> Vec<Other> {
    let mut others = vec![];
    if rules.has(Rule::DefaultSpread) {
        others.extend(random.list(0, 2, service).into_iter().enumerate().map(|(number, spec)| {
            let metadata = json!({"namespace": "team-a", "name": format!("s{number}")});
            let object = json!({"metadata": metadata, "spec": spec});
            Other { group: "api/v1", resource: "services", object, status: Value::Null }
        }));
        for namespace in ["team-a", "team-b"] {
            for (kind, name) in OWNERS {
                if random.chance(70) {
                    others.push(owner(random, rules, namespace, kind, name));
                }
            }
        }
    }
    if rules.has(Rule::Preemption) {
        let count = random.below(4);
        others.extend((0..count).map(|number| budget(random, rules, number)));
    }
    others
}

fn service(random: &mut Random) -> Value {
    let selector = random.pick(&[json!({"app": "web"}), json!({"app": "db"}), json!({"rev": "1"})]);
    json!({"selector": selector, "ports": [{"port": 80}]})
}

fn owner(random: &mut Random, rules: &Rules, namespace: &str, kind: &str, name: &str) -> Other {
    let both = json!({"key": "app", "operator": "In", "values": ["web", "db"]});
    let plain = [
        json!({"matchLabels": {"app": "web"}}),
        json!({"matchExpressions": [both]}),
        json!({"matchLabels": {"rev": "1"}}),
    ];
    // An API server wants the selector to match the template.
    let selector =
        if rules.is_unchecked() { label_selector(random, rules) } else { random.pick(&plain) };
    let template = json!({
        "metadata": {"labels": {"app": "web", "rev": "1"}},
        "spec": {"containers": [{"name": "c", "image": "app"}]},
    });
    let mut spec = json!({"selector": selector, "template": template});
    let resource = match kind {
        "StatefulSet" => {
            spec["serviceName"] = json!("s0");
            "statefulsets"
        }
        _ => "replicasets",
    };
    let metadata = json!({"namespace": namespace, "name": name});
    let object = json!({"metadata": metadata, "spec": spec});
    Other { group: "apis/apps/v1", resource, object, status: Value::Null }
}

fn budget(random: &mut Random, rules: &Rules, number: usize) -> Other {
    let namespace = random.pick(&["team-a", "team-a", "team-b"]);
    let disrupted =
        if random.chance(20) { json!({"p1": "2026-01-01T00:00:00Z"}) } else { json!({}) };
    Other {
        group: "apis/policy/v1",
        resource: "poddisruptionbudgets",
        object: json!({
            "metadata": {"namespace": namespace, "name": format!("b{number}")},
            "spec": {"selector": label_selector(random, rules), "maxUnavailable": 1},
        }),
        status: json!({
            "disruptionsAllowed": random.below(3), "disruptedPods": disrupted,
            "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3, "observedGeneration": 1,
        }),
    }
}
