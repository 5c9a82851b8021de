//! Controllers of one world, while they run.

use std::sync::Arc;

use controllers::Metrics;
use http::Request;
use kube::Client;
use kube::client::Body;
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

/// A client whose watches of policies show nothing that happens after their first list.
pub fn behind_policies(client: &Client) -> Client {
    let client = client.clone();
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let uri = request.uri();
            let is_watch = uri.query().is_some_and(|it| it.contains("watch=true"));
            if is_watch && uri.path().ends_with("/attestationpolicies") {
                return std::future::pending().await;
            }
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}
