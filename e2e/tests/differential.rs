//! Ours and the real kube-scheduler agree on random clusters and Pods. The tool `differential` compares
//! as many as one likes.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use e2e::binaries::say;
use e2e::differential::{Options, Rules, play};

const CASES: usize = 500;
const SEED: u64 = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_scheduler_would_have_done_the_same() {
    let options = Options { cases: CASES, seed: SEED, rules: Rules::all(), keep: None };
    let figures = match play(&options).await {
        Ok(figures) => figures,
        Err(problem) => panic!("{problem}"),
    };
    say(&figures.to_string());
    assert!(
        figures.differing.is_empty(),
        "{} cases differ:\n{}",
        figures.differing.len(),
        figures.differing.join("\n"),
    );
}
