//! Corridors to which nothing happens cost next to nothing. The full size, for longer, is the tool
//! `idle-cost`.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use std::time::Duration;

use e2e::binaries::say;
use e2e::idle::{LIMITS, Limits, Size, measure};

const SIZE: Size =
    Size { corridors: 500, settle_min: Duration::ZERO, time: Duration::from_secs(30) };

/// A quarter of the Corridors that `LIMITS` is about, but so soon after they became Ready that each is
/// looked at once more: 0.4 to 0.9 % of a core were seen. A pass for each sample would be 3.7 %.
const LIMITS_HERE: Limits = Limits { cpu_share: 0.02, resident_growth_kib: 8 * 1024, ..LIMITS };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_corridors_cost_next_to_nothing() {
    match measure(SIZE).await {
        Ok(figures) => {
            say(&format!("{SIZE:?}\n{figures}"));
            let beyond = figures.beyond(&LIMITS_HERE);
            assert!(beyond.is_empty(), "{}\n{figures}", beyond.join("\n"));
        }
        Err(problem) => panic!("{problem}"),
    }
}
