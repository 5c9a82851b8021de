//! Whether volumes can be made for claims on a Node.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ClusterNode, CsiStorageCapacity, PersistentVolumeClaim, Quantity, StorageClass};

use crate::cluster::Cluster;
use crate::plugins::Plugin;
use crate::reason::Reason;

/// Of a class whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Whether a class makes volumes.
pub(crate) fn makes_volumes(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && &*class.provisioner != NO_PROVISIONER
}

/// `selected` are those whose volumes are being made on the Node already: what they take may be part of the published
/// capacity or not, so they are asked about singly. The first that fails decides.
pub(super) fn check_provisions(
    cluster: &Cluster,
    node: &ClusterNode,
    selected: &[&PersistentVolumeClaim],
    left: &[&PersistentVolumeClaim],
) -> Result<(), Reason> {
    for claim in selected.iter().chain(left) {
        let Some(class) = cluster.objects.storage_classes.get(&claim.class) else {
            let why = format!("failed to find storage class {:?}", claim.class).into();
            return Err(Reason::Failed { plugin: Plugin::VolumeBinding, why });
        };
        if !makes_volumes(class) || !allows(class, node) {
            return Err(Reason::NO_VOLUME_TO_BIND);
        }
        let has_room = |capacity: &CsiStorageCapacity| {
            capacity.limit.is_some_and(|it| it.rounded_up() >= claim.request.rounded_up())
        };
        let asks = claim.request != Quantity::default() && publishes_capacity(cluster, class);
        if asks && !capacities(cluster, class, node).any(has_room) {
            return Err(Reason::NOT_ENOUGH_STORAGE);
        }
    }
    if fit_together(cluster, node, left) { Ok(()) } else { Err(Reason::NOT_ENOUGH_STORAGE) }
}

pub(super) fn allows(class: &StorageClass, node: &ClusterNode) -> bool {
    let terms = &class.allowed_topologies;
    terms.is_empty() || terms.iter().any(|term| term.matches_labels(&node.node.labels))
}

/// By the name of the provisioner as it stands: an in-tree one is not translated here.
pub(super) fn publishes_capacity(cluster: &Cluster, class: &StorageClass) -> bool {
    let driver = cluster.objects.csi_drivers.get(&class.provisioner);
    driver.is_some_and(|driver| driver.has_storage_capacity)
}

fn capacities<'a>(
    cluster: &'a Cluster,
    class: &StorageClass,
    node: &ClusterNode,
) -> impl Iterator<Item = &'a CsiStorageCapacity> {
    let of_class = cluster.objects.capacities.values().filter(|it| it.class == class.name);
    let is_near = |capacity: &&CsiStorageCapacity| {
        let topology = capacity.node_topology.as_ref();
        topology.is_some_and(|topology| topology.matches(&node.node.labels))
    };
    of_class.filter(is_near)
}

/// Whether the claims of the Pod fit together, as far as is known: kube-scheduler asks for each as if it were alone,
/// and leaves the Pod with one volume on a Node that has no room for the other.
fn fit_together(cluster: &Cluster, node: &ClusterNode, claims: &[&PersistentVolumeClaim]) -> bool {
    let mut by_class: BTreeMap<&Arc<str>, Vec<Quantity>> = BTreeMap::new();
    for claim in claims {
        by_class.entry(&claim.class).or_default().push(claim.request.rounded_up());
    }
    by_class.into_iter().filter(|(_, requests)| requests.len() > 1).all(|(name, requests)| {
        let class = cluster.objects.storage_classes.get(name);
        let Some(class) = class.filter(|class| publishes_capacity(cluster, class)) else {
            return true;
        };
        let published: Option<Vec<Quantity>> =
            capacities(cluster, class, node).map(|it| it.capacity).collect();
        published.is_none_or(|published| sum(requests) <= sum(published))
    })
}

fn sum(quantities: Vec<Quantity>) -> Quantity {
    quantities.into_iter().fold(Quantity::default(), Quantity::saturating_add)
}
