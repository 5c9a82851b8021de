//! The kinds a scheduler touches, and objects of them that vary a little.

use serde_json::{Value, json};

use crate::random::Random;

pub struct Kind {
    pub api: &'static str,
    pub api_version: &'static str,
    pub plural: &'static str,
    pub name: &'static str,
    pub namespaced: bool,
    pub has_status: bool,
    /// The real server keeps some of its own, so a list over all namespaces shows more there.
    pub has_others: bool,
    /// Everything but metadata of a new object.
    pub make: fn(&mut Random) -> Value,
    /// A merge patch that the kind allows, mostly.
    pub change: fn(&mut Random) -> Value,
    /// A merge patch of the status.
    pub report: fn(&mut Random) -> Value,
    /// What field selectors may say.
    pub fields: &'static [&'static str],
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Kind {
    pub fn collection(&self, namespace: &str) -> String {
        if self.namespaced && !namespace.is_empty() {
            format!("{}/namespaces/{namespace}/{}", self.api, self.plural)
        } else {
            format!("{}/{}", self.api, self.plural)
        }
    }

    pub fn is_custom(&self) -> bool {
        self.api_version.starts_with("corridoros.io")
    }
}

const CORE: Kind = Kind {
    api: "/api/v1",
    api_version: "v1",
    plural: "",
    name: "",
    namespaced: true,
    has_status: false,
    has_others: false,
    make: |_| json!({}),
    change: |_| json!({}),
    report: |_| json!({}),
    fields: &[],
};

const CUSTOM: Kind = Kind {
    api: "/apis/corridoros.io/v1alpha1",
    api_version: "corridoros.io/v1alpha1",
    has_status: true,
    ..CORE
};

pub const PODS: usize = 0;
pub const NAMESPACES: usize = 2;
pub const EVENTS: usize = 5;

