//! VolumeAttachments: volumes that take a slot of a Node, whether a Pod uses them or not.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::{NodeName, VolumeAttachment};
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireAttachment {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    attacher: String,
    node_name: String,
    source: Source,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    persistent_volume_name: Option<String>,
}

kube_resource!(
    WireAttachment,
    "VolumeAttachment",
    "storage.k8s.io",
    "v1",
    "volumeattachments",
    Cluster
);

impl WatchedResource for WireAttachment {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::VolumeAttachment);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let Spec { attacher, node_name, source } = self.spec;
        let name = key(&self.metadata).name;
        let attachment = VolumeAttachment {
            name: name.clone(),
            node: NodeName::new(&node_name),
            attacher: attacher.into(),
            volume_name: source.persistent_volume_name.map(Into::into),
        };
        Some(Event::seen(ClusterObject::VolumeAttachment(name, attachment)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::VolumeAttachment(key.name)))
    }
}
