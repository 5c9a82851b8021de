//! A long line of Pods before one Corridor: each return of its capacity admits exactly one, in order.
//! The full size is the tool `floor-return`, which also judges the time it takes.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use e2e::binaries::say;
use e2e::returns::{Size, play};

const SIZE: Size = Size { pods: 1_000, returns: 20 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_return_of_capacity_admits_exactly_one_pod_in_order() {
    match play(SIZE).await {
        Ok(figures) => say(&format!("{SIZE:?}\n{figures}")),
        Err(problem) => panic!("{problem}"),
    }
}