/// Pods stand first and are the likeliest.
pub const KINDS: &[Kind] = &[
    Kind {
        plural: "pods",
        name: "Pod",
        has_status: true,
        make: pod,
        change: pod_change,
        report: pod_report,
        fields: &[
            "spec.nodeName=",
            "spec.schedulerName=corridor-scheduler",
            "status.phase!=Pending",
            "status.phase!=Succeeded,status.phase!=Failed",
        ],
        ..CORE
    },
    Kind {
        plural: "nodes",
        name: "Node",
        namespaced: false,
        has_status: true,
        make: node,
        change: node_change,
        report: node_report,
        fields: &["spec.unschedulable=true", "spec.unschedulable=false"],
        ..CORE
    },
    Kind {
        plural: "namespaces",
        name: "Namespace",
        namespaced: false,
        fields: &["status.phase=Active"],
        ..CORE
    },
    Kind {
        plural: "configmaps",
        name: "ConfigMap",
        has_others: true,
        make: |random| json!({ "data": { "a": letter(random), "b": letter(random) } }),
        change: |random| {
            let gone = if random.coin() { Value::Null } else { json!(letter(random)) };
            json!({ "data": { "a": letter(random), "c": gone } })
        },
        ..CORE
    },
    Kind {
        plural: "services",
        name: "Service",
        has_others: true,
        make: service,
        change: service_change,
        ..CORE
    },
    Kind {
        plural: "events",
        name: "Event",
        // It tells of its own Service now and then.
        has_others: true,
        make: event,
        change: |random| json!({ "count": random.between(1, 9), "lastTimestamp": PAST }),
        fields: &["involvedObject.name=a", "reason=Scheduled", "type!=Warning"],
        ..CORE
    },
    Kind {
        api: "/apis/coordination.k8s.io/v1",
        api_version: "coordination.k8s.io/v1",
        plural: "leases",
        name: "Lease",
        has_others: true,
        make: |random| json!({ "spec": { "holderIdentity": letter(random), "leaseDurationSeconds": 15 } }),
        change: |random| {
            json!({ "spec": {
                "holderIdentity": letter(random), "renewTime": "2020-01-01T00:00:00.123456Z",
                "leaseTransitions": random.below(3),
            }})
        },
        ..CORE
    },
    Kind {
        api: "/apis/scheduling.k8s.io/v1",
        api_version: "scheduling.k8s.io/v1",
        plural: "priorityclasses",
        name: "PriorityClass",
        namespaced: false,
        make: |random| {
            let mut class = json!({ "value": random.between(1, 5) });
            if random.coin() {
                class["preemptionPolicy"] =
                    random.pick(&[json!("Never"), json!("PreemptLowerPriority")]);
            }
            class
        },
        change: |random| match random.below(3) {
            0 => json!({ "value": random.between(1, 5) }),
            _ => json!({ "description": letter(random) }),
        },
        ..CORE
    },
    Kind {
        api: "/apis/policy/v1",
        api_version: "policy/v1",
        plural: "poddisruptionbudgets",
        name: "PodDisruptionBudget",
        has_status: true,
        make: |random| {
            json!({ "spec": {
                "selector": { "matchLabels": { "tier": letter(random) } },
                "maxUnavailable": random.pick(&[json!(1), json!("50%")]),
            }})
        },
        change: |random| json!({ "spec": { "maxUnavailable": random.below(4) } }),
        report: |random| {
            json!({ "status": {
                "observedGeneration": 1, "currentHealthy": random.below(3), "desiredHealthy": 1,
                "disruptionsAllowed": random.below(2), "expectedPods": 2,
            }})
        },
        ..CORE
    },
    Kind {
        plural: "corridors",
        name: "Corridor",
        make: |random| {
            let mut spec = json!({
                "lanes": 4, "lambdaNm": [1550, 1551], "minGbps": random.between(1, 100),
            });
            if random.coin() {
                spec["qos"] = json!({ "priority": "gold" });
            }
            json!({ "spec": spec })
        },
        change: |random| match random.below(3) {
            0 => json!({ "spec": { "nodeSelector": { "zone": letter(random) } } }),
            1 => json!({ "spec": { "recalibration": { "targetBer": 1e-12 } } }),
            _ => json!({ "spec": { "minGbps": random.between(1, 100) } }),
        },
        report: |random| {
            let phase = random.pick(&["Pending", "Allocating", "Ready"]);
            json!({ "status": {
                "phase": phase, "achievableGbps": random.between(1, 100), "conditions": [ready(random)],
            }})
        },
        ..CUSTOM
    },
    Kind {
        plural: "memorybundles",
        name: "MemoryBundle",
        make: |random| {
            json!({ "spec": {
                "bytes": 1 << 30, "latencyClass": "T2", "bandwidthFloorGBs": random.between(1, 9),
            }})
        },
        change: |random| json!({ "spec": { "bandwidthFloorGBs": random.between(1, 9) } }),
        report: |random| json!({ "status": { "achievedGBs": random.below(9), "conditions": [ready(random)] } }),
        ..CUSTOM
    },
    Kind {
        plural: "attestationpolicies",
        name: "AttestationPolicy",
        make: |random| json!({ "spec": { "allowedTenants": [letter(random)] } }),
        change: |random| json!({ "spec": { "requiredClaims": { "boot": letter(random) } } }),
        report: |random| json!({ "status": { "conditions": [ready(random)] } }),
        ..CUSTOM
    },
];

/// Years from now, so that it is compared to the letter.
const PAST: &str = "2020-01-01T00:00:00Z";

pub fn letter(random: &mut Random) -> &'static str {
    random.pick(&["x", "y", "z"])
}

fn ready(random: &mut Random) -> Value {
    json!({
        "type": random.pick(&["Ready", "InUse"]), "status": random.pick(&["True", "False"]),
        "reason": "Because", "message": letter(random), "lastTransitionTime": PAST,
    })
}

