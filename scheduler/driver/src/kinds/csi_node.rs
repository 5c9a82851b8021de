//! CSINodes: how many volumes of each driver can be attached to a Node.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::CsiNode;
use serde::Deserialize;

use super::volume_fields::annotation;
use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireCsiNode {
    #[serde(deserialize_with = "meta::of_volume")]
    metadata: meta::ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    drivers: Vec<WireDriver>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireDriver {
    name: String,
    allocatable: Option<Allocatable>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Allocatable {
    count: Option<i32>,
}

/// In-tree plugins whose disks the Node attaches by CSI.
const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

kube_resource!(WireCsiNode, "CSINode", "storage.k8s.io", "v1", "csinodes", Cluster);

impl WatchedResource for WireCsiNode {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::CsiNode);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let name = key(&self.metadata).name;
        let drivers = self.spec.drivers.iter();
        let node = CsiNode {
            name: name.clone(),
            drivers: drivers
                .map(|it| {
                    (it.name.as_str().into(), it.allocatable.as_ref().and_then(|it| it.count))
                })
                .collect(),
            migrated_plugins: CsiNode::parse_migrated_plugins(annotation(
                &self.metadata,
                MIGRATED_PLUGINS,
            )),
        };
        Some(Event::seen(ClusterObject::CsiNode(name, node)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::CsiNode(key.name)))
    }
}
