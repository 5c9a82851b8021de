//! Pods: the one to schedule, and those around it.

use serde_json::{Value, json};

use super::terms::{pod_affinity, preferred_nodes, required_nodes, spread_constraint};
use crate::random::Random;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one to schedule. It has what only matters there: wishes about Nodes, spreading.
    Incoming,
    Other {
        /// How likely it has each kind of term about other Pods.
        busy_percent: u64,
    },
}

pub fn pod(random: &mut Random, name: &str, role: Role) -> Value {
    let at_home = random.chance(75) || role == Role::Incoming;
    let namespace = if at_home { "team-a" } else { "team-b" };
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("{namespace}/{name}"),
            "labels": labels(random),
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": random.below(4),
            "containers": containers(random, "c", 2),
        },
        "status": {},
    });
    let spec = &mut pod["spec"];
    if random.chance(20) {
        spec["initContainers"] = json!(containers(random, "i", 3));
        for init in spec["initContainers"].as_array_mut().expect("just made") {
            if random.chance(40) {
                init["restartPolicy"] = json!("Always");
            }
        }
    }
    if random.chance(10) {
        spec["overhead"] = json!({"cpu": "50m", "memory": "10Mi"});
    }
    if random.chance(15) {
        let requests = random.pick(&[
            json!({"cpu": "900m"}),
            json!({"memory": "700Mi"}),
            json!({"cpu": "1", "memory": "1Gi"}),
        ]);
        spec["resources"] = json!({"requests": requests});
    }
    if random.chance(30) {
        spec["tolerations"] = json!([toleration(random)]);
    }
    let busy_percent = match role {
        Role::Incoming => 30,
        Role::Other { busy_percent } => busy_percent,
    };
    let affinity = pod_affinity(random, busy_percent);
    if affinity != json!({}) {
        spec["affinity"] = affinity;
    }
    if role == Role::Incoming {
        add_wishes(random, spec);
    }
    pod
}

fn labels(random: &mut Random) -> Value {
    let mut labels = json!({});
    if random.chance(85) {
        labels["app"] = json!(random.pick(&["web", "web", "db"]));
    }
    if random.chance(40) {
        labels["rev"] = json!(random.pick(&["1", "2"]));
    }
    labels
}

fn containers(random: &mut Random, prefix: &str, count_max: u64) -> Vec<Value> {
    let count = random.between(1, count_max);
    (0..count).map(|number| container(random, &format!("{prefix}{number}"))).collect()
}

fn container(random: &mut Random, name: &str) -> Value {
    let image = random.pick(&["app", "app:latest", "db:v1", "reg:5000/x"]);
    let resources = json!({"requests": requests(random)});
    let mut container = json!({"name": name, "image": image, "resources": resources});
    if random.chance(25) {
        container["ports"] = json!([{
            "containerPort": 80,
            "hostPort": random.between(80, 81),
            "hostIP": random.pick(&["", "", "10.0.0.1", "10.0.0.2"]),
            "protocol": random.pick(&["TCP", "TCP", "UDP"]),
        }]);
    }
    container
}

fn requests(random: &mut Random) -> Value {
    let mut requests = json!({});
    if random.chance(75) {
        requests["cpu"] = json!(format!("{}m", random.below(12) * 100));
    }
    if random.chance(75) {
        let (mebibytes, bytes) = (random.below(12) * 100, random.below(2_000_000_000));
        // Half a byte is rounded up.
        let choices = [format!("{mebibytes}Mi"), bytes.to_string(), "500m".to_owned()];
        requests["memory"] = json!(random.pick(&choices));
    }
    if random.chance(10) {
        requests["ephemeral-storage"] = json!(format!("{}Mi", random.below(10) * 50));
    }
    if random.chance(15) {
        requests["example.com/gpu"] = json!(random.below(3).to_string());
    }
    if random.chance(5) {
        requests["hugepages-2Mi"] = json!("4Mi");
    }
    if random.chance(3) {
        requests["strange"] = json!("1");
    }
    requests
}

fn toleration(random: &mut Random) -> Value {
    random.pick(&[
        json!({"operator": "Exists"}),
        json!({"key": "t", "operator": "Exists"}),
        // Of a feature that is off by default: tolerates nothing.
        json!({"key": "t", "operator": "Gt", "value": "1"}),
        json!({"key": "t", "value": "x", "effect": "NoSchedule"}),
        json!({"key": "t", "operator": "Exists", "effect": "PreferNoSchedule"}),
        json!({
            "key": "node.kubernetes.io/unschedulable", "operator": "Exists",
            "effect": "NoSchedule",
        }),
    ])
}

fn add_wishes(random: &mut Random, spec: &mut Value) {
    if random.chance(15) {
        spec["nodeSelector"] = random.pick(&[json!({"zone": "a"}), json!({"disk": "ssd"})]);
    }
    if random.chance(10) {
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            required_nodes(random);
    }
    if random.chance(30) {
        spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
            preferred_nodes(random);
    }
    if random.chance(40) {
        spec["topologySpreadConstraints"] = json!(random.list(1, 2, spread_constraint));
    }
    if random.chance(4) {
        spec["preemptionPolicy"] = json!("Never");
    }
    if random.chance(5) {
        // Together they need a feature that a Node must declare.
        spec["hostNetwork"] = json!(true);
        spec["hostUsers"] = json!(false);
    }
    if random.chance(5) {
        spec["volumes"] = json!([{"name": "v", "image": {"reference": "app"}}]);
    }
    if random.chance(75) {
        // Mostly important: preemption is the part with the most to get wrong.
        spec["priority"] = json!(random.between(2, 3));
    }
}
