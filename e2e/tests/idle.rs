//! 2,000 Corridors to which nothing happens cost next to nothing. For ten minutes: the tool `idle-cost`.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use std::time::Duration;

use e2e::binaries::say;
use e2e::idle::{LIMITS, Size, measure};

const SIZE: Size = Size { corridors: 2_000, time: Duration::from_secs(30) };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_idle_corridors_cost_next_to_nothing() {
    match measure(SIZE).await {
        Ok(figures) => {
            say(&format!("{SIZE:?}\n{figures}"));
            let beyond = figures.beyond(&LIMITS);
            assert!(beyond.is_empty(), "{beyond:?}\n{figures}");
        }
        Err(problem) => panic!("{problem}"),
    }
}
