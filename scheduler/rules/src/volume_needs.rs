//! What the volumes of a Pod ask of a Node, without the names of its claims: all Pods of a StatefulSet ask the same, so
//! a Node is judged once for all of them. The filters of volumes say the same, Node by Node (`tests/volumes/needs.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    ClusterPod, InTreePlugin, Labels, NodeName, NodeSelector, NodeSelectorTerm,
    PersistentVolumeClaim, PodVolume, Quantity, VolumeSource,
};

use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext};
use crate::plugins::Plugin;
use crate::plugins::volumes::{
    Attachable, Attaching, VolumeRequest, ZoneConditions, are_zones_met, free_volumes, has_room,
    makes_volumes, own_volume, publishes_capacity,
};
use crate::reason::Reason;
use crate::rules::Rules;

const PLUGINS: [Plugin; 4] = [
    Plugin::VolumeRestrictions,
    Plugin::NodeVolumeLimits,
    Plugin::VolumeBinding,
    Plugin::VolumeZone,
];

/// A Node takes the volumes if [`Self::admit`] and [`Self::find_storage`] hold, and so many volumes of each driver can
/// be attached to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeNeeds {
    /// Where its volumes can be used. All must hold.
    affinities: Vec<NodeSelector>,
    zones: ZoneConditions,
    /// Where volumes can be made for it, by class: one term of each must match.
    topologies: Vec<Vec<NodeSelectorTerm>>,
    /// A free PersistentVolume that it takes.
    takes: Option<VolumeRequest>,
    /// What is made for it of classes whose capacity is published, in order.
    provisions: Vec<(Arc<str>, Quantity)>,
    /// How many volumes of each driver it brings.
    pub attaches: BTreeMap<Arc<str>, usize>,
    /// Its claims that are not bound are of so many classes.
    delayed_classes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodVolumeNeeds {
    pub needs: VolumeNeeds,
    /// Its volumes that exist: where one is attached already, it takes no further place.
    pub attachables: Vec<Attachable>,
    /// The Node that was selected for one of its claims. No other is feasible, and this one may not be.
    pub selected_node: Option<NodeName>,
}

impl PodVolumeNeeds {
    /// `None`: the Pod fits on no Node, or what it asks cannot be said without the names of its claims; the filters tell.
    pub fn of(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Option<Self> {
        let mut state = CycleState::default();
        for plugin in PLUGINS {
            if !rules.filters_by(plugin) {
                return None;
            }
            if let Some(pre_filter) = plugin.registration().pre_filter {
                pre_filter(PodContext { rules, cluster, pod }, &mut state).ok()?;
            }
        }
        let has_disk = pod.volumes.iter().any(|volume| matches!(volume, PodVolume::Disk(_)));
        if has_disk || state.exclusive_claims.is_some() {
            return None;
        }
        let attaching = Attaching { cluster, csi_node: None };
        let attachables: Option<BTreeSet<Option<Attachable>>> =
            pod.volumes.iter().map(|it| attaching.of(pod, it, |_| None).ok()).collect();
        let mut it = Self {
            needs: VolumeNeeds { zones: state.volume_zones, ..VolumeNeeds::default() },
            attachables: attachables?.into_iter().flatten().collect(),
            selected_node: None,
        };
        for claim in &state.claims_to_bind.bound {
            it.needs.add_bound(cluster, claim)?;
        }
        let delayed = &state.claims_to_bind.delayed;
        let classes: BTreeSet<&Arc<str>> = delayed.iter().map(|claim| &claim.class).collect();
        it.needs.delayed_classes = classes.len();
        for claim in delayed {
            match cluster.assumed_volumes.selected_node(claim) {
                Some(node) => it.selected_node = Some(node.into()),
                None => it.needs.add_delayed(cluster, claim)?,
            }
        }
        it.needs.settle(&it.attachables);
        Some(it)
    }
}

impl VolumeNeeds {
    fn add_bound(&mut self, cluster: &Cluster, claim: &PersistentVolumeClaim) -> Option<()> {
        let volume = cluster.objects.volumes.get(claim.bound_to()?)?;
        // How it is attached, and where it can be used, depends on the CSINode.
        if matches!(volume.source, VolumeSource::InTree { .. }) {
            return None;
        }
        self.affinities.extend(volume.node_affinity.clone());
        Some(())
    }

