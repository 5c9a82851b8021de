//! Ours and the real kube-scheduler agree on random clusters and Pods. The tool `differential` compares
//! as many as one likes.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use e2e::binaries::say;
use e2e::differential::{Figures, Options, Rules, play};

const CASES: usize = 500;
const SEED: u64 = 1;

const CASES_WITH_VOLUMES: usize = 200;

/// One cluster.
const CASES_WITH_A_GAP: usize = 15;
/// In a single cluster, it may happen that no Node differs by its volumes.
const CASES_WITHOUT_VOLUMES: usize = 45;

fn options() -> Options {
    Options { cases: CASES, seed: SEED, rules: Rules::all(), keep: None, forget: vec![] }
}

fn with_volumes() -> Options {
    Options { cases: CASES_WITH_VOLUMES, rules: Rules::all().with_volumes(), ..options() }
}

async fn figures(options: &Options) -> Figures {
    match play(options).await {
        Ok(figures) => figures,
        Err(problem) => panic!("{problem}"),
    }
}

async fn none_may_differ(options: &Options) {
    let figures = figures(options).await;
    say(&figures.to_string());
    assert!(
        figures.differing.is_empty(),
        "{} cases differ:\n{}",
        figures.differing.len(),
        figures.differing.join("\n"),
    );
}

async fn some_must_differ(options: &Options) {
    let figures = figures(options).await;
    say(&figures.to_string());
    assert!(!figures.differing.is_empty(), "nobody noticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_scheduler_would_have_done_the_same() {
    none_may_differ(&options()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_scheduler_would_have_done_the_same_with_volumes() {
    none_may_differ(&with_volumes()).await;
}

/// A comparison that cannot fail would prove nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_overlooks_something_is_found_out() {
    let forget = vec!["/spec/containers/0/resources".to_owned()];
    some_must_differ(&Options { cases: CASES_WITH_A_GAP, forget, ..options() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_overlooks_volumes_is_found_out() {
    let forget = vec!["/spec/volumes".to_owned()];
    some_must_differ(&Options { cases: CASES_WITHOUT_VOLUMES, forget, ..with_volumes() }).await;
}
