//! The scheduler under test beside the real kube-scheduler, on random clusters.
//!
//! Exits with 0 when they agree, with 1 when a case differs, with 2 when it could not be found out.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use e2e::binaries::say;
use e2e::differential::{Figures, Options, Rule, Rules, play};

#[derive(Parser)]
#[command(about = "Compares the scheduler with kube-scheduler on random clusters and Pods")]
struct Arguments {
    /// Pods to try
    #[arg(long, default_value_t = 500)]
    cases: usize,
    /// Of the first cluster; each cluster serves 15 cases, the next one has the next seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What clusters and Pods make use of, separated by commas; everything but volumes if left out
    #[arg(long, value_delimiter = ',')]
    rules: Vec<Rule>,
    /// Give clusters and Pods volumes, too
    #[arg(long)]
    volumes: bool,
    /// A folder for all that is known about cases that differ, also by a known fault of kube-scheduler
    #[arg(long)]
    keep: Option<PathBuf>,
    /// A field of the Pod that our scheduler is not told of, like `/spec/tolerations`, to see whether
    /// the comparison finds out
    #[arg(long)]
    forget: Vec<String>,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut rules = match arguments.rules.as_slice() {
        [] => Rules::all(),
        some => Rules::only(some.iter().copied()),
    };
    if arguments.volumes {
        rules = rules.with_volumes();
    }
    let Arguments { cases, seed, keep, forget, .. } = arguments;
    match play(&Options { cases, seed, rules, keep, forget }).await {
        Ok(figures) => report(&figures),
        Err(problem) => {
            say(&problem.to_string());
            ExitCode::from(2)
        }
    }
}

fn report(figures: &Figures) -> ExitCode {
    let text = figures.differing.iter().map(|case| format!("{case}\n"));
    let text: String = text.chain([figures.to_string()]).collect();
    // A closed standard output is no reason to fail.
    let _ = io::stdout().write_all(text.as_bytes());
    if figures.differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
