//! After a panic: the same knowledge, everything derived from it built anew.

use model::PodUid;
use rules::{AssumedVolumes, Cluster};

use crate::engine::{Engine, Observed, Outbox, Queues};
use crate::placing::Placing;
use crate::record::{Record, Stage};
use crate::records::Records;
use crate::rejection::Rejection;

impl Engine {
    /// Rebuilds the engine after a panic in any call. If an attempt was under way, its Pod is quarantined until it
    /// changes, and returned.
    ///
    /// What was observed (Nodes, Pods, Corridors) and what is reserved (for bound and
    /// binding Pods) is kept; queues and sums, which the panic may have left half
    /// changed, are derived again.
    pub fn recover(&mut self) -> Option<PodUid> {
        let config = self.config.clone();
        // Without `..`: a new field of the engine must be kept or derived here.
        let Self {
            config: _,
            now,
            observed,
            placing,
            ledger: _,
            nominations: _,
            queues,
            outbox,
            rng,
            trying: culprit,
            stats,
            queue_metrics,
        } = std::mem::replace(self, Self::new(config.clone()));
        let Observed {
            mut cluster,
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
            parked: _,
            wake_index: _,
            throttle,
            awaited: _,
            ready: _,
            kept: _,
            room_changes: _,
            sweep_at,
            sweep_after: _,
        } = queues;
        let pods = pods.into_sorted();
        forget_pods(&mut cluster, &pods);
        *self = Self {
            now,
            placing: Placing::of(&cluster, placing.seats().to_vec(), config.cache),
            observed: Observed {
                cluster,
                pods: Records::default(),
                objects: objects.without_queues(),
                fresh,
                excluded,
                foreign,
                unsynced,
                claims_in_flight,
                pods_seen,
            },
            queues: Queues { throttle: throttle.without_pods(), sweep_at, ..Queues::default() },
            outbox: Outbox { reports: outbox.reports.only_scheduled(), ..outbox },
            rng,
            stats: stats.after_failure(),
            queue_metrics,
            ..Self::new(config)
        };
        self.recover_pods(pods, culprit.as_ref());
        culprit.and_then(|culprit| self.quarantine(culprit))
    }

    /// The Pod waits until it changes.
    fn quarantine(&mut self, culprit: PodUid) -> Option<PodUid> {
        self.stats.quarantined += 1;
        let record = self.observed.pods.get_mut(&culprit)?;
        record.rejection = Some(Box::new(Rejection::Quarantined));
        self.queue_metrics.tried(self.now, record);
        self.outbox.reports.unschedulable(self.now, &culprit, &record.report);
        Some(culprit)
    }

    fn recover_pods(&mut self, pods: Vec<Record>, culprit: Option<&PodUid>) {
        for record in pods {
            let is_culprit = culprit == Some(&record.pod.uid);
            self.recover_pod(record, is_culprit);
        }
        self.assume_claims_in_flight();
    }

    fn recover_pod(&mut self, mut record: Record, is_culprit: bool) {
        let uid = record.pod.uid.clone();
        if is_culprit {
            // Whatever it took was never handed out.
            record.reservation = None;
            record.nominated = None;
        }
        let to = match record.stage {
            _ if is_culprit => Stage::OnHold,
            Stage::Binding(_) | Stage::Bound | Stage::Gated | Stage::Finished => {
                record.stage.clone()
            }
            _ => Stage::Active,
        };
        if let Some(reservation) = &record.reservation {
            self.ledger.take(&record.pod, reservation);
            self.ledger.commit();
            self.assume_objects(&uid, reservation);
        }
        self.restore_nomination(&record);
        record.stage = Stage::Gated;
        (record.parked_as, record.woken_as) = (None, None);
        *self.stats.of_stage(&record.stage) += 1;
        self.observed.pods.insert(record);
        self.move_to(&uid, to);
        self.sync_pod_to_cluster(&uid);
    }
}

/// Of Pods that are shown anew, with what they have taken.
fn forget_pods(cluster: &mut Cluster, pods: &[Record]) {
    for record in pods {
        cluster.remove_pod(&record.pod.uid);
    }
    cluster.assumed_volumes = AssumedVolumes::default();
    cluster.devices.forget_all();
}
