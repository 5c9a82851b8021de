//! Every metric of the scheduler. Names and labels of kube-scheduler where the meaning is the same.

use crds::Tampering;
use engine::Stats;
use model::{Amount, ObjectKind, ObjectRef};
use prometheus::core::Collector;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

/// The only profile so far: the scheduler's name.
const PROFILE: &str = crds::SCHEDULER_NAME;

#[derive(Debug)]
pub struct Metrics {
    pub registry: Registry,
    attempts: IntCounterVec,
    pending: IntGaugeVec,
    unschedulable: IntGaugeVec,
    cache: IntGaugeVec,
    reserved: Reserved,
    preemptions: Preemptions,
    leads: IntGaugeVec,
    quarantined: IntCounter,
    woken_by_sweep: IntCounter,
    reports_dropped: IntCounter,
    tampering: IntCounterVec,
    pub(crate) bind_seconds: Histogram,
    pub(crate) binds: IntCounterVec,
    pub(crate) binds_in_flight: IntGauge,
    pub(crate) writes: IntCounterVec,
    pub(crate) watch_events: IntCounterVec,
    pub(crate) watch_errors: IntCounterVec,
    pub(crate) unreadable: IntCounterVec,
}

impl Metrics {
    /// `cluster`: the label by which one Prometheus tells several clusters apart.
    pub fn new(cluster: &str) -> Result<Self, prometheus::Error> {
        let make = Maker { registry: Registry::new() };
        Ok(Self {
            attempts: make.counters(
                "scheduler_schedule_attempts_total",
                "Attempts to schedule Pods, by result: scheduled, unschedulable, error.",
                &["result", "profile"],
            )?,
            pending: make.gauges(
                "scheduler_pending_pods",
                "Pods that wait, by queue: active, backoff, unschedulable, gated.",
                &["queue"],
            )?,
            unschedulable: make.gauges(
                "scheduler_unschedulable_pods",
                "Pods that wait because of a plugin: Corridor, for floors that cannot be met.",
                &["plugin", "profile"],
            )?,
            cache: make.gauges(
                "scheduler_cache_size",
                "What the scheduler knows: nodes, pods on nodes, assumed_pods whose Binding is open.",
                &["type"],
            )?,
            reserved: Reserved::new(&make, cluster)?,
            preemptions: Preemptions::new(&make)?,
            leads: leads(&make)?,
            quarantined: make.counter(
                "corridor_quarantined_pods_total",
                "Pods set aside because the scheduler itself failed on them.",
            )?,
            woken_by_sweep: make.counter(
                "corridor_woken_by_sweep_total",
                "Pods that no event had woken. Not 0: an event was lost, or misjudged.",
            )?,
            reports_dropped: make.counter(
                "corridor_reports_dropped_total",
                "Events about scheduled Pods that were dropped because too many waited.",
            )?,
            tampering: make.tampering()?,
            bind_seconds: make.seconds(
                "corridor_bind_duration_seconds",
                "Time from a decision to the clear outcome of its Binding.",
            )?,
            binds: make.counters(
                "corridor_binds_total",
                "Bindings by outcome: bound, refused, gone, fenced (the API server saw a later leader), term_ended (another replica leads, and knows the outcome).",
                &["outcome"],
            )?,
            binds_in_flight: make
                .gauge("corridor_binds_in_flight", "Bindings without a clear outcome yet.")?,
            writes: make.counters(
                "corridor_writes_total",
                "What was written beside Bindings, by kind (condition, event, status, eviction) and result (ok, failed).",
                &["kind", "result"],
            )?,
            watch_events: make.counters(
                "corridor_watch_events_total",
                "Objects received from the API server, by resource.",
                &["resource"],
            )?,
            watch_errors: make.counters(
                "corridor_watch_errors_total",
                "Watches and lists that failed and were started again, by resource.",
                &["resource"],
            )?,
            unreadable: unreadable(&make)?,
            registry: make.registry,
        })
    }

    pub(crate) fn set_leads(&self, leads: bool) {
        self.leads.with_label_values(&[crds::SCHEDULER_NAME]).set(i64::from(leads));
    }

