//! Kills the scheduler at random steps of random lives and looks for any trace of it.
//!
//! Exits with 1 when a life with crashes can be told from one without.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use e2e::crash::endurance::endure;
use e2e::crash::world::World;

/// Problems to print: a longer list does not help to find the cause.
const SHOWN_MAX: usize = 50;

#[derive(Parser)]
#[command(about = "Kills the scheduler again and again, at random steps of random lives")]
struct Options {
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    kills: u32,
    /// The same seed chooses the same courses and steps; the machine's own timing remains
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ends early after so long
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    minutes_max: u64,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    let started = Instant::now();
    let world = World::start().await?;
    let time_max = Duration::from_mins(options.minutes_max);
    let report = endure(&world, options.kills.try_into()?, options.seed, time_max).await?;
    let mut out = io::stdout();
    for problem in report.problems.iter().take(SHOWN_MAX) {
        writeln!(out, "- {problem}")?;
    }
    writeln!(
        out,
        "{} kills, {} of them in the middle of a step, {} lives, {} s, seed {}: {} problems",
        report.kills,
        report.struck,
        report.lives,
        started.elapsed().as_secs(),
        options.seed,
        report.problems.len(),
    )?;
    let is_done = report.kills == usize::try_from(options.kills)?;
    let is_well = report.problems.is_empty() && is_done;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
