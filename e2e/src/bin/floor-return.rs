//! A long line of Pods before one Corridor whose capacity comes and goes: order, attempts and times.
//!
//! Exits with 1 when something is wrong or the time limit is missed.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use e2e::returns::{Size, play};

/// From the status write's reply to the Binding POST, of 99 in a hundred returns.
const STATUS_TO_BINDING_P99_MAX: Duration = Duration::from_millis(50);

#[derive(Parser)]
#[command(about = "Times how fast a returning floor admits the next of many held Pods")]
struct Options {
    /// Pods in the line, each asking for the whole floor
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pods: u32,
    /// How often the capacity returns
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    returns: u32,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    if options.returns > options.pods {
        return Err("there must be a Pod for every return".into());
    }
    let size = Size { pods: options.pods.try_into()?, returns: options.returns.try_into()? };
    let figures = play(size).await?;
    let is_fast = figures.status_to_binding.percentile(99) < STATUS_TO_BINDING_P99_MAX;
    let judged = if is_fast { "pass" } else { "FAIL" };
    writeln!(io::stdout(), "{figures}")?;
    writeln!(io::stdout(), "{judged}: p99 below {} ms", STATUS_TO_BINDING_P99_MAX.as_millis())?;
    Ok(if is_fast { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
