//! After a panic: the same knowledge, everything derived from it built anew.

use model::PodUid;

use crate::engine::Engine;
use crate::placing::Placing;
use crate::record::Stage;
use crate::rejection::Rejection;

impl Engine {
    /// Rebuilds the engine after a panic inside `poll`, with the Pod that was being tried set
    /// aside until it changes. Returns that Pod.
    ///
    /// What was observed (Nodes, Pods, Corridors) and what is reserved (for bound and
    /// binding Pods) is kept; queues and sums, which the panic may have left half
    /// changed, are derived again.
    pub fn recover(&mut self) -> Option<PodUid> {
        let mut fresh = Self::new(self.config.clone());
        std::mem::swap(self, &mut fresh);
        let before = fresh;
        self.now = before.now;
        self.cluster = before.cluster;
        let pods = before.pods.into_sorted();
        for record in &pods {
            self.cluster.remove_pod(&record.pod.uid);
        }
        self.placing =
            Placing::of(&self.cluster, before.placing.seats().to_vec(), self.config.cache);
        self.excluded = before.excluded;
        self.device_classes = before.device_classes;
        self.throttle = before.throttle.without_pods();
        self.evictions = before.evictions;
        self.foreign = before.foreign;
        self.sweep_at = before.sweep_at;
        self.unsynced = before.unsynced;
        self.rng = before.rng;
        self.pods_seen = before.pods_seen;
        self.fresh = before.fresh;
        self.objects = before.objects.without_queues();
        self.stats.attempts_scheduled = before.stats.attempts_scheduled;
        self.stats.attempts_unschedulable = before.stats.attempts_unschedulable;
        self.stats.attempts_error = before.stats.attempts_error + 1;
        self.stats.quarantined = before.stats.quarantined;
        self.stats.preemptions = before.stats.preemptions;
        self.stats.preemption_victims = before.stats.preemption_victims;
        self.stats.woken_by_sweep = before.stats.woken_by_sweep;
        self.queue_metrics = before.queue_metrics;
        self.reports = before.reports.only_scheduled();
        self.uses = before.uses;
        let culprit = before.trying;
        for mut record in pods {
            let uid = record.pod.uid.clone();
            let is_culprit = culprit.as_ref() == Some(&uid);
            if is_culprit {
                // Whatever it took was never handed out.
                record.reservation = None;
                record.nominated = None;
            }
            let to = match record.stage {
                _ if is_culprit => Stage::OnHold,
                Stage::Binding { .. } | Stage::Bound | Stage::Gated | Stage::Finished => {
                    record.stage.clone()
                }
                _ => Stage::Active,
            };
            if let Some(reservation) = &record.reservation {
                self.ledger.take(&record.pod, reservation);
                self.ledger.commit();
            }
            self.restore_nomination(&record);
            record.stage = Stage::Gated;
            (record.parked_as, record.woken_as) = (None, None);
            *self.stats.of_stage(&record.stage) += 1;
            self.pods.insert(record);
            self.move_to(&uid, to);
            self.sync_pod_to_cluster(&uid);
        }
        let culprit = culprit?;
        self.stats.quarantined += 1;
        let record = self.pods.get_mut(&culprit)?;
        record.rejection = Some(Box::new(Rejection::Quarantined));
        self.queue_metrics.tried(self.now, record);
        self.reports.unschedulable(self.now, &culprit, &record.report);
        Some(culprit)
    }
}
