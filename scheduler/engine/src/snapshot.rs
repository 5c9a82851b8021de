//! The engine as it stands, to be written down and brought back. An engine that is brought back makes the same
//! decisions on the same calls: a journal begins with one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    ClusterNode, ClusterPod, Instant, LabelSelector, Labels, NodeName, ObjectKey, ObjectKind,
    ObjectRef, Owner, PodDisruptionBudget, PodUid,
};
use serde::{Deserialize, Serialize};

use crate::device_classes::DeviceClasses;
use crate::engine::{Engine, EngineConfig};
use crate::event::WatchedKind;
use crate::excluded_nodes::ExcludedNodes;
use crate::objects::Objects;
use crate::placing::Placing;
use crate::preempt::{Evictions, ForeignNominations};
use crate::queue::{NamespaceThrottle, ParkKey, Parked};
use crate::queue_metrics::QueueMetrics;
use crate::record::{Record, Stage};
use crate::reports::Reports;
use crate::rng::Rng;
use crate::stats::Stats;
use crate::uses::Uses;

/// What the engine knows, has reserved and has nominated. What can be counted or sorted again from it is left out: sums,
/// indexes, positions in queues.
///
/// Taking one copies references, not Pods: some 50 ms of 50,000 Pods on 5,000 Nodes. To write it takes more than ten
/// times as long, and can be done elsewhere.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    config: EngineConfig,
    now: Instant,
    nodes: Vec<ClusterNode>,
    /// The Node in each slot: ties are broken by slot.
    seats: Vec<Option<NodeName>>,
    namespaces: BTreeMap<Arc<str>, Labels>,
    budgets: Vec<PodDisruptionBudget>,
    #[serde(with = "crate::written::pairs")]
    services: BTreeMap<ObjectKey, Labels>,
    #[serde(with = "crate::written::pairs")]
    owners: BTreeMap<(Arc<str>, Owner), LabelSelector>,
    pods: Vec<Record>,
    /// Pods that the cluster shows otherwise than their records say: those of other schedulers, and some
    /// of which the rules need not know the last change.
    shown_otherwise: Vec<(PodUid, Option<Arc<ClusterPod>>)>,
    objects: Objects,
    fresh: BTreeSet<ObjectKind>,
    parked: Parked,
    excluded: ExcludedNodes,
    device_classes: DeviceClasses,
    throttle: NamespaceThrottle,
    evictions: Evictions,
    foreign: ForeignNominations,
    sweep_at: Instant,
    #[serde(default)]
    sweep_after: Option<ParkKey>,
    reports: Reports,
    uses: Uses,
    #[serde(with = "crate::written::pairs")]
    kept: BTreeMap<ObjectRef, u64>,
    room_changes: u64,
    unsynced: BTreeSet<WatchedKind>,
    rng: Rng,
    pods_seen: u64,
    trying: Option<PodUid>,
    stats: Stats,
    queue_metrics: QueueMetrics,
}

impl Snapshot {
    /// When it was taken, on the clock of the process that took it.
    pub fn at(&self) -> Instant {
        self.now
    }
}