    pub(crate) fn tampered(&self, kind: Tampering) {
        self.tampering.with_label_values(&[kind.as_str()]).inc();
    }

    /// For the controllers: they notice what is done to objects.
    pub fn tampering(&self) -> IntCounterVec {
        self.tampering.clone()
    }

    /// What is reserved of an object now; `None` when it is gone, and its series with it.
    pub(crate) fn reserved(&self, object: &ObjectRef, reserved: Option<Amount>) {
        let series = match object.kind {
            ObjectKind::Corridor => &self.reserved.corridors,
            ObjectKind::MemoryBundle => &self.reserved.bundles,
        };
        let labels = [&*object.key.namespace, &*object.key.name];
        match reserved {
            #[expect(clippy::cast_precision_loss, reason = "an amount on a graph")]
            Some(reserved) => {
                series.with_label_values(&labels).set(reserved.milli() as f64 / 1000.0);
            }
            // What was never set cannot be removed, and need not be.
            None => drop(series.remove_label_values(&labels)),
        }
    }

    /// Publishes the engine's counters. Who waits, only the leader says: sums over replicas would count
    /// each Pod twice.
    pub(crate) fn publish(&self, stats: &Stats, leads: bool) {
        let results = [
            ("scheduled", stats.attempts_scheduled),
            ("unschedulable", stats.attempts_unschedulable),
            ("error", stats.attempts_error),
        ];
        for (result, total) in results {
            raise_to(&self.attempts.with_label_values(&[result, PROFILE]), total);
        }
        self.preemptions.publish(stats);
        raise_to(&self.quarantined, stats.quarantined);
        raise_to(&self.woken_by_sweep, stats.woken_by_sweep);
        raise_to(&self.reports_dropped, stats.reports_dropped);
        let queues = [
            ("active", stats.active),
            ("backoff", stats.backoff),
            ("unschedulable", stats.parked + stats.in_line + stats.aside + stats.held),
            ("gated", stats.gated),
        ];
        for (queue, pods) in queues {
            self.pending.with_label_values(&[queue]).set(if leads { gauge(pods) } else { 0 });
        }
        let held = if leads { gauge(stats.in_line + stats.aside) } else { 0 };
        self.unschedulable.with_label_values(&["Corridor", PROFILE]).set(held);
        let known =
            [("nodes", stats.nodes), ("pods", stats.bound), ("assumed_pods", stats.binding)];
        for (kind, count) in known {
            self.cache.with_label_values(&[kind]).set(gauge(count));
        }
    }
}

fn unreadable(make: &Maker) -> Result<IntCounterVec, prometheus::Error> {
    make.counters(
        "corridor_unreadable_objects_total",
        "Objects from the API server that could not be read, by resource. Others are not affected.",
        &["resource"],
    )
}

/// Under the name that every component of Kubernetes has it.
fn leads(make: &Maker) -> Result<IntGaugeVec, prometheus::Error> {
    let leads = make.gauges(
        "leader_election_master_status",
        "Whether this replica leads (1) or follows (0), by the name of the Lease.",
        &["name"],
    )?;
    // One that has never led says so, too.
    leads.with_label_values(&[crds::SCHEDULER_NAME]).set(0);
    Ok(leads)
}

/// Under kube-scheduler's names, and in its buckets.
#[derive(Debug)]
struct Preemptions {
    attempts: IntCounter,
    victims: Histogram,
}

impl Preemptions {
    fn new(make: &Maker) -> Result<Self, prometheus::Error> {
        let victims = HistogramOpts::new(
            "scheduler_preemption_victims",
            "Pods that were sent away in one preemption.",
        );
        let buckets = prometheus::exponential_buckets(1.0, 2.0, 7)?;
        Ok(Self {
            attempts: make.counter(
                "scheduler_preemption_attempts_total",
                "Attempts that ended in sending other Pods away.",
            )?,
            victims: make.registered(Histogram::with_opts(victims.buckets(buckets))?)?,
        })
    }

