//! Kills the scheduler at every awaited step of a life, or at some of them again and again.
//!
//! Exits with 1 when a life with a crash can be told from one without.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use e2e::crash::exhaustion::{Breadth, Choice, exhaust, steps_of_lives};

#[derive(Parser)]
#[command(about = "Kills the scheduler before, in and after every awaited step of a life")]
struct Options {
    /// Only crash points whose name contains this, such as "before POST /v1/corridors of c1 #1"
    #[arg(long, default_value = "")]
    only: String,
    /// Only one step of each kind of call for each mode, as the test does
    #[arg(long)]
    each_kind: bool,
    /// How often each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    /// Only list the steps of so many lives, and kill nobody
    #[arg(long)]
    list: bool,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    if options.list {
        for line in steps_of_lives(options.times.try_into()?).await? {
            writeln!(io::stdout(), "{line}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let breadth = if options.each_kind { Breadth::EachKind } else { Breadth::Every };
    let times = options.times.try_into()?;
    let told = exhaust(&Choice { only: &options.only, breadth, times }).await?;
    for line in &told {
        writeln!(io::stdout(), "{line}")?;
    }
    writeln!(io::stdout(), "{} crashes can be told", told.len())?;
    Ok(if told.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
