//! Compares expressions of device selectors with the evaluator of kube-scheduler, on random expressions and devices.
//! Needs Go.
//!
//! ```text
//! cargo run --locked --release -p device-selectors --example differential -- --pairs 100000 --seed 1
//! ```
//!
//! Ends with 0 when they agree, 1 when they differ, 2 when they could not be compared.

mod allowed;
mod compare;
mod generate;
mod oracle;

use std::process::ExitCode;

use clap::Parser;

use compare::Tally;
use oracle::Oracle;

/// Compares expressions of device selectors with the evaluator of kube-scheduler.
#[derive(Parser)]
struct Args {
    /// How many pairs of an expression and a device to try.
    #[arg(long, default_value_t = 20_000)]
    pairs: usize,
    /// The seed of the first expression; each of the others has the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the expressions, and compare nothing.
    #[arg(long)]
    print: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.print {
        for seed in (args.seed..).take(args.pairs.div_ceil(generate::DEVICES_EACH)) {
            println!("{}", generate::question(seed).as_json());
        }
        return ExitCode::SUCCESS;
    }
    match Oracle::build().and_then(|oracle| compare::run(&oracle, args.pairs, args.seed)) {
        Ok(tally) => {
            print(&tally);
            if tally.different == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn print(tally: &Tally) {
    for difference in &tally.shown {
        println!("{difference}");
    }
    for (outcome, count) in &tally.outcomes {
        println!("{count:>9}  {:>3} %  {outcome}", 100 * count / tally.pairs.max(1));
    }
    for (name, count) in &tally.allowed {
        println!("{count:>9}         allowed: {name}");
    }
    println!("{:>9}         pairs, {} of them differ", tally.pairs, tally.different);
}