    /// The engine counts preemptions and victims. Should there have been several preemptions since
    /// the last time, their victims are taken to be spread evenly.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count on a graph"
    )]
    fn publish(&self, stats: &Stats) {
        let attempts = stats.preemptions.saturating_sub(self.attempts.get());
        let told = self.victims.get_sample_sum() as u64;
        let victims = stats.preemption_victims.saturating_sub(told);
        for number in 0..attempts {
            let share = victims / attempts + u64::from(number < victims % attempts);
            self.victims.observe(share as f64);
        }
        raise_to(&self.attempts, stats.preemptions);
    }
}

/// What bound Pods have reserved of each object.
#[derive(Debug)]
struct Reserved {
    corridors: GaugeVec,
    bundles: GaugeVec,
}

impl Reserved {
    fn new(make: &Maker, cluster: &str) -> Result<Self, prometheus::Error> {
        Ok(Self {
            corridors: make.amounts(
                "corridor_reserved_gbps",
                "Bandwidth of a Corridor that bound Pods have reserved.",
                cluster,
                &["namespace", "corridor"],
            )?,
            bundles: make.amounts(
                "ffm_reserved_gbs",
                "Bandwidth of a MemoryBundle that bound Pods have reserved, in GB/s.",
                cluster,
                &["namespace", "bundle"],
            )?,
        })
    }
}

/// Makes metrics that are registered from the start.
struct Maker {
    registry: Registry,
}

impl Maker {
    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.registered(IntCounter::new(name, help)?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.registered(IntGauge::new(name, help)?)
    }

    fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec, prometheus::Error> {
        self.registered(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn gauges(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntGaugeVec, prometheus::Error> {
        self.registered(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn amounts(
        &self,
        name: &str,
        help: &str,
        cluster: &str,
        labels: &[&str],
    ) -> Result<GaugeVec, prometheus::Error> {
        let opts = Opts::new(name, help).const_label("cluster", cluster);
        self.registered(GaugeVec::new(opts, labels)?)
    }

    /// Every kind is there from the start: a series that appears with its first increment is one that
    /// no alert sees rise.
    fn tampering(&self) -> Result<IntCounterVec, prometheus::Error> {
        let counters = self.counters(
            "corridor_tampering_total",
            "Writes by somebody else to what only the scheduler writes, by kind.",
            &["kind"],
        )?;
        for kind in Tampering::ALL {
            counters.with_label_values(&[kind.as_str()]).reset();
        }
        Ok(counters)
    }

    /// A millisecond to half a minute.
    fn seconds(&self, name: &str, help: &str) -> Result<Histogram, prometheus::Error> {
        let buckets = prometheus::exponential_buckets(0.001, 2.0, 15)?;
        self.registered(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?)
    }

    fn registered<C: Collector + Clone + 'static>(
        &self,
        metric: C,
    ) -> Result<C, prometheus::Error> {
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

fn raise_to(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_and_a_help_text_and_publishing_twice_counts_once() {
        let metrics = Metrics::new("here").unwrap();
        let stats = Stats { attempts_scheduled: 7, ..Stats::default() };
        metrics.publish(&stats, true);
        metrics.publish(&stats, true);
        let families = metrics.registry.gather();
        assert!(families.iter().all(|family| !family.help().is_empty()));
        let attempts = metrics.attempts.with_label_values(&["scheduled", PROFILE]).get();
        assert_eq!(attempts, 7);
    }

    #[test]
    fn every_victim_is_counted_once() {
        let metrics = Metrics::new("here").unwrap();
        for (preemptions, preemption_victims) in [(0, 0), (1, 5), (1, 5), (3, 8)] {
            let stats = Stats { preemptions, preemption_victims, ..Stats::default() };
            metrics.publish(&stats, true);
        }
        let Preemptions { attempts, victims } = &metrics.preemptions;
        assert_eq!((attempts.get(), victims.get_sample_count()), (3, 3));
        assert!((victims.get_sample_sum() - 8.0).abs() < f64::EPSILON);
    }
}
