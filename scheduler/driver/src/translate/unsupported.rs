//! Needs of a Pod that this scheduler does not implement yet. Such a Pod is held and says so; it
//! is never placed as if it had not asked.

use crate::wire::{WireContainer, WirePodSpec};

/// The first such field, without indices, or none.
pub(super) fn unsupported_field(spec: &WirePodSpec) -> Option<String> {
    let affinity = &spec.affinity;
    let claims = !spec.resource_claims.is_empty();
    let fields = [
        ("spec.affinity.nodeAffinity", !affinity.node.0.is_empty()),
        ("spec.affinity.podAffinity", !affinity.pod.0.is_empty()),
        ("spec.affinity.podAntiAffinity", !affinity.pod_anti.0.is_empty()),
        ("spec.topologySpreadConstraints", !spec.topology_spread_constraints.is_empty()),
        ("spec.resourceClaims", claims),
        ("spec.schedulingGroup", spec.scheduling_group.is_some()),
        ("spec.workloadRef", spec.workload_ref.is_some()),
        // Both make kube-scheduler ask for a feature that the Node must declare.
        ("spec.hostUsers", spec.host_network && spec.host_users == Some(false)),
        ("spec.containers.restartPolicyRules", containers(spec).any(restarts_all)),
        ("spec.containers.ports.hostPort", containers(spec).any(uses_host_port)),
    ];
    let field = fields.iter().find(|(_, asked)| *asked).map(|(field, _)| (*field).to_owned());
    field.or_else(|| unsupported_volume(spec))
}

fn containers(spec: &WirePodSpec) -> impl Iterator<Item = &WireContainer> {
    spec.containers.iter().chain(&spec.init_containers)
}

fn uses_host_port(container: &WireContainer) -> bool {
    container.ports.iter().any(|port| port.host_port != 0)
}

fn restarts_all(container: &WireContainer) -> bool {
    container.restart_policy_rules.iter().any(|rule| rule.action == "RestartAllContainers")
}

/// Volume types that every Node can serve. Any other, also one that is newer than this list,
/// may need scheduling.
const VOLUMES_ANYWHERE: [&str; 15] = [
    "azureFile",
    "cephfs",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "flexVolume",
    "fc",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "nfs",
    "projected",
    "secret",
];

fn unsupported_volume(spec: &WirePodSpec) -> Option<String> {
    let sources = spec.volumes.iter().flat_map(|volume| &volume.0);
    sources
        .filter(|key| *key != "name" && !VOLUMES_ANYWHERE.contains(&key.as_str()))
        .map(|key| format!("spec.volumes.{key}"))
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn field(spec: Value) -> Option<String> {
        unsupported_field(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn names_each_field_that_is_not_implemented() {
        let cases = [
            (json!({"affinity": {"nodeAffinity": {"x": {}}}}), "spec.affinity.nodeAffinity"),
            (json!({"affinity": {"podAntiAffinity": {"x": []}}}), "spec.affinity.podAntiAffinity"),
            (json!({"topologySpreadConstraints": [{}]}), "spec.topologySpreadConstraints"),
            (json!({"resourceClaims": [{}]}), "spec.resourceClaims"),
            (json!({"schedulingGroup": {}}), "spec.schedulingGroup"),
            (json!({"hostNetwork": true, "hostUsers": false}), "spec.hostUsers"),
            (
                json!({"containers": [{"ports": [{"hostPort": 80}]}]}),
                "spec.containers.ports.hostPort",
            ),
            (
                json!({"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}),
                "spec.volumes.persistentVolumeClaim",
            ),
            (json!({"volumes": [{"name": "v", "brandNew": {}}]}), "spec.volumes.brandNew"),
        ];
        for (spec, expected) in cases {
            assert_eq!(field(spec).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_needs_no_scheduling_is_fine() {
        let spec = json!({
            "affinity": {"nodeAffinity": {}},
            "containers": [{"ports": [{"containerPort": 80}]}],
            "volumes": [
                {"name": "a", "projected": {}}, {"name": "b", "emptyDir": {}},
                {"name": "c", "hostPath": {}}, {"name": "d", "configMap": {}},
            ],
        });
        assert_eq!(field(spec), None);
    }
}
