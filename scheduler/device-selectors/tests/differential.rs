//! A small run of the comparison with kube-scheduler's evaluator. Needs Go; without it this fails.
//!
//! ```text
//! cargo test --locked --release -p device-selectors --features go --test differential
//! ```

#[path = "../examples/differential/allowed.rs"]
mod allowed;
#[path = "../examples/differential/compare.rs"]
mod compare;
#[path = "../examples/differential/generate/mod.rs"]
mod generate;
#[path = "../examples/differential/oracle.rs"]
mod oracle;

use oracle::Oracle;

const PAIRS: usize = 20_000;
const SEED: u64 = 1;
/// In percent. With fewer of one kind, the others would say less.
const EACH_MIN: usize = 25;

#[test]
fn verdicts_are_those_of_kube_scheduler() {
    let oracle = Oracle::build().unwrap_or_else(|why| panic!("{why}"));
    let tally = compare::run(&oracle, PAIRS, SEED).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(tally.different, 0, "first seed {SEED}:\n{}", tally.shown.join("\n"));
    assert_eq!(tally.pairs, PAIRS);
    for outcome in ["true", "false"] {
        let count = tally.outcomes.get(outcome).copied().unwrap_or_default();
        assert!(100 * count >= EACH_MIN * PAIRS, "only {count} of {PAIRS} are {outcome}");
    }
}
