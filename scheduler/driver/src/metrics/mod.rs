//! Every metric of the scheduler: a room for each group. Names and labels of kube-scheduler where the meaning is the
//! same; a test of the end-to-end suite compares them.

mod ages;
mod attempts;
mod held;
mod make;
mod objects;
mod queues;

use engine::{Engine, PendingSummary};
use own_writes::Tampering;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use self::attempts::Attempts;
pub(crate) use self::attempts::Took;
use self::held::HeldPods;
pub use self::make::Collectors;
use self::make::{Made, Maker, raise_to, seconds};
use self::objects::Objects;
use self::queues::Queues;
use crate::clock::Clock;
use crate::translate::kubelet_rejection_reasons;

#[derive(Debug)]
pub struct Metrics {
    pub registry: Registry,
    collectors: Collectors,
    pub(crate) attempts: Attempts,
    pub(crate) objects: Objects,
    queues: Queues,
    held: HeldPods,
    leads: IntGaugeVec,
    quarantined: IntCounter,
    woken_by_sweep: IntCounter,
    reports_dropped: IntCounter,
    journal_files_lost: IntCounter,
    twin_divergences: IntCounter,
    tampering: IntCounterVec,
    pub(crate) kubelet_rejections: IntCounterVec,
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
        let make = Maker::new(cluster)?;
        let mut this = Self {
            registry: make.registry.clone(),
            collectors: Collectors::default(),
            attempts: Attempts::new(&make)?,
            objects: Objects::new(&make)?,
            queues: Queues::new(&make)?,
            held: HeldPods::new(&make)?,
            leads: leads(&make)?,
            quarantined: make.counter(
                "corridor_quarantined_pods_total",
                "Pods quarantined because the scheduler itself failed on them.",
            )?,
            woken_by_sweep: make.counter(
                "corridor_woken_by_sweep_total",
                "Pods woken by the periodic sweep and by no event. Not 0: an event was lost, or misjudged.",
            )?,
            reports_dropped: make.counter(
                "corridor_reports_dropped_total",
                "Events about bound Pods that were dropped because more than --events-waiting-max waited.",
            )?,
            journal_files_lost: journal_files_lost(&make)?,
            twin_divergences: twin_divergences(&make)?,
            tampering: make.counters_of(
                "corridor_tampering_total",
                "Writes by others to what only the scheduler writes: grant (result annotations of a Pod), placement (a Pod bound by another writer), leader (a Binding in the name of another leader, or its annotation), status, finalizer, intent, ticket (of our objects). All 0 from the start.",
                "kind",
                Tampering::ALL.map(Tampering::as_str),
            )?,
            kubelet_rejections: make.counters_of(
                "corridor_kubelet_rejections_total",
                "Pods that were bound here and then rejected by the kubelet of their node: its own reason (OutOfcpu, OutOfmemory, UnexpectedAdmissionError and the like), OutOfExtendedResources for resources of any other name, other. If the reason is the node's, nothing more is put there for 10 s, doubling up to 5 min.",
                "reason",
                kubelet_rejection_reasons(),
            )?,
            bind_seconds: make.histogram(
                "corridor_bind_duration_seconds",
                "Time from a decision to the clear outcome of its Binding.",
                seconds()?,
            )?,
            binds: make.counters_of(
                "corridor_binds_total",
                "Bindings by outcome: bound, refused, gone, fenced (the API server saw a later leader), term_ended (another replica leads, and knows the outcome).",
                "outcome",
                ["bound", "refused", "gone", "fenced", "term_ended"],
            )?,
            binds_in_flight: make
                .gauge("corridor_binds_in_flight", "Bindings without a clear outcome yet.")?,
            writes: writes(&make)?,
            watch_events: watched(
                &make,
                "corridor_watch_events_total",
                "Objects received from the API server, by resource.",
            )?,
            watch_errors: watched(
                &make,
                "corridor_watch_errors_total",
                "Watches and lists that failed and were started again, by resource.",
            )?,
            unreadable: watched(
                &make,
                "corridor_unreadable_objects_total",
                "Objects from the API server that could not be read, by resource. Others are not affected; a bound Pod counts as it last could be read, and if it never could, nothing more is put on its node.",
            )?,
        };
        (_, this.collectors) = make.finish();
        Ok(this)
    }

    /// Every metric of the driver, whether it has series yet or not.
    pub fn collectors(&self) -> &Collectors {
        &self.collectors
    }

    /// The series of these profiles are there from now on.
    pub(crate) fn serve<'a>(&self, profiles: impl Iterator<Item = &'a str>) {
        for profile in profiles {
            self.attempts.begin(profile);
        }
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

    /// Publishes the engine's counters.
    pub(crate) fn publish(&self, engine: &Engine, leads: bool) {
        let (stats, queue_metrics) = (engine.stats(), engine.queue_metrics());
        self.attempts.publish(&stats, queue_metrics);
        self.queues.publish(&stats, queue_metrics, leads);
        raise_to(&self.quarantined, stats.quarantined);
        raise_to(&self.woken_by_sweep, stats.woken_by_sweep);
        raise_to(&self.reports_dropped, stats.reports_dropped);
    }

    pub(crate) fn publish_journal_files_lost(&self, lost: u64) {
        raise_to(&self.journal_files_lost, lost);
    }

    pub(crate) fn publish_twin_divergences(&self, divergences: u64) {
        raise_to(&self.twin_divergences, divergences);
    }

    /// What Pods wait for. `None`: another replica leads, and publishes it.
    pub(crate) fn publish_summary(&self, summary: Option<&PendingSummary>, clock: &Clock) {
        self.held.publish(summary, &self.queues.unschedulable, clock);
    }
}

