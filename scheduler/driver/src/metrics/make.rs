//! Makes metrics that are registered from the start, each with the label `cluster`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use prometheus::core::Collector;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

pub(super) type Made<T> = Result<T, prometheus::Error>;

pub(super) struct Maker {
    pub registry: Registry,
    made: RefCell<Collectors>,
}

/// Everything that was registered: a registry only shows what has series already.
#[derive(Default)]
pub struct Collectors(Vec<Box<dyn Collector>>);

impl Collectors {
    pub fn iter(&self) -> impl Iterator<Item = &dyn Collector> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl fmt::Debug for Collectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collectors").field("count", &self.0.len()).finish()
    }
}

impl Maker {
    /// `cluster`: the label by which one Prometheus tells several clusters apart.
    pub fn new(cluster: &str) -> Made<Self> {
        let label = HashMap::from([("cluster".to_owned(), cluster.to_owned())]);
        Ok(Self { registry: Registry::new_custom(None, Some(label))?, made: RefCell::default() })
    }

    /// The registry, and all that is in it.
    pub fn finish(self) -> (Registry, Collectors) {
        (self.registry, self.made.into_inner())
    }

    pub fn counter(&self, name: &str, help: &str) -> Made<IntCounter> {
        self.registered(IntCounter::new(name, help)?)
    }

    pub fn gauge(&self, name: &str, help: &str) -> Made<IntGauge> {
        self.registered(IntGauge::new(name, help)?)
    }

    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Made<IntCounterVec> {
        self.registered(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    /// For a closed list of values, all of which are there from the start: no alert sees a series rise that appears
    /// with its first increment.
    pub fn counters_of<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Made<IntCounterVec> {
        let counters = self.counters(name, help, &[label])?;
        for value in values {
            counters.with_label_values(&[value]).reset();
        }
        Ok(counters)
    }

    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Made<IntGaugeVec> {
        self.registered(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    pub fn amounts(&self, name: &str, help: &str, labels: &[&str]) -> Made<GaugeVec> {
        self.registered(GaugeVec::new(Opts::new(name, help), labels)?)
    }

    pub fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> Made<Histogram> {
        self.registered(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?)
    }

    pub fn histograms(
        &self,
        name: &str,
        help: &str,
        buckets: Vec<f64>,
        labels: &[&str],
    ) -> Made<HistogramVec> {
        let opts = HistogramOpts::new(name, help).buckets(buckets);
        self.registered(HistogramVec::new(opts, labels)?)
    }

    pub fn registered<C: Collector + Clone + 'static>(&self, metric: C) -> Made<C> {
        self.registry.register(Box::new(metric.clone()))?;
        self.made.borrow_mut().0.push(Box::new(metric.clone()));
        Ok(metric)
    }
}

/// A millisecond to half a minute, as kube-scheduler has it.
pub(super) fn seconds() -> Made<Vec<f64>> {
    prometheus::exponential_buckets(0.001, 2.0, 15)
}

pub(super) fn raise_to(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

pub(super) fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
