//! Controllers of one world, while they run.

use std::sync::Arc;

use controllers::Metrics;
use prometheus::proto::MetricFamily;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Controllers that run.
pub struct Running {
    pub metrics: Arc<Metrics>,
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<()>,
}

impl Running {
    /// The sum of a counter's series that have this label value.
    pub fn total(&self, name: &str, label: &str) -> u64 {
        let families = self.metrics.gather();
        let series =
            families.iter().filter(|it| it.name() == name).flat_map(MetricFamily::get_metric);
        let labelled = series.filter(|it| it.get_label().iter().any(|it| it.value() == label));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let total = labelled.map(|it| it.get_counter().get_value()).sum::<f64>() as u64;
        total
    }

    pub async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }

    pub async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}
