//! What many Corridors cost while nothing happens to them: CPU, API writes, memory.
//!
//! Exits with 1 when a limit is exceeded.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use e2e::idle::{LIMITS, Size, measure};

/// Work that is done every minute has been done by then.
const SETTLE_MIN: Duration = Duration::from_secs(90);

#[derive(Parser)]
#[command(about = "Measures what idle Corridors cost the scheduler and the API server")]
struct Options {
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    corridors: u32,
    /// How long to look on
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    let time = Duration::from_secs(options.seconds);
    let corridors = options.corridors.try_into()?;
    let figures = measure(Size { corridors, settle_min: SETTLE_MIN, time }).await?;
    writeln!(io::stdout(), "{figures}")?;
    let beyond = figures.beyond(&LIMITS);
    for limit in &beyond {
        writeln!(io::stdout(), "FAIL: {limit}")?;
    }
    Ok(if beyond.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
