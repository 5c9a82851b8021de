//! Ours and the real kube-scheduler agree on random clusters and Pods. The tool `differential` compares
//! as many as one likes.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use e2e::binaries::say;
use e2e::differential::{Figures, Options, Rules, play};

const CASES: usize = 500;
const SEED: u64 = 1;

/// One cluster.
const CASES_WITH_A_GAP: usize = 15;

fn options() -> Options {
    Options { cases: CASES, seed: SEED, rules: Rules::all(), keep: None, forget: vec![] }
}

async fn figures(options: &Options) -> Figures {
    match play(options).await {
        Ok(figures) => figures,
        Err(problem) => panic!("{problem}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_scheduler_would_have_done_the_same() {
    let figures = figures(&options()).await;
    say(&figures.to_string());
    assert!(
        figures.differing.is_empty(),
        "{} cases differ:\n{}",
        figures.differing.len(),
        figures.differing.join("\n"),
    );
}

/// A comparison that cannot fail would prove nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_overlooks_something_is_found_out() {
    let forget = vec!["/spec/containers/0/resources".to_owned()];
    let figures = figures(&Options { cases: CASES_WITH_A_GAP, forget, ..options() }).await;
    say(&figures.to_string());
    assert!(!figures.differing.is_empty(), "nobody noticed");
}