fn journal_files_lost(make: &Maker) -> Made<IntCounter> {
    make.counter(
        "corridor_journal_files_lost_total",
        "Journals that were to be written to --journal-dir and were not: that failed, or the folder does not answer.",
    )
}

fn twin_divergences(make: &Maker) -> Made<IntCounter> {
    make.counter(
        "corridor_twin_divergences_total",
        "How often the twin that answers questions came to another outcome than the engine that decides. Not 0: a fault of the scheduler; the journal that shows it is saved, and the loop answers questions until the next twin.",
    )
}

fn writes(make: &Maker) -> Made<IntCounterVec> {
    let writes = make.counters(
        "corridor_writes_total",
        "What was written beside Bindings: condition, event, status (of Corridors and MemoryBundles), eviction (each step: the announcement, the deletion); ok, failed, or put_off: not sent now, because other writes to the same namespace are overdue.",
        &["kind", "result"],
    )?;
    for kind in ["condition", "event", "status", "eviction"] {
        for result in ["ok", "failed", "put_off"] {
            writes.with_label_values(&[kind, result]);
        }
    }
    Ok(writes)
}

/// By watched resource: all of them.
fn watched(make: &Maker, name: &str, help: &str) -> Made<IntCounterVec> {
    make.counters_of(name, help, "resource", crate::kinds::NAMES.map(|(_, name)| name))
}

/// Under the name that every component of Kubernetes has it.
fn leads(make: &Maker) -> Made<IntGaugeVec> {
    let leads = make.gauges(
        "leader_election_master_status",
        "Whether this replica leads (1) or follows (0), by the name of the Lease.",
        &["name"],
    )?;
    // One that has never led says so, too.
    leads.with_label_values(&[crds::SCHEDULER_NAME]).set(0);
    Ok(leads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_help_text_and_names_its_cluster() {
        let metrics = Metrics::new("here").unwrap();
        metrics.serve(["a", "b"].into_iter());
        metrics.publish(&Engine::new(engine::EngineConfig::default()), true);
        let families = metrics.registry.gather();
        assert!(families.len() > 25, "{}", families.len());
        for family in families {
            assert!(!family.help().is_empty(), "{}", family.name());
            for metric in family.get_metric() {
                let is_here = |label: &prometheus::proto::LabelPair| {
                    label.name() == "cluster" && label.value() == "here"
                };
                assert!(metric.get_label().iter().any(is_here), "{}", family.name());
            }
        }
    }

    #[test]
    fn what_alerts_look_at_is_there_before_anything_happens() {
        let metrics = Metrics::new("here").unwrap();
        metrics.serve(["a", "b"].into_iter());
        let text = prometheus::TextEncoder::new();
        let text = text.encode_to_string(&metrics.registry.gather()).unwrap();
        for series in [
            "scheduler_schedule_attempts_total{profile=\"b\",result=\"error\",cluster=\"here\"} 0",
            "corridor_kubelet_rejections_total{reason=\"OutOfcpu\",cluster=\"here\"} 0",
            "corridor_watch_errors_total{resource=\"pods\",cluster=\"here\"} 0",
            "corridor_writes_total{kind=\"event\",result=\"failed\",cluster=\"here\"} 0",
            "corridor_oldest_held_pod_seconds{reason=\"Stale\",cluster=\"here\"} 0",
            "corridor_time_to_ready_seconds_count{kind=\"Corridor\",cluster=\"here\"} 0",
        ] {
            assert!(text.contains(series), "{series} in\n{text}");
        }
    }
}
