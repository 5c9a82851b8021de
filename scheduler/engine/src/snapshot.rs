//! The engine as it stands, to be written down and brought back. An engine that is brought back makes the same
//! decisions on the same calls: a journal begins with one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ClusterNode, ClusterPod, Instant, NodeName, ObjectKind, ObjectRef, PodUid};
use rules::{Cluster, ClusterObjects, TypeVerdicts};
use serde::{Deserialize, Serialize};

use crate::devices::ClaimsInFlight;
use crate::engine::{Engine, EngineConfig, Observed, Outbox, Queues};
use crate::excluded_nodes::ExcludedNodes;
use crate::foreign_nominations::ForeignNominations;
use crate::objects::Objects;
use crate::observe::WatchedKind;
use crate::placing::Placing;
use crate::queue::{NamespaceThrottle, ParkKey, Parked};
use crate::queue_metrics::QueueMetrics;
use crate::record::{BindingStep, Record, Stage};
use crate::records::Records;
use crate::rng::Rng;
use crate::stats::Stats;

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
    cluster_objects: ClusterObjects,
    pods: Vec<Record>,
    /// Pods that the cluster shows otherwise than their records say: those of other schedulers, and some
    /// of which the rules need not know the last change.
    shown_otherwise: Vec<(PodUid, Option<Arc<ClusterPod>>)>,
    objects: Objects,
    fresh: BTreeSet<ObjectKind>,
    parked: Parked,
    excluded: ExcludedNodes,
    /// By expressions.
    #[serde(default)]
    selector_verdicts: Vec<(Arc<str>, TypeVerdicts)>,
    throttle: NamespaceThrottle,
    foreign: ForeignNominations,
    sweep_at: Instant,
    #[serde(default)]
    sweep_after: Option<ParkKey>,
    outbox: Outbox,
    #[serde(with = "model::pairs")]
    kept: BTreeMap<ObjectRef, u64>,
    room_changes: u64,
    unsynced: BTreeSet<WatchedKind>,
    #[serde(default)]
    claims_in_flight: ClaimsInFlight,
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
        // Without `..`: a new field of the engine must be written, or derived when it is brought back.
        let Self {
            config,
            now,
            observed,
            placing,
            ledger: _,
            nominations: _,
            queues,
            outbox,
            rng,
            trying,
            stats,
            queue_metrics,
        } = self;
        let Observed {
            cluster,
            pods,
            objects,
            fresh,
            excluded,
            foreign,
            unsynced,
            claims_in_flight,
            pods_seen,
        } = observed;
        let Queues {
            active: _,
            backoff: _,
            parked,
            wake_index: _,
            throttle,
            awaited: _,
            ready: _,
            kept,
            room_changes,
            sweep_at,
            sweep_after,
        } = queues;
        let (nodes, cluster_objects) = cluster.without_pods();
        Snapshot {
            config: config.clone(),
            now: *now,
            nodes: nodes.values().cloned().collect(),
            seats: placing.seats().to_vec(),
            cluster_objects: cluster_objects.clone(),
            pods: pods.sorted().into_iter().map(|(_, record)| record.clone()).collect(),
            shown_otherwise: self.shown_otherwise(),
            objects: objects.clone(),
            fresh: fresh.clone(),
            parked: parked.clone(),
            excluded: excluded.clone(),
            selector_verdicts: cluster.devices.verdicts.sorted(),
            throttle: throttle.clone(),
            foreign: foreign.clone(),
            sweep_at: *sweep_at,
            sweep_after: sweep_after.clone(),
            outbox: outbox.clone(),
            kept: kept.clone(),
            room_changes: *room_changes,
            unsynced: unsynced.clone(),
            claims_in_flight: claims_in_flight.clone(),
            rng: rng.clone(),
            pods_seen: *pods_seen,
            trying: trying.clone(),
            stats: stats.clone(),
            queue_metrics: queue_metrics.clone(),
        }
    }

    /// Both maps are in order, so they are walked side by side.
    fn shown_otherwise(&self) -> Vec<(PodUid, Option<Arc<ClusterPod>>)> {
        let mut otherwise = Vec::new();
        let mut shown: Vec<_> = self.observed.cluster.pods().iter().collect();
        shown.sort_unstable_by_key(|(uid, _)| *uid);
        let mut shown = shown.into_iter().peekable();
        for (uid, record) in self.observed.pods.sorted() {
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
        // Without `..`: what is written must be brought back.
        let Snapshot {
            config,
            now,
            nodes,
            seats,
            cluster_objects,
            pods,
            shown_otherwise,
            objects,
            fresh,
            parked,
            excluded,
            selector_verdicts,
            throttle,
            foreign,
            sweep_at,
            sweep_after,
            outbox,
            kept,
            room_changes,
            unsynced,
            claims_in_flight,
            rng,
            pods_seen,
            trying,
            stats,
            queue_metrics,
        } = snapshot;
        let mut cluster = Cluster::new(nodes, []);
        cluster.insert_objects(cluster_objects);
        for (expression, verdicts) in selector_verdicts {
            for (device_type, verdict) in verdicts {
                cluster.devices.verdicts.insert(&expression, &device_type, verdict);
            }
        }
        let observed = Observed {
            cluster,
            pods: Records::default(),
            objects,
            fresh,
            excluded,
            foreign,
            unsynced,
            claims_in_flight,
            pods_seen,
        };
        let queues =
            Queues { throttle, kept, room_changes, sweep_at, sweep_after, ..Queues::default() };
        let outbox = Outbox { reports: outbox.reports.with_members(), ..outbox };
        let mut engine = Self { now, observed, queues, outbox, rng, trying, ..Self::new(config) };
        engine.restore_pods(pods, shown_otherwise);
        engine.assume_claims_in_flight();
        engine.placing = Placing::of(&engine.observed.cluster, seats, engine.config.cache);
        engine.restore_parked(parked);
        // Counted again on the way, but it counts more than can be seen.
        (engine.stats, engine.queue_metrics) = (stats, queue_metrics);
        engine
    }

    fn restore_pods(
        &mut self,
        pods: Vec<Record>,
        shown_otherwise: Vec<(PodUid, Option<Arc<ClusterPod>>)>,
    ) {
        for record in pods {
            self.restore_pod(record);
        }
        for (uid, shown) in shown_otherwise {
            match shown {
                Some(pod) => self.observed.cluster.insert_pod(pod),
                None => self.observed.cluster.remove_pod(&uid),
            };
        }
    }

    fn restore_parked(&mut self, parked: Parked) {
        for (key, group) in parked.groups() {
            for pod in group.pods.values() {
                if let Some(record) = self.observed.pods.get_mut(pod) {
                    record.parked_as = Some(Box::new(key.clone()));
                }
            }
        }
        self.queues.parked = parked;
        self.queues.parked.rebuild_nominated();
        let classes: Vec<ParkKey> = self.queues.parked.classes().cloned().collect();
        for class in classes {
            self.file(&class);
        }
    }

    fn restore_pod(&mut self, mut record: Record) {
        let uid = record.pod.uid.clone();
        if let Some(reservation) = &record.reservation {
            self.ledger.take(&record.pod, reservation);
            self.ledger.commit();
            self.assume_objects(&uid, reservation);
        }
        self.restore_nomination(&record);
        if let Some(pod) = record.in_cluster() {
            self.observed.cluster.insert_pod(pod);
        }
        let stands = match record.stage {
            Stage::Active
            | Stage::Backoff
            | Stage::InQueue(_)
            | Stage::Blocked(_)
            | Stage::Binding(BindingStep::Awaiting { .. } | BindingStep::Ready) => true,
            // Parked ones are written with all that their class knows of Nodes, those that are throttled and those
            // that are being bound with their namespace.
            Stage::Parked
            | Stage::Throttled
            | Stage::Gated
            | Stage::Finished
            | Stage::OnHold
            | Stage::Reporting
            | Stage::Binding(_)
            | Stage::Bound => false,
        };
        let stage = record.stage.clone();
        if stands {
            record.stage = Stage::Gated;
            *self.stats.of_stage(&record.stage) += 1;
        }
        self.observed.pods.insert(record);
        if stands {
            self.move_to(&uid, stage);
        }
    }
}
