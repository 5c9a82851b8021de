//! Pods.

use model::{
    ClusterPod, ContainerRequests, DeclaredRequests, Deletion, FeatureUse, HostPort,
    InitContainerRequests, NodeName, ObjectKey, PodRequests, PreemptionPolicy, RunningResources,
    Toleration, TolerationOperator, listed_image_name,
};
use serde_json::Value;

use super::effect;
use super::fields::{items, labels, resource_list, small_int, text};
use super::terms::{node_affinity, pod_affinity, spread_constraint};
use super::volumes::pod_volumes;

pub fn pod(pod: &Value) -> ClusterPod {
    let (metadata, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
    let key = ObjectKey::new(text(&metadata["namespace"]), text(&metadata["name"]));
    let mut translated = ClusterPod::new(key, text(&metadata["uid"]).into());
    translated.labels = labels(&metadata["labels"]);
    translated.node = node_name(&spec["nodeName"]);
    translated.nominated_node = node_name(&status["nominatedNodeName"]);
    translated.priority = small_int(&spec["priority"]);
    if spec["preemptionPolicy"] == "Never" {
        translated.preemption_policy = PreemptionPolicy::Never;
    }
    translated.started_at_unix_s = status["startTime"].as_str().map(seconds_of_hour);
    translated.deletion = deletion(pod);
    translated.requests = requests(spec, status);
    translated.tolerations = items(&spec["tolerations"]).iter().map(toleration).collect();
    translated.node_selector = labels(&spec["nodeSelector"]);
    translated.node_affinity = node_affinity(&spec["affinity"]["nodeAffinity"]);
    translated.pod_affinity = pod_affinity(translated.namespace(), &spec["affinity"]);
    let constraints = items(&spec["topologySpreadConstraints"]);
    translated.topology_spread = constraints.iter().map(spread_constraint).collect();
    translated.host_ports = host_ports(spec);
    let images = all_containers(spec).map(|container| &container["image"]);
    let volumes = items(&spec["volumes"]).iter().map(|volume| &volume["image"]["reference"]);
    translated.images = images.chain(volumes).map(|name| listed_image_name(text(name))).collect();
    translated.volumes = pod_volumes(pod).into();
    let containers = all_containers(spec).count();
    translated.containers = containers.try_into().expect("a few containers");
    translated.required_features = FeatureUse {
        restarts_all_containers: all_containers(spec)
            .flat_map(|container| items(&container["restartPolicyRules"]))
            .any(|rule| rule["action"] == "RestartAllContainers"),
        host_network: spec["hostNetwork"] == true,
        user_namespace: spec["hostUsers"] == false,
    }
    .required();
    translated
}

fn node_name(field: &Value) -> Option<NodeName> {
    field.as_str().map(NodeName::new)
}

/// Of `2026-01-01T00:MM:SSZ`. Only the order of times matters, and all lie in one hour.
fn seconds_of_hour(time: &str) -> i64 {
    let number = |digits: &str| digits.parse::<i64>().expect("two digits");
    number(&time[14..16]) * 60 + number(&time[17..19])
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    items(&status["conditions"]).iter().find(|condition| condition["type"] == kind)
}

fn deletion(pod: &Value) -> Deletion {
    if pod["metadata"]["deletionTimestamp"].is_null() {
        return Deletion::default();
    }
    match condition(&pod["status"], "DisruptionTarget") {
        Some(_) => Deletion::TerminatingByPreemption,
        None => Deletion::Terminating,
    }
}

fn all_containers(spec: &Value) -> impl Iterator<Item = &Value> {
    items(&spec["containers"]).iter().chain(items(&spec["initContainers"]))
}

fn is_sidecar(init_container: &Value) -> bool {
    init_container["restartPolicy"] == "Always"
}

fn requests(spec: &Value, status: &Value) -> PodRequests {
    let container = |container: &Value| ContainerRequests {
        requests: resource_list(&container["resources"]["requests"]),
        running: items(&status["containerStatuses"])
            .iter()
            .find(|status| status["name"] == container["name"])
            .and_then(running),
    };
    let init_container = |init: &Value| InitContainerRequests {
        container: container(init),
        sidecar: is_sidecar(init),
    };
    let resize = condition(status, "PodResizePending");
    DeclaredRequests {
        containers: items(&spec["containers"]).iter().map(container).collect(),
        init_containers: items(&spec["initContainers"]).iter().map(init_container).collect(),
        pod_level: ContainerRequests {
            requests: resource_list(&spec["resources"]["requests"]),
            running: running(status),
        },
        overhead: resource_list(&spec["overhead"]),
        resize_infeasible: resize.is_some_and(|condition| condition["reason"] == "Infeasible"),
    }
    .sum()
}

/// From the status of a container, or of the Pod.
fn running(status: &Value) -> Option<RunningResources> {
    let actuated = status.get("resources")?;
    Some(RunningResources {
        actuated: resource_list(&actuated["requests"]),
        allocated: resource_list(&status["allocatedResources"]),
    })
}

fn toleration(toleration: &Value) -> Toleration {
    Toleration {
        key: text(&toleration["key"]).into(),
        value: text(&toleration["value"]).into(),
        effect: effect(&toleration["effect"]),
        operator: match text(&toleration["operator"]) {
            "" => TolerationOperator::Equal,
            "Exists" => TolerationOperator::Exists,
            _ => TolerationOperator::Unknown,
        },
    }
}

fn host_ports(spec: &Value) -> Vec<HostPort> {
    let sidecars = items(&spec["initContainers"]).iter().filter(|init| is_sidecar(init));
    let ports = items(&spec["containers"]).iter().chain(sidecars).map(|it| items(&it["ports"]));
    let host_port = |port: &Value| {
        let number = small_int(&port["hostPort"]);
        HostPort::new(text(&port["hostIP"]), text(&port["protocol"]), number)
    };
    ports.flatten().filter_map(host_port).collect()
}
