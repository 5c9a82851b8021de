//! Compares the plain rules with the real kube-scheduler on random clusters. Needs Go.
//!
//! ```text
//! cargo run -p rules --example differential -- --cases 500 --seed 1
//! ```
//!
//! Ends with 0 when they agree, 1 when they differ, 2 when they could not be compared.

mod allowed;
mod compare;
mod config;
mod faults;
mod generate;
mod kube_scheduler;
mod translate;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Parser;
use rules::Plugin;
use serde_json::Value;

use compare::{Difference, Verdict, judge};
use kube_scheduler::KubeScheduler;

/// So much is in memory at a time: some 6 MB of cases.
const BATCH: u64 = 500;
/// More would only say the same again.
const SHOWN_MAX: usize = 5;

/// Compares the plain rules with the real kube-scheduler on random clusters.
#[derive(Parser)]
struct Args {
    /// How many clusters to try.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cases: u64,
    /// The seed of the first; each of the others has the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give every cluster volumes.
    #[arg(long)]
    volumes: bool,
    /// Leave this plugin out of the plain rules, to see that cases differ.
    #[arg(long)]
    without: Option<String>,
    /// Show also what differs by a known fault of kube-scheduler.
    #[arg(long)]
    show_faults: bool,
    /// Print the cases as JSON, and compare nothing.
    #[arg(long)]
    print_cases: bool,
}

impl Args {
    fn case(&self, seed: u64) -> Value {
        if self.volumes { generate::case_with_volumes(seed) } else { generate::case(seed) }
    }

    fn without(&self) -> Result<Option<Plugin>, String> {
        let by_name = |name: &String| {
            Plugin::by_name(name).ok_or_else(|| format!("there is no plugin {name:?}"))
        };
        self.without.as_ref().map(by_name).transpose()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.print_cases {
        for seed in seeds(args.seed, args.cases) {
            println!("{}", args.case(seed));
        }
        return ExitCode::SUCCESS;
    }
    match compare_all(&args) {
        Ok(tally) => {
            tally.print();
            if tally.different == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
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
    eprintln!("building kube-scheduler, which takes minutes the first time");
    let kube_scheduler = KubeScheduler::build()?;
    let mut tally = Tally { shows_faults: args.show_faults, ..Tally::default() };
    let without = args.without()?;
    while tally.compared < args.cases {
        let count = BATCH.min(args.cases - tally.compared);
        let first = args.seed.wrapping_add(tally.compared);
        let cases: Vec<_> = seeds(first, count).map(|seed| args.case(seed)).collect();
        let answers = kube_scheduler.ask(&cases)?;
        for (seed, case) in seeds(first, count).zip(&cases) {
            let answer =
                answers.get(&seed).ok_or(format!("no answer to the case of seed {seed}"))?;
            let verdict = judge(case, answer, without);
            tally.add(seed, verdict);
        }
        eprintln!("{} of {} cases, {} differ", tally.compared, args.cases, tally.different);
    }
    Ok(tally)
}

#[derive(Default)]
struct Tally {
    compared: u64,
    /// Cases with a difference that is not allowed.
    different: usize,
    kinds: BTreeMap<String, usize>,
    quirks: BTreeMap<&'static str, usize>,
    shows_faults: bool,
}

fn show(differences: &[&Difference]) {
    for difference in differences {
        println!("{difference}");
    }
}

impl Tally {
    fn add(&mut self, seed: u64, Verdict { kind, differences, fault }: Verdict) {
        self.compared += 1;
        *self.kinds.entry(kind).or_default() += 1;
        let mut unknown = vec![];
        for difference in &differences {
            match allowed::allowed(difference) {
                Some(entry) => *self.quirks.entry(entry.quirk).or_default() += 1,
                None => unknown.push(difference),
            }
        }
        if unknown.is_empty() {
            return;
        }
        if let Some(fault) = fault {
            *self.quirks.entry(fault.name).or_default() += 1;
            if self.shows_faults {
                println!("seed {seed} differs: {}", fault.name);
                show(&unknown);
            }
            return;
        }
        self.different += 1;
        if self.different <= SHOWN_MAX {
            println!("seed {seed} differs (again: --seed {seed} --cases 1)");
            show(&unknown);
        }
    }

    fn print(&self) {
        for (kind, count) in &self.kinds {
            println!("{count:>8}  {kind}");
        }
        for (quirk, count) in &self.quirks {
            println!("{count:>8}  allowed: {quirk}");
        }
        println!("{:>8}  cases, {} of them differ", self.compared, self.different);
    }
}
