//! What the process does when a part of it fails.

use kube::config::{KubeConfigOptions, Kubeconfig};
use sim::ApiServer;
use tokio::time::sleep;

use super::*;

/// Between two looks at what has no event to wait for.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

async fn client_of(api: &ApiServer) -> kube::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::from_yaml(&api.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut access = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    client::prepare(&mut access);
    client::unfenced(&access).unwrap()
}

#[tokio::test]
async fn a_driver_whose_watches_have_ended_says_so_and_stops() {
    let api = ApiServer::start(([127, 0, 0, 1], 0).into(), crds::all()).await.unwrap();
    let client = client_of(&api).await;
    let (health, metrics) = (Arc::new(Health::default()), Arc::new(Metrics::new("here").unwrap()));
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let reading = threads.worker_threads(1).enable_all().build().unwrap();
    let config = engine::EngineConfig::default();
    let driver = Driver::new(client.clone(), Tenure::unopposed(), config, metrics, health.clone())
        .writing_with(client, Some(reading.handle().clone()));
    let driving = tokio::spawn(driver.run(pending()));
    while !health.is_ready() {
        sleep(LOOK_INTERVAL).await;
    }
    assert_eq!(health.failure(), None);
    // As a panic would end one of them.
    reading.shutdown_background();
    let error = driving.await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with("the watch of "), "{error}");
    assert_eq!(health.failure(), Some(error));
    api.stop().await;
}

#[tokio::test]
async fn work_that_fails_is_told_over_http_before_the_process_ends() {
    let health = Health::default();
    let work = async { Err(RunError::Thread(io::Error::other("as said"))) };
    let outcome = as_candidate(None, &health, work).await;
    assert_eq!(outcome.unwrap_err().exit_code(), FAILURE);
    assert_eq!(health.failure().unwrap(), "cannot start a thread: as said");
}
