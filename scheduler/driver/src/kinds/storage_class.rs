//! StorageClasses: when volumes of a class are bound or made, by what, and where.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::{BindingMode, StorageClass};
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireStorageClass {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    provisioner: String,
    volume_binding_mode: Option<String>,
    allowed_topologies: Vec<WireTopologyTerm>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireTopologyTerm {
    match_label_expressions: Vec<WireTopologyExpression>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireTopologyExpression {
    key: String,
    values: Vec<String>,
}

kube_resource!(WireStorageClass, "StorageClass", "storage.k8s.io", "v1", "storageclasses", Cluster);

impl WatchedResource for WireStorageClass {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::StorageClass);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let term = |term: &WireTopologyTerm| {
            let expressions = term.match_label_expressions.iter();
            StorageClass::topology_term(expressions.map(|it| (it.key.as_str(), it.values.clone())))
        };
        let name = key(&self.metadata).name;
        let class = StorageClass {
            name: name.clone(),
            provisioner: self.provisioner.as_str().into(),
            binding_mode: self.volume_binding_mode.as_deref().map(BindingMode::parse),
            allowed_topologies: self.allowed_topologies.iter().map(term).collect(),
        };
        Some(Event::seen(ClusterObject::StorageClass(name, class)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::StorageClass(key.name)))
    }
}
