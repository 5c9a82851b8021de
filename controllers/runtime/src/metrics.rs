//! Makes series that are registered from the start.

use std::cell::RefCell;

use prometheus::core::Collector;
use prometheus::{CounterVec, GaugeVec, IntCounter, IntCounterVec, Opts, Registry};

/// Names and labels are fixed and distinct, so neither making nor registering can fail.
pub struct SeriesMaker<'a> {
    registry: &'a Registry,
    made: RefCell<Vec<Box<dyn Collector>>>,
}

impl std::fmt::Debug for SeriesMaker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesMaker").finish_non_exhaustive()
    }
}

impl<'a> SeriesMaker<'a> {
    pub fn new(registry: &'a Registry) -> Self {
        Self { registry, made: RefCell::default() }
    }

    /// Everything that was made: a registry lists only what has series already.
    pub fn into_collectors(self) -> Vec<Box<dyn Collector>> {
        self.made.into_inner()
    }

    pub fn count(&self, name: &str, help: &str) -> IntCounter {
        self.registered(IntCounter::with_opts(Opts::new(name, help)))
    }

    pub fn counts(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.registered(IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub fn totals(&self, name: &str, help: &str, labels: &[&str]) -> CounterVec {
        self.registered(CounterVec::new(Opts::new(name, help), labels))
    }

    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        self.registered(GaugeVec::new(Opts::new(name, help), labels))
    }

    #[expect(clippy::expect_used, reason = "a wrong name would be seen by the first test")]
    fn registered<C: Collector + Clone + 'static>(
        &self,
        collector: Result<C, prometheus::Error>,
    ) -> C {
        let collector = collector.expect("names and labels are valid");
        self.registry.register(Box::new(collector.clone())).expect("each name is used once");
        self.made.borrow_mut().push(Box::new(collector.clone()));
        collector
    }
}
