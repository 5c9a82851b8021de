//! The simulated daemons keep the contract.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::time::Duration;

use daemons::conformance::{self, Report, Target};
use daemons::simulated::{SimulatedConfig, SimulatedDaemons};

async fn examine(config: SimulatedConfig) -> Report {
    let daemons = SimulatedDaemons::start(config).await.unwrap();
    let target =
        Target { trusted_keys: daemons.trusted_keys().to_vec(), ..Target::at(daemons.url()) };
    let report = conformance::run(&target).await.unwrap();
    daemons.stop().await;
    println!("{report}");
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_daemons_keep_every_rule() {
    let folder = tempfile::tempdir().unwrap();
    let report = examine(SimulatedConfig {
        state_dir: Some(folder.path().to_owned()),
        enable_admin: true,
        // Short enough to be waited for, long enough for every other check.
        lease_ttl: Duration::from_secs(5),
        ..SimulatedConfig::default()
    })
    .await;
    assert_eq!(report.broken().collect::<Vec<_>>(), []);
    assert_eq!(report.skipped().collect::<Vec<_>>(), []);
    assert!(report.kept() >= 40, "{}", report.kept());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_admin_what_needs_it_is_skipped() {
    let report = examine(SimulatedConfig::default()).await;
    assert_eq!(report.broken().collect::<Vec<_>>(), []);
    assert!(report.skipped().count() >= 9);
    assert!(report.kept() >= 40, "{}", report.kept());
}

/// A suite that finds nothing on a broken daemon is worth nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_says_yes_to_everything_is_found_out() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(|| async { axum::Json(serde_json::json!({})) });
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let report = conformance::run(&Target::at(url)).await.unwrap();
    server.abort();
    assert_eq!(report.kept(), 0, "{report}");
}
