//! Beside the real kube-scheduler, without a single write: what it does is compared, reason by reason.
//! `CORRIDOR_E2E_SHADOW_PODS` sets another number of Pods.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test ends at the first thing that is wrong"
)]

use std::fs;

use e2e::binaries::say;
use e2e::differential::{ShadowOptions, shadow};
use e2e::metrics;

const PODS: usize = 200;
const SEED: u64 = 1;
const AGREEMENT_MIN: f64 = 0.999;

fn pods() -> usize {
    std::env::var("CORRIDOR_E2E_SHADOW_PODS").map_or(PODS, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_agrees_with_kube_scheduler_and_writes_nothing() {
    let options = ShadowOptions { pods: pods(), seed: SEED, flags: vec![] };
    let figures = shadow(&options).await.unwrap();
    say(&figures.to_string());
    assert!(figures.writes.is_empty(), "{:?}", figures.writes);
    assert!(figures.agreement() >= AGREEMENT_MIN, "{figures}");
    assert!(figures.placed > 0 && figures.held > 0, "both must come up");
    let counted = metrics::sum(&figures.metrics, "corridor_shadow_decisions_total", &[]);
    assert!((counted - figures.compared() as f64).abs() < 0.5, "{counted}");
}

/// A comparison that cannot fail would prove nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rules_are_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.yaml");
    fs::write(
        &file,
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles:\n- schedulerName: default-scheduler\n  plugins:\n    multiPoint:\n      \
         disabled: [{name: NodeResourcesFit}, {name: TaintToleration}]\n",
    )
    .unwrap();
    let flags = vec![format!("--config={}", file.display())];
    let figures = shadow(&ShadowOptions { pods: 40, seed: SEED, flags }).await.unwrap();
    say(&figures.to_string());
    assert!(figures.agreement() < AGREEMENT_MIN, "nobody noticed");
    assert!(!figures.told["disagreements"].as_array().unwrap().is_empty());
}
