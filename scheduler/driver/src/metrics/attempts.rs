//! Attempts to schedule, under kube-scheduler's names and in its buckets.
//!
//! The engine has no clock, so each call of it is measured from outside. Several attempts in one call are taken to have
//! lasted equally long.

use std::time::Duration;

use engine::{AttemptHistory, QueueMetrics, Stats};
use model::Instant;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec};

use super::make::{Made, Maker, raise_to, seconds};

const SCHEDULED: &str = "scheduled";
const UNSCHEDULABLE: &str = "unschedulable";
const ERROR: &str = "error";

/// Attempts from which on they are not told apart any more, as kube-scheduler does it.
const ATTEMPTS_TOLD_MAX: u32 = 15;

#[derive(Debug)]
pub(crate) struct Attempts {
    total: IntCounterVec,
    seconds: HistogramVec,
    algorithm: Histogram,
    extension_points: HistogramVec,
    sli: HistogramVec,
    tries: Histogram,
    preemptions: IntCounter,
    victims: Histogram,
}

/// How long an attempt took that ended in a Binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub deciding: Duration,
    pub binding: Duration,
}

impl Attempts {
    pub(super) fn new(make: &Maker) -> Made<Self> {
        Ok(Self {
            total: make.counters(
                "scheduler_schedule_attempts_total",
                "Attempts to schedule Pods, by result: scheduled (bound), unschedulable, error (the Binding failed, or the Pod's rules could not be applied).",
                &["result", "profile"],
            )?,
            seconds: make.histograms(
                "scheduler_scheduling_attempt_duration_seconds",
                "Time of one attempt to schedule: the decision, and the Binding if there was one.",
                seconds()?,
                &["result", "profile"],
            )?,
            algorithm: make.histogram(
                "scheduler_scheduling_algorithm_duration_seconds",
                "Time of one decision, without its Binding. Several in one call of the engine are taken to have lasted equally long.",
                seconds()?,
            )?,
            extension_points: make.histograms(
                "scheduler_framework_extension_point_duration_seconds",
                "Time of the extension point Bind, by status: Success, Error. The others are one decision here: scheduler_scheduling_algorithm_duration_seconds.",
                prometheus::exponential_buckets(0.0001, 2.0, 12)?,
                &["extension_point", "status", "profile"],
            )?,
            sli: make.histograms(
                "scheduler_pod_scheduling_sli_duration_seconds",
                "Time from the first attempt to schedule a Pod until it was bound, by how many attempts it took: 1 to 14, 15+.",
                prometheus::exponential_buckets(0.01, 2.0, 20)?,
                &["attempts"],
            )?,
            tries: make.histogram(
                "scheduler_pod_scheduling_attempts",
                "Attempts that it took to schedule a Pod.",
                prometheus::exponential_buckets(1.0, 2.0, 5)?,
            )?,
            preemptions: make.counter(
                "scheduler_preemption_attempts_total",
                "Attempts to make room for a Pod by preemption, successful or not.",
            )?,
            victims: make.histogram(
                "scheduler_preemption_victims",
                "Victims of one preemption.",
                prometheus::exponential_buckets(1.0, 2.0, 7)?,
            )?,
        })
    }

    /// Every result of the profile is there from the start.
    pub(super) fn begin(&self, profile: &str) {
        for result in [SCHEDULED, UNSCHEDULABLE, ERROR] {
            self.total.with_label_values(&[result, profile]);
            self.seconds.with_label_values(&[result, profile]);
        }
        for status in ["Success", "Error"] {
            self.extension_points.with_label_values(&["Bind", status, profile]);
        }
    }

    /// The engine was asked to decide. Returns how long one decision took.
    pub fn polled(
        &self,
        queue_metrics: &QueueMetrics,
        has_decided: bool,
        took: Duration,
    ) -> Duration {
        let mut failed: Vec<(&str, &str, u64)> = Vec::new();
        for (profile, counts) in queue_metrics.failed_attempts() {
            for (result, known) in [(UNSCHEDULABLE, counts.unschedulable), (ERROR, counts.failed)] {
                let told = self.known_failed(result, profile);
                if known > told {
                    failed.push((result, profile, known - told));
                }
            }
        }
        let attempts = failed.iter().map(|it| it.2).sum::<u64>() + u64::from(has_decided);
        let each = took / u32::try_from(attempts).unwrap_or(u32::MAX).max(1);
        for _ in 0..attempts {
            self.algorithm.observe(each.as_secs_f64());
        }
        for (result, profile, attempts) in failed {
            for _ in 0..attempts {
                self.count(result, profile, each);
            }
        }
        each
    }

    /// Errors are counted by Bindings, too; so what was told of attempts in vain is kept apart.
    fn known_failed(&self, result: &str, profile: &str) -> u64 {
        let all = self.total.with_label_values(&[result, profile]).get();
        if result != ERROR {
            return all;
        }
        let failed = self.extension_points.with_label_values(&["Bind", "Error", profile]);
        all.saturating_sub(failed.get_sample_count())
    }

    fn count(&self, result: &str, profile: &str, took: Duration) {
        self.total.with_label_values(&[result, profile]).inc();
        self.seconds.with_label_values(&[result, profile]).observe(took.as_secs_f64());
    }

    /// A Binding was carried out.
    pub fn bound(&self, profile: &str, took: Took, now: Instant, history: Option<&AttemptHistory>) {
        self.bind_ended("Success", SCHEDULED, profile, took);
        let Some(AttemptHistory { count, first: Some(first), .. }) = history else { return };
        self.tries.observe(f64::from(*count));
        let attempts = match *count {
            told if told < ATTEMPTS_TOLD_MAX => told.to_string(),
            _ => format!("{ATTEMPTS_TOLD_MAX}+"),
        };
        let since = now.saturating_since(*first).as_secs_f64();
        self.sli.with_label_values(&[attempts.as_str()]).observe(since);
    }

