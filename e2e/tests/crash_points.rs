//! A scheduler that is killed in the middle of a call leaves no trace of it: the same end, the
//! same writes, the same allocations, and none left. Here in every mode of each kind of call; every
//! call of a life is the tool `crash-points`, random ones are `crash-loop`.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use e2e::crash::exhaustion::{Breadth, Choice, exhaust};

const CHOICE: Choice<'_> = Choice { only: "", breadth: Breadth::EachKind, times: 1 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_any_kind_of_call_leaves_no_trace() {
    match exhaust(&CHOICE).await {
        Ok(told) => assert!(told.is_empty(), "crashes that can be told:\n{}", told.join("\n")),
        Err(problem) => panic!("{problem}"),
    }
}
