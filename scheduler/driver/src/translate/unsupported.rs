//! Needs of a Pod that this scheduler does not implement yet. Such a Pod is held and says so; it
//! is never placed as if it had not asked.

use super::spread::spread_constraint;
use crate::wire::WirePodSpec;

/// The first such field, without indices, or none.
pub(super) fn unsupported_field(spec: &WirePodSpec) -> Option<String> {
    let fields = [
        ("spec.schedulingGroup", spec.scheduling_group.is_some()),
        ("spec.workloadRef", spec.workload_ref.is_some()),
    ];
    let field = fields.iter().find(|(_, asked)| *asked).map(|(field, _)| (*field).to_owned());
    field.or_else(|| unknown_spreading(spec)).or_else(|| unsupported_volume(spec))
}

/// A value that is newer than this scheduler.
fn unknown_spreading(spec: &WirePodSpec) -> Option<String> {
    let mut constraints = spec.topology_spread_constraints.iter();
    let field = constraints.find_map(|constraint| spread_constraint(constraint).err())?;
    Some(format!("spec.topologySpreadConstraints.{field}"))
}

/// Volume types that every Node can serve, as far as kube-scheduler knows, or that a plugin of volumes looks at. Any
/// other, one that is newer than this list, may need scheduling.
const KNOWN_VOLUMES: [&str; 30] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

fn unsupported_volume(spec: &WirePodSpec) -> Option<String> {
    let sources = spec.volumes.iter().flat_map(|volume| &volume.fields);
    sources
        .filter(|key| *key != "name" && !KNOWN_VOLUMES.contains(&key.as_str()))
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
            (json!({"schedulingGroup": {}}), "spec.schedulingGroup"),
            (json!({"workloadRef": {"name": "w"}}), "spec.workloadRef"),
            (
                json!({"topologySpreadConstraints": [{"whenUnsatisfiable": "Perhaps"}]}),
                "spec.topologySpreadConstraints.whenUnsatisfiable",
            ),
            (json!({"volumes": [{"name": "v", "brandNew": {}}]}), "spec.volumes.brandNew"),
        ];
        for (spec, expected) in cases {
            assert_eq!(field(spec).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_implemented_or_needs_no_scheduling_is_fine() {
        let term = json!({"topologyKey": "zone"});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        let spec = json!({
            "affinity": {"podAffinity": required, "podAntiAffinity": required},
            "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
            "hostNetwork": true,
            "hostUsers": false,
            "containers": [{
                "ports": [{"hostPort": 80}],
                "restartPolicyRules": [{"action": "RestartAllContainers"}],
            }],
            "volumes": [
                {"name": "a", "projected": {}}, {"name": "b", "emptyDir": {}},
                {"name": "c", "hostPath": {}}, {"name": "d", "configMap": {}},
                {"name": "e", "image": {"reference": "r"}},
            ],
        });
        assert_eq!(field(spec), None);
    }
}
