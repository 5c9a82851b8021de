//! Pending Pods by queue, under kube-scheduler's names.

use engine::{Queue, QueueMetrics, QueuedBy, Stats};
use prometheus::{IntCounter, IntGauge, IntGaugeVec};

use super::make::{Made, Maker, gauge, raise_to};

#[derive(Debug)]
pub(super) struct Queues {
    /// In the order of their labels.
    pending: [IntGauge; 4],
    cache: [IntGauge; 3],
    /// Every queue and event is there from the start; found once, because they are raised at every turn.
    incoming: Vec<(Queue, QueuedBy, IntCounter)>,
    pub unschedulable: IntGaugeVec,
}

impl Queues {
    pub fn new(make: &Maker) -> Made<Self> {
        let pending = make.gauges(
            "scheduler_pending_pods",
            "Pods that wait, by queue: active, backoff, unschedulable, gated.",
            &["queue"],
        )?;
        let cache = make.gauges(
            "scheduler_cache_size",
            "What the scheduler knows: nodes, pods on nodes, assumed_pods whose Binding is open.",
            &["type"],
        )?;
        let incoming = make.counters(
            "scheduler_queue_incoming_pods_total",
            "Pods that came into a queue (active, backoff, unschedulable), by what brought them there: kube-scheduler's names, and CorridorObjectChange, AttestationPolicyChange, Other.",
            &["queue", "event"],
        )?;
        let both = Queue::ALL.into_iter().flat_map(|it| QueuedBy::ALL.map(|event| (it, event)));
        let incoming = both.map(|(queue, event)| {
            let labels = [queue.label(), event.label()];
            (queue, event, incoming.with_label_values(&labels))
        });
        Ok(Self {
            pending: ["active", "backoff", "unschedulable", "gated"]
                .map(|queue| pending.with_label_values(&[queue])),
            cache: ["nodes", "pods", "assumed_pods"].map(|it| cache.with_label_values(&[it])),
            incoming: incoming.collect(),
            unschedulable: make.gauges(
                "scheduler_unschedulable_pods",
                "Pods that wait because of a plugin: kube-scheduler's, and Corridor for floors that cannot be met. One that waits because of two counts for both. Counted every 5 s or so.",
                &["plugin", "profile"],
            )?,
        })
    }

    /// Only the leader reports pending Pods: sums over replicas would count each Pod twice.
    pub fn publish(&self, stats: &Stats, queue_metrics: &QueueMetrics, leads: bool) {
        let queues = [
            stats.active,
            stats.backoff,
            stats.parked + stats.in_queue + stats.blocked + stats.on_hold,
            stats.gated,
        ];
        for (pending, pods) in self.pending.iter().zip(queues) {
            pending.set(if leads { gauge(pods) } else { 0 });
        }
        for (cache, known) in self.cache.iter().zip([stats.nodes, stats.bound, stats.binding]) {
            cache.set(gauge(known));
        }
        for (queue, event, counter) in &self.incoming {
            raise_to(counter, queue_metrics.queued(*queue, *event));
        }
    }
}
