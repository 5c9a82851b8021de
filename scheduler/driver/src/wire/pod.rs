use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WirePod {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WirePodSpec,
    pub status: WirePodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodSpec {
    pub scheduler_name: String,
    pub node_name: String,
    pub priority: Option<i32>,
    pub node_selector: BTreeMap<String, String>,
    pub tolerations: Vec<WireToleration>,
    pub containers: Vec<WireContainer>,
    pub init_containers: Vec<WireContainer>,
    pub overhead: BTreeMap<String, String>,
    pub resources: WireResourceLists,
    pub scheduling_gates: Vec<WireGate>,
    pub affinity: WireAffinity,
    pub topology_spread_constraints: Vec<IgnoredAny>,
    pub resource_claims: Vec<IgnoredAny>,
    pub scheduling_group: Option<IgnoredAny>,
    pub workload_ref: Option<IgnoredAny>,
    pub volumes: Vec<FieldNames>,
    pub host_network: bool,
    pub host_users: Option<bool>,
    pub active_deadline_seconds: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireGate {
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireToleration {
    pub key: String,
    pub operator: String,
    pub value: String,
    pub effect: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireContainer {
    pub name: String,
    pub resources: WireResourceLists,
    pub ports: Vec<WirePort>,
    /// On an init container, `Always` makes it a sidecar.
    pub restart_policy: String,
    pub restart_policy_rules: Vec<WireRestartRule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireResourceLists {
    pub requests: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePort {
    pub host_port: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireRestartRule {
    pub action: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireAffinity {
    #[serde(rename = "nodeAffinity")]
    pub node: FieldNames,
    #[serde(rename = "podAffinity")]
    pub pod: FieldNames,
    #[serde(rename = "podAntiAffinity")]
    pub pod_anti: FieldNames,
}

/// Which fields an object has, without what is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames(pub Vec<String>);

impl<'de> Deserialize<'de> for FieldNames {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = FieldNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldNames, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(FieldNames(names))
            }
        }
        from.deserialize_map(Names)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodStatus {
    pub phase: String,
    pub start_time: Option<Time>,
    pub conditions: Vec<WireCondition>,
    pub container_statuses: Vec<WireContainerStatus>,
    pub init_container_statuses: Vec<WireContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
    pub message: String,
}

/// What the kubelet has admitted and applied; differs from the spec during a resize.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireContainerStatus {
    pub name: String,
    pub allocated_resources: BTreeMap<String, String>,
    pub resources: WireResourceLists,
}

kube_resource!(WirePod, "Pod", "", "v1", "pods", NamespaceResourceScope);
