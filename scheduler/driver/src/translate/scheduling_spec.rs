//! Everything in a Pod that bears on where it can go.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use model::{
    FeatureUse, HostPort, Owner, OwnerKind, PreemptionPolicy, SchedulingSpec, Toleration,
    TolerationOperator, listed_image_name,
};

use super::affinity::{node_affinity, pod_affinity};
use super::labels;
use super::node::effect;
use super::requests::requests;
use super::spread::spread_constraint;
use crate::wire::{WireContainer, WirePod, WirePodSpec, WireToleration, WireVolumeSource};

pub(super) fn scheduling_spec(namespace: &Arc<str>, wire: &WirePod) -> SchedulingSpec {
    let WirePod { metadata, spec, status } = wire;
    let constraints = spec.topology_spread_constraints.iter();
    let images = containers(spec).map(|container| container.image.as_str());
    let volumes = spec.volumes.iter().filter_map(|volume| match &volume.source {
        Some(WireVolumeSource::Image(image)) => Some(image.reference.as_str()),
        _ => None,
    });
    SchedulingSpec {
        labels: metadata.labels.as_ref().map(labels).unwrap_or_default(),
        priority: spec.priority.unwrap_or(0),
        preemption_policy: preemption_policy(spec),
        requests: requests(spec, status),
        tolerations: spec.tolerations.iter().filter_map(toleration).collect(),
        node_selector: labels(&spec.node_selector),
        node_affinity: node_affinity(&spec.affinity.node),
        pod_affinity: pod_affinity(namespace, &spec.affinity),
        // A Pod with one that cannot be read is held, see `unsupported`.
        topology_spread: constraints.filter_map(|it| spread_constraint(it).ok()).collect(),
        owner: owner(metadata),
        host_ports: host_ports(spec),
        images: images.chain(volumes).map(listed_image_name).collect(),
        containers: containers(spec).count().try_into().unwrap_or(u32::MAX),
        required_features: features(spec).required(),
    }
}

fn containers(spec: &WirePodSpec) -> impl Iterator<Item = &WireContainer> {
    spec.containers.iter().chain(&spec.init_containers)
}

fn preemption_policy(spec: &WirePodSpec) -> PreemptionPolicy {
    match spec.preemption_policy.as_str() {
        "Never" => PreemptionPolicy::Never,
        _ => PreemptionPolicy::PreemptLowerPriority,
    }
}

/// An init container that ends has given its ports back before the others start.
fn host_ports(spec: &WirePodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().filter(|container| container.is_sidecar());
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    ports.filter_map(|it| HostPort::new(&it.host_ip, &it.protocol, it.host_port)).collect()
}

fn features(spec: &WirePodSpec) -> FeatureUse {
    let mut rules = containers(spec).flat_map(|container| &container.restart_policy_rules);
    FeatureUse {
        restarts_all_containers: rules.any(|rule| rule.action == "RestartAllContainers"),
        host_network: spec.host_network,
        user_namespace: spec.host_users == Some(false),
    }
}

/// The controller, if its Pods are spread by default.
fn owner(metadata: &ObjectMeta) -> Option<Owner> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    let controller: &OwnerReference = owners.iter().find(|it| it.controller == Some(true))?;
    let kind = match (controller.api_version.as_str(), controller.kind.as_str()) {
        ("v1", "ReplicationController") => OwnerKind::ReplicationController,
        ("apps/v1", "ReplicaSet") => OwnerKind::ReplicaSet,
        ("apps/v1", "StatefulSet") => OwnerKind::StatefulSet,
        _ => return None,
    };
    Some(Owner { kind, name: controller.name.as_str().into() })
}

