//! Compares our allocator of devices with that of kube-scheduler on random clusters. Needs Go.
//!
//! ```text
//! cargo run --release -p rules --example devices -- --cases 2000 --seed 1
//! ```
//!
//! Ends with 0 when they agree, 1 when they differ or the independent checker refuses an allocation of ours, 2 when
//! they could not be compared.

mod compare;
mod named;
mod oracle;
mod outcome;
mod tally;
mod translate;
mod written;

use std::process::ExitCode;

use clap::Parser;
use random_clusters::devices::device_case;
use serde_json::Value;

use compare::judge;
use oracle::Oracle;
use tally::Tally;

/// So much is in memory at a time: some 20 MB of cases.
const BATCH: u64 = 2000;

/// Compares our allocator of devices with that of kube-scheduler on random clusters.
#[derive(Parser)]
struct Args {
    /// How many clusters to try.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    cases: u64,
    /// The seed of the first; each of the others has the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave members of this name out of what our allocator reads, to see that cases differ: `taints`, `consumesCounters`.
    #[arg(long)]
    without: Option<String>,
    /// Show also one case of each difference that has a name.
    #[arg(long)]
    show_named: bool,
    /// Print the cases as JSON, and compare nothing.
    #[arg(long)]
    print_cases: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.print_cases {
        for seed in seeds(args.seed, args.cases) {
            println!("{}", device_case(seed));
        }
        return ExitCode::SUCCESS;
    }
    match compare_all(&args) {
        Ok(tally) => {
            tally.print();
            if tally.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn seeds(first: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| first.wrapping_add(number))
}

fn compare_all(args: &Args) -> Result<Tally, String> {
    eprintln!("building the allocator of kube-scheduler, which takes a minute the first time");
    let oracle = Oracle::build()?;
    let mut tally = Tally::new(args.show_named);
    while tally.cases < args.cases {
        let count = BATCH.min(args.cases - tally.cases);
        let first = args.seed.wrapping_add(tally.cases);
        let cases: Vec<Value> = seeds(first, count).map(device_case).collect();
        let answers = oracle.ask(&cases)?;
        for (seed, case) in seeds(first, count).zip(&cases) {
            let told = answers.get(&seed).ok_or(format!("no answer to the case of seed {seed}"))?;
            let verdicts = judge(case, told, args.without.as_deref())
                .map_err(|why| format!("seed {seed}: {why}"))?;
            tally.add(seed, &verdicts);
        }
        eprintln!("{} of {} cases, {} differ", tally.cases, args.cases, tally.different());
    }
    Ok(tally)
}