    fn add_delayed(&mut self, cluster: &Cluster, claim: &PersistentVolumeClaim) -> Option<()> {
        let class = cluster.objects.storage_classes.get(&claim.class)?;
        if own_volume(cluster, claim).is_some() {
            return None;
        }
        let index = &cluster.volume_index;
        if !makes_volumes(class) {
            // Which of several it is depends on the other claims, and a selector on more than is known here.
            let is_odd = self.takes.is_some()
                || claim.selector.is_some()
                || index.has_free_attachable(&claim.class);
            self.takes = Some(VolumeRequest::of(claim));
            return (!is_odd).then_some(());
        }
        if index.has_free(&claim.class) || InTreePlugin::by_name(&class.provisioner).is_some() {
            return None;
        }
        if !class.allowed_topologies.is_empty() {
            self.topologies.push(class.allowed_topologies.clone());
        }
        if publishes_capacity(cluster, class) {
            self.provisions.push((claim.class.clone(), claim.request));
        }
        Some(())
    }

    /// The same needs are written in the same way.
    fn settle(&mut self, attachables: &[Attachable]) {
        fn in_order<T: Ord>(of: &mut Vec<T>) {
            of.sort_unstable();
            of.dedup();
        }
        in_order(&mut self.affinities);
        in_order(&mut self.zones);
        in_order(&mut self.topologies);
        self.provisions.sort_unstable();
        for (driver, _) in attachables {
            *self.attaches.entry(driver.clone()).or_default() += 1;
        }
    }

    /// The part of it that the labels of a Node alone decide. `None`: there is none.
    pub fn of_labels(&self) -> Option<Self> {
        let Self {
            affinities,
            zones,
            topologies,
            takes: _,
            provisions: _,
            attaches: _,
            delayed_classes: _,
        } = self;
        let is_any = !(affinities.is_empty() && zones.is_empty() && topologies.is_empty());
        is_any.then(|| Self {
            affinities: affinities.clone(),
            zones: zones.clone(),
            topologies: topologies.clone(),
            ..Self::default()
        })
    }

    /// Whether [`Self::reasons`] can tell: of claims of several classes, the first that lacks something decides.
    pub fn has_known_reasons(&self) -> bool {
        self.delayed_classes <= 1 || self.provisions.is_empty()
    }

    /// Why a Node with these labels does not take the volumes, in kube-scheduler's order.
    pub fn reasons(&self, cluster: &Cluster, labels: &Labels, is_attachable: bool) -> Vec<Reason> {
        if !is_attachable {
            return vec![Reason::MAX_VOLUME_COUNT];
        }
        let mut reasons = Vec::new();
        if !self.affinities.iter().all(|it| it.matches_labels(labels)) {
            reasons.push(Reason::VOLUME_NODE_AFFINITY);
        }
        if !self.finds_volume(cluster, labels) || !self.is_topology_allowed(labels) {
            reasons.push(Reason::NO_VOLUME_TO_BIND);
        } else if !has_room(cluster, labels, &self.provisions) {
            reasons.push(Reason::NOT_ENOUGH_STORAGE);
        }
        if reasons.is_empty() && !are_zones_met(&self.zones, labels) {
            reasons.push(Reason::VOLUME_ZONE);
        }
        reasons
    }

    fn is_topology_allowed(&self, labels: &Labels) -> bool {
        self.topologies.iter().all(|terms| terms.iter().any(|term| term.matches_labels(labels)))
    }

    fn finds_volume(&self, cluster: &Cluster, labels: &Labels) -> bool {
        let is_free = |it: &VolumeRequest| free_volumes(cluster, it, labels).next().is_some();
        self.takes.as_ref().is_none_or(is_free)
    }

    /// Whether its volumes can be used, or made, on a Node with these labels.
    pub fn admit(&self, labels: &Labels) -> bool {
        self.affinities.iter().all(|it| it.matches_labels(labels))
            && are_zones_met(&self.zones, labels)
            && self.is_topology_allowed(labels)
    }

    /// Labels of which every Node that takes it has one of these values.
    pub fn narrowings(&self) -> impl Iterator<Item = (&Arc<str>, &BTreeSet<Arc<str>>)> {
        self.affinities.iter().filter_map(NodeSelector::narrowest)
    }

    /// Whether it matters what storage is free near a Node.
    pub fn look_at_storage(&self) -> bool {
        self.takes.is_some() || !self.provisions.is_empty()
    }

    /// Whether a PersistentVolume that it takes is free, and there is room for those that are made, for a Node with these
    /// labels.
    pub fn find_storage(&self, cluster: &Cluster, labels: &Labels) -> bool {
        self.finds_volume(cluster, labels) && has_room(cluster, labels, &self.provisions)
    }
}