fn pod(random: &mut Random) -> Value {
    let mut container = json!({ "name": "main", "image": random.pick(&["app:1", "app"]) });
    match random.below(4) {
        0 => {
            container["resources"] = json!({ "requests": { "cpu": "100m", "memory": "1Gi" } });
        }
        1 => {
            container["resources"] = json!({ "limits": { "cpu": 1, "memory": "1Gi" } });
            container["ports"] = json!([{ "containerPort": 80 }]);
        }
        _ => {}
    }
    let mut spec = json!({ "containers": [container] });
    if random.coin() {
        spec["schedulerName"] = json!("corridor-scheduler");
    }
    match random.below(6) {
        0 => spec["schedulingGates"] = json!([{ "name": "example.com/gate" }]),
        1 => spec["nodeSelector"] = json!({ "zone": letter(random) }),
        2 => spec["tolerations"] = json!([{ "key": "a", "operator": "Exists" }]),
        3 => {
            spec["priorityClassName"] =
                random.pick(&[json!("system-node-critical"), json!("ghost")]);
        }
        _ => {}
    }
    json!({ "spec": spec })
}

fn pod_change(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({ "spec": { "schedulerName": "another" } }),
        1 => json!({ "spec": { "activeDeadlineSeconds": random.between(1, 9) } }),
        2 => json!({ "spec": { "schedulingGates": null } }),
        3 => {
            json!({ "metadata": { "annotations": { "corridoros.io/corridorGbps": letter(random) } } })
        }
        _ => json!({ "metadata": { "labels": { "tier": letter(random) } } }),
    }
}

fn pod_report(random: &mut Random) -> Value {
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": letter(random),
        "lastTransitionTime": PAST, "lastProbeTime": null,
    });
    match random.below(3) {
        0 => json!({ "status": { "nominatedNodeName": letter(random) } }),
        1 => json!({ "status": { "phase": random.pick(&["Pending", "Running", "Failed"]) } }),
        _ => json!({ "status": { "conditions": [condition] } }),
    }
}

fn node(random: &mut Random) -> Value {
    let mut node = json!({
        "status": { "capacity": { "cpu": random.pick(&[json!(4), json!("4000m")]), "memory": "8Gi", "pods": "110" } },
    });
    match random.below(4) {
        0 => node["spec"] = json!({ "unschedulable": true }),
        1 => {
            node["spec"] =
                json!({ "taints": [{ "key": "a", "value": "b", "effect": "NoSchedule" }] });
        }
        _ => {}
    }
    node
}

fn node_change(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!({ "spec": { "unschedulable": random.pick(&[json!(true), Value::Null]) } }),
        1 => json!({ "metadata": { "labels": { "topology.kubernetes.io/zone": letter(random) } } }),
        _ => json!({ "spec": { "taints": [{ "key": letter(random), "effect": "NoSchedule" }] } }),
    }
}

fn node_report(random: &mut Random) -> Value {
    let status = random.pick(&["True", "False"]);
    json!({ "status": {
        "allocatable": { "cpu": "3", "memory": "7Gi", "pods": "110" },
        "conditions": [{
            "type": "Ready", "status": status, "reason": "Because", "message": "",
            "lastHeartbeatTime": PAST, "lastTransitionTime": PAST,
        }],
    }})
}

/// Without an address: the real server would draw one by lot.
fn service(random: &mut Random) -> Value {
    json!({ "spec": {
        "clusterIP": "None", "selector": { "tier": letter(random) },
        "ports": [{ "port": random.between(80, 82) }],
    }})
}

fn service_change(random: &mut Random) -> Value {
    json!({ "spec": { "selector": { "tier": letter(random) } } })
}

pub fn event_named(name: &str, namespace: &str) -> Value {
    json!({
        "metadata": { "name": name }, "reason": "Scheduled", "type": "Normal",
        "involvedObject": { "kind": "Pod", "name": "a", "namespace": namespace },
    })
}

fn event(random: &mut Random) -> Value {
    json!({
        "involvedObject": { "kind": "Pod", "name": random.pick(&["a", "b"]), "namespace": "«namespace»" },
        "reason": random.pick(&["Scheduled", "FailedScheduling"]), "message": letter(random),
        "type": random.pick(&["Normal", "Warning"]), "firstTimestamp": PAST, "lastTimestamp": PAST,
        "count": 1, "source": { "component": "corridor-scheduler" },
    })
}
