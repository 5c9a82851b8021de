//! Gauges that grow by themselves: how long ago something was, at the moment of the scrape.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts};
use tokio::time::Instant;

/// Since when each value of the label counts.
#[derive(Clone, Debug)]
pub(super) struct Ages {
    since: Arc<Mutex<BTreeMap<&'static str, Since>>>,
    /// Only the labels and texts of it are kept.
    gauges: GaugeVec,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Since {
    /// There is nothing that could grow old.
    Nothing,
    At(Instant),
    /// It is waited for, and was never there.
    Ever,
}

impl Ages {
    pub fn new(name: &str, help: &str, label: &str) -> Result<Self, prometheus::Error> {
        let gauges = GaugeVec::new(Opts::new(name, help), &[label])?;
        Ok(Self { since: Arc::default(), gauges })
    }

    pub fn set(&self, value: &'static str, since: Since) {
        self.since.lock().insert(value, since);
    }
}

impl Collector for Ages {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = Instant::now();
        for (value, since) in self.since.lock().iter() {
            let age = match since {
                Since::Nothing => 0.0,
                Since::At(at) => now.saturating_duration_since(*at).as_secs_f64(),
                Since::Ever => f64::INFINITY,
            };
            self.gauges.with_label_values(&[*value]).set(age);
        }
        self.gauges.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ages_are_those_of_the_moment_in_which_they_are_read() {
        let ages = Ages::new("a", "help", "of").unwrap();
        ages.set("x", Since::At(Instant::now()));
        ages.set("y", Since::Ever);
        tokio::time::advance(Duration::from_secs(3)).await;
        let read = |value: &str| {
            let family = ages.collect().remove(0);
            let mut metrics = family.get_metric().iter();
            let metric = metrics.find(|it| it.get_label()[0].value() == value);
            metric.unwrap().get_gauge().get_value()
        };
        assert!((read("x") - 3.0).abs() < 0.1 && read("y").is_infinite());
        ages.set("x", Since::Nothing);
        assert!(read("x").abs() < f64::EPSILON);
    }
}