fn toleration(wire: &WireToleration) -> Option<Toleration> {
    let effect = match wire.effect.as_str() {
        "" => None,
        text => Some(effect(text)?),
    };
    let operator = match wire.operator.as_str() {
        "" | "Equal" => TolerationOperator::Equal,
        "Exists" => TolerationOperator::Exists,
        _ => TolerationOperator::Unknown,
    };
    let (key, value) = (wire.key.as_str().into(), wire.value.as_str().into());
    Some(Toleration { key, operator, value, effect })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::LabelSelector;
    use serde_json::{Value, json};

    fn of(pod: Value) -> SchedulingSpec {
        scheduling_spec(&"own".into(), &serde_json::from_value(pod).unwrap())
    }

    fn of_spec(spec: &Value) -> SchedulingSpec {
        of(json!({"spec": spec}))
    }

    #[test]
    fn an_empty_pod_asks_for_nothing() {
        assert_eq!(of(json!({})), SchedulingSpec::default());
        assert_eq!(of_spec(&json!({"containers": null})), SchedulingSpec::default());
    }

    #[test]
    fn labels_priority_and_policy_are_the_pods() {
        let scheduling = of(json!({
            "metadata": {"labels": {"app": "x"}},
            "spec": {"priority": -7, "preemptionPolicy": "Never", "nodeSelector": {"zone": "a"}},
        }));
        assert_eq!((&*scheduling.labels["app"], scheduling.priority), ("x", -7));
        assert_eq!(scheduling.preemption_policy, PreemptionPolicy::Never);
        assert_eq!(&*scheduling.node_selector["zone"], "a");
        let other = of_spec(&json!({"preemptionPolicy": "PreemptLowerPriority"}));
        assert_eq!(other.preemption_policy, PreemptionPolicy::PreemptLowerPriority);
    }

    #[test]
    fn ports_of_containers_and_sidecars_are_taken_and_others_are_not() {
        let port = |number: i64| json!([{"containerPort": 1, "hostPort": number}]);
        let scheduling = of_spec(&json!({
            "containers": [{"ports": [
                {"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"},
                {"containerPort": 90},
                {"hostPort": -5},
            ]}],
            "initContainers": [
                {"ports": port(81)},
                {"ports": port(82), "restartPolicy": "Always"},
            ],
        }));
        let expected = [HostPort::new("10.0.0.1", "UDP", 80), HostPort::new("", "", 82)];
        assert_eq!(scheduling.host_ports, expected.map(Option::unwrap));
        assert_eq!(scheduling.containers, 3);
    }

    #[test]
    fn images_of_all_containers_and_volumes_count_by_their_listed_names() {
        let scheduling = of_spec(&json!({
            "containers": [{"image": "app"}],
            "initContainers": [{"image": "reg:5000/init:v1"}],
            "volumes": [
                {"name": "v", "image": {"reference": "model@sha256:aa", "pullPolicy": "Always"}},
                {"name": "w", "emptyDir": {}},
            ],
        }));
        let images: Vec<&str> = scheduling.images.iter().map(AsRef::as_ref).collect();
        assert_eq!(images, ["app:latest", "reg:5000/init:v1", "model@sha256:aa"]);
    }

    #[test]
    fn only_a_controller_of_a_known_kind_is_an_owner() {
        let owner = |api_version: &str, kind: &str, controller: bool| {
            let other = json!({"apiVersion": "x/v1", "kind": "Y", "name": "z", "uid": "1"});
            let reference = json!({
                "apiVersion": api_version, "kind": kind, "name": "o", "uid": "2",
                "controller": controller,
            });
            of(json!({"metadata": {"ownerReferences": [other, reference]}})).owner
        };
        let of_kind = |kind| Some(Owner { kind, name: "o".into() });
        assert_eq!(owner("apps/v1", "ReplicaSet", true), of_kind(OwnerKind::ReplicaSet));
        assert_eq!(owner("apps/v1", "StatefulSet", true), of_kind(OwnerKind::StatefulSet));
        let controller = OwnerKind::ReplicationController;
        assert_eq!(owner("v1", "ReplicationController", true), of_kind(controller));
        assert_eq!(owner("apps/v1", "ReplicaSet", false), None);
        assert_eq!(owner("extensions/v1beta1", "ReplicaSet", true), None);
        assert_eq!(owner("batch/v1", "Job", true), None);
    }

    #[test]
    fn features_of_the_kubelet_are_required_where_they_are_used() {
        let rules = json!([{"action": "Restart"}, {"action": "RestartAllContainers"}]);
        let scheduling = of_spec(&json!({"initContainers": [{"restartPolicyRules": rules}]}));
        assert!(scheduling.required_features.contains("RestartAllContainersOnContainerExits"));
        let both = of_spec(&json!({"hostNetwork": true, "hostUsers": false}));
        assert!(both.required_features.contains("UserNamespacesHostNetworkSupport"));
        for one in [json!({"hostNetwork": true}), json!({"hostUsers": false})] {
            assert!(of_spec(&one).required_features.is_empty());
        }
    }

    #[test]
    fn affinity_and_spreading_are_read_with_the_pods_namespace() {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}});
        let spread = json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        });
        let scheduling = of_spec(&json!({
            "affinity": {"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
            }},
            "topologySpreadConstraints": [spread, {"whenUnsatisfiable": "Perhaps"}],
        }));
        let [term] = scheduling.pod_affinity.anti_required.as_slice() else {
            panic!("{scheduling:?}")
        };
        assert!(term.namespaces.contains("own"));
        let [constraint] = scheduling.topology_spread.as_slice() else { panic!("{scheduling:?}") };
        assert_eq!(constraint.selector, LabelSelector::Nothing);
    }

    #[test]
    fn an_unknown_operator_of_a_toleration_tolerates_nothing_and_an_unknown_effect_is_none() {
        let scheduling = of_spec(&json!({"tolerations": [
            {"operator": "Exists"},
            {"key": "k", "operator": "Gt", "value": "5"},
            {"key": "k", "effect": "Never"},
        ]}));
        let operators: Vec<_> = scheduling.tolerations.iter().map(|it| it.operator).collect();
        assert_eq!(operators, [TolerationOperator::Exists, TolerationOperator::Unknown]);
    }
}
