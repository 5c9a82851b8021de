//! Whatever a Pod, a Node or an object says: nothing panics, and no other Pod is delayed.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::World;

/// Values that are wrong in most places.
fn nonsense() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(""),
        json!("-1"),
        json!("1e99"),
        json!("99999999999999999999"),
        json!("\u{0}\u{202e}"),
        json!("NaN"),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(2_147_483_648_i64),
        json!(1e300),
        json!(true),
        json!([]),
        json!({}),
        json!([{}]),
        json!({"": ""}),
        json!([{"key": "", "operator": "In", "values": []}]),
        json!([{"key": "a/b/c", "operator": "Gt", "values": ["x"]}]),
    ])
}

/// A Pod that uses every rule.
fn pod() -> Value {
    let term = json!({
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "app", "operator": "In", "values": ["web"]},
        ]},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "namespaces": ["team-a"],
    });
    json!({
        "metadata": {
            "namespace": "team-a", "name": "odd", "uid": "u-odd", "resourceVersion": "2",
            "labels": {"app": "web"},
            "annotations": {"corridoros.io/corridorRef": "team-a/c1",
                "corridoros.io/corridorGbps": "10", "corridoros.io/grant": "{}"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": true,
                "apiVersion": "apps/v1", "uid": "r"}],
        },
        "spec": {
            "schedulerName": "corridor-scheduler", "priority": 1, "preemptionPolicy": "Never",
            "nodeSelector": {"a": "b"}, "overhead": {"cpu": "1m"},
            "containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/g": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "", "protocol": "TCP"}]}],
            "initContainers": [{"name": "s", "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "z", "operator": "Gt", "values": ["1"]}],
                         "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                    ]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "preference": {"matchExpressions": []}}],
                },
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [term],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "podAffinityTerm": term}],
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            },
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "minDomains": 2,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}},
                "nodeAffinityPolicy": "Honor", "matchLabelKeys": ["app"]}],
        },
        "status": {"phase": "Pending", "nominatedNodeName": "n9",
            "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{"name": "c",
            "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "2"}}}]},
    })
}

fn node() -> Value {
    json!({
        "metadata": {"name": "n-odd", "uid": "u", "resourceVersion": "1", "labels": {"zone": "z"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}], "unschedulable": false},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/g": "2"},
            "images": [{"names": ["i"], "sizeBytes": 1000}], "declaredFeatures": ["F"]},
    })
}

/// Every place in a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn spoilt(mut object: Value, damages: &[(prop::sample::Index, Value)]) -> Value {
    for (index, nonsense) in damages {
        let mut found = Vec::new();
        places(&object, "", &mut found);
        let place = &found[index.index(found.len())];
        // What has no name at all is no object of an API server.
        if !place.is_empty() && !place.starts_with("/metadata/") && place != "/metadata" {
            *object.pointer_mut(place).unwrap() = nonsense.clone();
        }
    }
    object
}

fn damages() -> impl Strategy<Value = Vec<(prop::sample::Index, Value)>> {
    prop::collection::vec((any::<prop::sample::Index>(), nonsense()), 0..6)
}

proptest! {
    #[test]
    fn nothing_panics_and_no_other_pod_waits(
        bad_pod in damages(),
        bad_node in damages(),
        bound in any::<bool>(),
    ) {
        let mut world = World::new();
        world.backends_speak();
        let healthy = json!({
            "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "1"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        });
        world.node(&healthy).unwrap();
        // One that cannot be decoded is the watch's to deal with.
        let _ = world.node(&spoilt(node(), &bad_node));
        let mut odd = pod();
        if bound {
            odd["spec"]["nodeName"] = json!("n-odd");
        }
        let _ = world.pod(&spoilt(odd, &bad_pod));
        world.bind_all();
        let plain = json!({
            "metadata": {"namespace": "team-a", "name": "plain", "uid": "p", "resourceVersion": "1"},
            "spec": {"schedulerName": "corridor-scheduler", "containers": [{"name": "c"}],
                "nodeSelector": {}},
            "status": {},
        });
        world.pod(&plain).unwrap();
        prop_assert_eq!(world.bind_all(), ["team-a/plain"]);
        prop_assert_eq!(world.engine.stats().quarantined, 0);
    }
}