    /// It was not.
    pub fn not_bound(&self, profile: &str, took: Took) {
        self.bind_ended("Error", ERROR, profile, took);
    }

    fn bind_ended(&self, status: &str, result: &str, profile: &str, took: Took) {
        let point = self.extension_points.with_label_values(&["Bind", status, profile]);
        point.observe(took.binding.as_secs_f64());
        self.count(result, profile, took.deciding + took.binding);
    }

    /// The engine counts preemptions and victims. Should there have been several preemptions since
    /// the last time, their victims are taken to be spread evenly.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count on a graph"
    )]
    pub(super) fn publish(&self, stats: &Stats, queue_metrics: &QueueMetrics) {
        let preemptions = stats.preemptions.saturating_sub(self.victims.get_sample_count());
        let told = self.victims.get_sample_sum() as u64;
        let victims = stats.preemption_victims.saturating_sub(told);
        for number in 0..preemptions {
            let share = victims / preemptions + u64::from(number < victims % preemptions);
            self.victims.observe(share as f64);
        }
        raise_to(&self.preemptions, stats.preemptions + queue_metrics.failed_preemptions);
    }
}

#[cfg(test)]
mod tests {
    use engine::{Engine, EngineConfig, Event, WatchedKind, Work};
    use serde_json::json;

    use super::*;
    use crate::profile_names::ProfileNames;
    use crate::translate;

    const OURS: &str = crds::SCHEDULER_NAME;
    const TOOK: Took =
        Took { deciding: Duration::from_millis(1), binding: Duration::from_millis(9) };

    fn attempts() -> Attempts {
        let attempts = Attempts::new(&Maker::new("here").unwrap()).unwrap();
        attempts.begin(OURS);
        attempts
    }

    /// An engine that has tried so many Pods in vain: there is no Node.
    fn failing(pods: usize) -> Engine {
        let mut engine = Engine::new(EngineConfig::default());
        for kind in WatchedKind::ALL {
            engine.handle(Instant::START, Event::Synced(kind));
        }
        for number in 0..pods {
            let wire = json!({
                "metadata": {"namespace": "a", "name": number.to_string(), "uid": number.to_string(),
                             "resourceVersion": "1"},
                "spec": {"schedulerName": OURS, "containers": [{}]},
            });
            let wire = serde_json::from_value(wire).unwrap();
            let pod = translate::pod(&wire, &ProfileNames::default()).unwrap();
            engine.handle(Instant::START, Event::seen(pod));
        }
        engine.poll(Instant::START, Work { attempts_max: 64, nodes_max: 1 });
        engine
    }

    #[test]
    fn the_attempts_of_one_call_share_its_time() {
        let (attempts, engine) = (attempts(), failing(3));
        let each = attempts.polled(engine.queue_metrics(), false, Duration::from_secs(6));
        assert_eq!(each, Duration::from_secs(2));
        let again = attempts.polled(engine.queue_metrics(), true, Duration::from_secs(1));
        assert_eq!(again, Duration::from_secs(1), "what was told is not told again");
        let of = [UNSCHEDULABLE, OURS];
        assert_eq!(attempts.total.with_label_values(&of).get(), 3);
        let seconds = attempts.seconds.with_label_values(&of);
        assert_eq!(seconds.get_sample_count(), 3);
        assert!((seconds.get_sample_sum() - 6.0).abs() < 1e-9);
        assert_eq!(attempts.algorithm.get_sample_count(), 4);
    }

    #[test]
    fn a_binding_that_fails_is_an_error_and_hides_no_other() {
        let (attempts, engine) = (attempts(), failing(1));
        attempts.not_bound(OURS, TOOK);
        attempts.polled(engine.queue_metrics(), false, Duration::ZERO);
        let count = |result: &str| attempts.total.with_label_values(&[result, OURS]).get();
        assert_eq!((count(ERROR), count(UNSCHEDULABLE), count(SCHEDULED)), (1, 1, 0));
    }

    #[test]
    fn a_pod_is_told_by_how_often_it_was_tried_up_to_a_bound() {
        let attempts = attempts();
        let now = Instant::START + Duration::from_secs(40);
        for count in [1, 14, 15, 99] {
            let history =
                AttemptHistory { count, first: Some(Instant::START), ..AttemptHistory::default() };
            attempts.bound(OURS, TOOK, now, Some(&history));
        }
        let told = |label: &str| attempts.sli.with_label_values(&[label]).get_sample_count();
        assert_eq!((told("1"), told("14"), told("15+")), (1, 1, 2));
        assert!((attempts.sli.with_label_values(&["1"]).get_sample_sum() - 40.0).abs() < 1e-9);
        let seconds = attempts.seconds.with_label_values(&[SCHEDULED, OURS]);
        assert!((seconds.get_sample_sum() - 0.04).abs() < 1e-9, "decision and Binding");
    }

    #[test]
    fn every_victim_is_counted_once() {
        let attempts = attempts();
        for (preemptions, preemption_victims) in [(0, 0), (1, 5), (1, 5), (3, 8)] {
            let stats = Stats { preemptions, preemption_victims, ..Stats::default() };
            attempts.publish(&stats, &QueueMetrics::default());
        }
        assert_eq!((attempts.preemptions.get(), attempts.victims.get_sample_count()), (3, 3));
        assert!((attempts.victims.get_sample_sum() - 8.0).abs() < f64::EPSILON);
    }
}
