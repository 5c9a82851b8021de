//! Whether volumes can be made for claims on a Node.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{CsiStorageCapacity, Labels, PersistentVolumeClaim, Quantity, StorageClass};

use crate::cluster::Cluster;
use crate::plugins::Plugin;
use crate::reason::Reason;

/// Of a class whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Whether a class makes volumes.
pub(crate) fn makes_volumes(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && &*class.provisioner != NO_PROVISIONER
}

/// On a Node with these labels. `selected` are those whose volumes are being made there already: what they take may be
/// part of the published capacity or not, so they are asked about singly. The first that fails decides.
pub(super) fn check_provisions(
    cluster: &Cluster,
    labels: &Labels,
    selected: &[&PersistentVolumeClaim],
    left: &[&PersistentVolumeClaim],
) -> Result<(), Reason> {
    for claim in selected.iter().chain(left) {
        let Some(class) = cluster.objects.storage_classes.get(&claim.class) else {
            let why = format!("failed to find storage class {:?}", claim.class).into();
            return Err(Reason::Failed { plugin: Plugin::VolumeBinding, why });
        };
        if !makes_volumes(class) || !allows(class, labels) {
            return Err(Reason::NO_VOLUME_TO_BIND);
        }
        if publishes_capacity(cluster, class)
            && !has_room_for(cluster, &claim.class, claim.request, labels)
        {
            return Err(Reason::NOT_ENOUGH_STORAGE);
        }
    }
    let publishes = |claim: &&&PersistentVolumeClaim| {
        let class = cluster.objects.storage_classes.get(&claim.class);
        class.is_some_and(|class| publishes_capacity(cluster, class))
    };
    let counted: Vec<(Arc<str>, Quantity)> =
        left.iter().filter(publishes).map(|it| (it.class.clone(), it.request)).collect();
    if fit_together(cluster, labels, &counted) { Ok(()) } else { Err(Reason::NOT_ENOUGH_STORAGE) }
}

pub(super) fn allows(class: &StorageClass, labels: &Labels) -> bool {
    let terms = &class.allowed_topologies;
    terms.is_empty() || terms.iter().any(|term| term.matches_labels(labels))
}

/// By the name of the provisioner as it stands: an in-tree one is not translated here.
pub(crate) fn publishes_capacity(cluster: &Cluster, class: &StorageClass) -> bool {
    let driver = cluster.objects.csi_drivers.get(&class.provisioner);
    driver.is_some_and(|driver| driver.has_storage_capacity)
}

/// Whether there is room near a Node with these labels for volumes of these classes, which all publish their capacity.
pub(crate) fn has_room(
    cluster: &Cluster,
    labels: &Labels,
    volumes: &[(Arc<str>, Quantity)],
) -> bool {
    volumes.iter().all(|(class, request)| has_room_for(cluster, class, *request, labels))
        && fit_together(cluster, labels, volumes)
}

fn has_room_for(cluster: &Cluster, class: &str, request: Quantity, labels: &Labels) -> bool {
    let is_large = |capacity: &CsiStorageCapacity| {
        capacity.limit.is_some_and(|it| it.rounded_up() >= request.rounded_up())
    };
    request == Quantity::default() || capacities(cluster, class, labels).any(is_large)
}

fn capacities<'a>(
    cluster: &'a Cluster,
    class: &str,
    labels: &'a Labels,
) -> impl Iterator<Item = &'a CsiStorageCapacity> {
    let near = cluster.volume_index.capacities_near(class, labels).into_iter();
    let near = near.filter_map(|key| cluster.objects.capacities.get(key));
    near.filter(|it| it.node_topology.as_ref().is_some_and(|topology| topology.matches(labels)))
}

/// Whether volumes for one Pod fit together, as far as is known: kube-scheduler asks for each as if it were alone,
/// and leaves the Pod with one volume on a Node that has no room for the other.
fn fit_together(cluster: &Cluster, labels: &Labels, volumes: &[(Arc<str>, Quantity)]) -> bool {
    let mut by_class: BTreeMap<&Arc<str>, Vec<Quantity>> = BTreeMap::new();
    for (class, request) in volumes {
        by_class.entry(class).or_default().push(request.rounded_up());
    }
    by_class.into_iter().filter(|(_, requests)| requests.len() > 1).all(|(class, requests)| {
        let published: Option<Vec<Quantity>> =
            capacities(cluster, class, labels).map(|it| it.capacity).collect();
        published.is_none_or(|published| sum(requests) <= sum(published))
    })
}

fn sum(quantities: Vec<Quantity>) -> Quantity {
    quantities.into_iter().fold(Quantity::default(), Quantity::saturating_add)
}