impl Engine {
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            config: self.config.clone(),
            now: self.now,
            nodes: self.cluster.nodes.values().cloned().collect(),
            seats: self.placing.seats().to_vec(),
            namespaces: self.cluster.namespaces.clone(),
            budgets: self.cluster.budgets.values().cloned().collect(),
            services: self.cluster.services.clone(),
            owners: self.cluster.owners.clone(),
            pods: self.pods.sorted().into_iter().map(|(_, record)| record.clone()).collect(),
            shown_otherwise: self.shown_otherwise(),
            objects: self.objects.clone(),
            fresh: self.fresh.clone(),
            parked: self.parked.clone(),
            excluded: self.excluded.clone(),
            device_classes: self.device_classes.clone(),
            throttle: self.throttle.clone(),
            evictions: self.evictions.clone(),
            foreign: self.foreign.clone(),
            sweep_at: self.sweep_at,
            sweep_after: self.sweep_after.clone(),
            reports: self.reports.clone(),
            uses: self.uses.clone(),
            kept: self.kept.clone(),
            room_changes: self.room_changes,
            unsynced: self.unsynced.clone(),
            rng: self.rng.clone(),
            pods_seen: self.pods_seen,
            trying: self.trying.clone(),
            stats: self.stats.clone(),
            queue_metrics: self.queue_metrics.clone(),
        }
    }

    /// Both maps are in order, so they are walked side by side.
    fn shown_otherwise(&self) -> Vec<(PodUid, Option<Arc<ClusterPod>>)> {
        let mut otherwise = Vec::new();
        let mut shown: Vec<_> = self.cluster.pods().iter().collect();
        shown.sort_unstable_by_key(|(uid, _)| *uid);
        let mut shown = shown.into_iter().peekable();
        for (uid, record) in self.pods.sorted() {
            while let Some((other, pod)) = shown.next_if(|(other, _)| *other < uid) {
                otherwise.push((other.clone(), Some(pod.clone())));
            }
            let pod = shown.next_if(|(other, _)| *other == uid).map(|(_, pod)| pod);
            if !record.is_shown_as(pod.map(|pod| &**pod)) {
                otherwise.push((uid.clone(), pod.cloned()));
            }
        }
        otherwise.extend(shown.map(|(other, pod)| (other.clone(), Some(pod.clone()))));
        otherwise
    }

    /// Brings back the engine of which the snapshot was taken.
    pub fn restore(snapshot: Snapshot) -> Self {
        let mut engine = Self::new(snapshot.config);
        engine.now = snapshot.now;
        let nodes = snapshot.nodes.into_iter();
        engine.cluster.nodes = nodes.map(|node| (node.node.name.clone(), node)).collect();
        engine.cluster.namespaces = snapshot.namespaces;
        for budget in snapshot.budgets {
            engine.cluster.insert_budget(budget);
        }
        engine.cluster.services = snapshot.services;
        engine.cluster.owners = snapshot.owners;
        engine.objects = snapshot.objects;
        engine.fresh = snapshot.fresh;
        engine.excluded = snapshot.excluded;
        engine.device_classes = snapshot.device_classes;
        engine.throttle = snapshot.throttle;
        engine.evictions = snapshot.evictions;
        engine.foreign = snapshot.foreign;
        engine.sweep_at = snapshot.sweep_at;
        engine.sweep_after = snapshot.sweep_after;
        engine.reports = snapshot.reports;
        engine.reports.know_members();
        engine.uses = snapshot.uses;
        engine.kept = snapshot.kept;
        engine.room_changes = snapshot.room_changes;
        engine.unsynced = snapshot.unsynced;
        engine.rng = snapshot.rng;
        engine.pods_seen = snapshot.pods_seen;
        engine.trying = snapshot.trying;
        for record in snapshot.pods {
            engine.restore_pod(record);
        }
        for (uid, shown) in snapshot.shown_otherwise {
            match shown {
                Some(pod) => engine.cluster.insert_pod(pod),
                None => engine.cluster.remove_pod(&uid),
            };
        }
        for (key, group) in snapshot.parked.groups() {
            for pod in group.pods.values() {
                if let Some(record) = engine.pods.get_mut(pod) {
                    record.parked_as = Some(Box::new(key.clone()));
                }
            }
        }
        engine.parked = snapshot.parked;
        engine.parked.rebuild_nominated();
        engine.placing = Placing::of(&engine.cluster, snapshot.seats, engine.config.cache);
        let classes: Vec<ParkKey> = engine.parked.classes().cloned().collect();
        for class in classes {
            engine.file(&class);
        }
        // Counted again on the way, but it counts more than can be seen.
        engine.stats = snapshot.stats;
        engine.queue_metrics = snapshot.queue_metrics;
        engine
    }

    fn restore_pod(&mut self, mut record: Record) {
        let uid = record.pod.uid.clone();
        if let Some(reservation) = &record.reservation {
            self.ledger.take(&record.pod, reservation);
            self.ledger.commit();
        }
        self.restore_nomination(&record);
        if let Some(pod) = record.in_cluster() {
            self.cluster.insert_pod(pod);
        }
        let stands = match record.stage {
            Stage::Active | Stage::Backoff | Stage::InQueue(_) | Stage::Blocked(_) => true,
            // Parked ones are written with all that their class knows of Nodes, those that are throttled and those
            // that are being bound with their namespace.
            Stage::Parked
            | Stage::Throttled
            | Stage::Gated
            | Stage::Finished
            | Stage::OnHold
            | Stage::Reporting
            | Stage::Binding { .. }
            | Stage::Bound => false,
        };
        let stage = record.stage.clone();
        if stands {
            record.stage = Stage::Gated;
            *self.stats.of_stage(&record.stage) += 1;
        }
        self.pods.insert(record);
        if stands {
            self.move_to(&uid, stage);
        }
    }
}
