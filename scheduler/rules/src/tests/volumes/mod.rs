//! Volumes: makers of the objects behind them, and a file for each plugin.

mod binding;
mod diagnosis;
mod limits;
mod pre_filter;
mod properties;
mod restrictions;
mod zone;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    AccessMode, BindingMode, ClusterPod, CsiDriver, CsiNode, CsiStorageCapacity, InlineDisk,
    NodeSelector, ObjectKey, PersistentVolume, PersistentVolumeClaim, PodVolume, Quantity,
    RawNodeTerm, StorageClass, VolumeAttachment, VolumePhase, VolumeSource,
};

use crate::testkit::{PodBuilder, labels, raw};
use crate::{Cluster, ClusterObject, Reason, Rules, find_pod_volumes};

const GIB: i64 = 1 << 30;

fn gib(count: i64) -> Quantity {
    Quantity::from_whole(count * GIB)
}

impl PodBuilder {
    fn claims(self, names: &[&str]) -> Self {
        self.volumes(names.iter().map(|name| PodVolume::Claim((*name).into())))
    }

    fn ephemeral(self, claim: &str) -> Self {
        self.volumes([PodVolume::Ephemeral(claim.into())])
    }

    fn disk(self, disk: InlineDisk) -> Self {
        self.volumes([PodVolume::Disk(disk)])
    }

    fn volumes(self, volumes: impl IntoIterator<Item = PodVolume>) -> Self {
        self.with(|pod| pod.volumes = pod.volumes.iter().cloned().chain(volumes).collect())
    }
}

/// A claim of `team-a`, or `team-b/name`, for 1 GiB that is not bound.
fn claim(name: &str, class: &str) -> PersistentVolumeClaim {
    let (namespace, name) = name.split_once('/').unwrap_or(("team-a", name));
    PersistentVolumeClaim {
        uid: format!("uid-{name}").into(),
        class: class.into(),
        request: gib(1),
        access_modes: [AccessMode::ReadWriteOnce].into_iter().collect(),
        ..PersistentVolumeClaim::new(ObjectKey::new(namespace, name))
    }
}

fn bound(name: &str, volume: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        volume_name: Some(volume.into()),
        is_bind_completed: true,
        ..claim(name, "")
    }
}

fn exclusive(claim: PersistentVolumeClaim) -> PersistentVolumeClaim {
    let access_modes = [AccessMode::ReadWriteOncePod].into_iter().collect();
    PersistentVolumeClaim { access_modes, ..claim }
}

/// 1 GiB that any Node reaches.
fn volume(name: &str, class: &str) -> PersistentVolume {
    PersistentVolume {
        class: class.into(),
        capacity: gib(1),
        phase: VolumePhase::Available,
        access_modes: [AccessMode::ReadWriteOnce].into_iter().collect(),
        ..PersistentVolume::new(name)
    }
}

fn csi_volume(name: &str, handle: &str) -> PersistentVolume {
    let source = VolumeSource::Csi { driver: "x.csi".into(), handle: handle.into() };
    PersistentVolume { source, ..volume(name, "") }
}

fn raw_term(key: &str, operator: &str, values: &[&str]) -> RawNodeTerm {
    RawNodeTerm { expressions: vec![raw(key, operator, values)], fields: Vec::new() }
}

fn near(volume: PersistentVolume, key: &str, value: &str) -> PersistentVolume {
    let node_affinity = Some(NodeSelector::parse(&[raw_term(key, "In", &[value])]));
    PersistentVolume { node_affinity, ..volume }
}

/// A class that waits for the first consumer.
fn class(name: &str, provisioner: &str) -> StorageClass {
    StorageClass {
        name: name.into(),
        provisioner: provisioner.into(),
        binding_mode: Some(BindingMode::WaitForFirstConsumer),
        allowed_topologies: Vec::new(),
    }
}

fn by_hand() -> StorageClass {
    class("local", "kubernetes.io/no-provisioner")
}

fn csi_node(name: &str, count: Option<i32>) -> CsiNode {
    CsiNode {
        name: name.into(),
        drivers: [("x.csi".into(), count)].into(),
        migrated_plugins: BTreeSet::default(),
    }
}

fn attachment(name: &str, node: &str, volume: &str) -> VolumeAttachment {
    VolumeAttachment {
        name: name.into(),
        node: node.into(),
        attacher: "x.csi".into(),
        volume_name: Some(volume.into()),
    }
}

/// On all Nodes.
fn capacity(name: &str, class: &str, limit: Option<i64>, total: Option<i64>) -> CsiStorageCapacity {
    CsiStorageCapacity {
        key: ObjectKey::new("drivers", name),
        class: class.into(),
        node_topology: Some(model::LabelSelector::EVERYTHING),
        limit: limit.or(total).map(Quantity::from_whole),
        capacity: total.map(Quantity::from_whole),
    }
}

trait Put<T> {
    fn put(&mut self, object: T);
}

macro_rules! put {
    ($($object:ty as $kind:ident by $key:ident),+ $(,)?) => {
        $(impl Put<$object> for Cluster {
            fn put(&mut self, object: $object) {
                self.insert_object(ClusterObject::$kind(object.$key.clone(), object.into()));
            }
        })+
    };
}
put! {
    PersistentVolume as PersistentVolume by name,
    PersistentVolumeClaim as PersistentVolumeClaim by key,
    StorageClass as StorageClass by name,
    CsiNode as CsiNode by name,
    CsiDriver as CsiDriver by name,
    CsiStorageCapacity as CsiStorageCapacity by key,
    VolumeAttachment as VolumeAttachment by name,
}

/// What the Pod would take on the Node, as `claim=volume` and `claim+`.
fn taken(cluster: &Cluster, pod: &ClusterPod, node: &str) -> Result<Vec<String>, Vec<Reason>> {
    let node = &cluster.nodes[&node.into()];
    find_pod_volumes(&Rules::default(), cluster, pod, node).map(|bindings| {
        let taken = bindings.static_bindings.iter();
        let taken = taken.map(|(claim, volume)| format!("{}={volume}", claim.name));
        let made = bindings.dynamic_provisions.iter().map(|claim| format!("{}+", claim.name));
        taken.chain(made).collect()
    })
}
