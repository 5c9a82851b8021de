//! What the scheduler keeps of each Pod and Node in resident memory.
//!
//! Exits with 1 when a limit is exceeded.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use e2e::memory::{Size, measure};

/// Design: no more than so many bytes of each.
const PER_NODE_MAX: f64 = 2048.0;
const PER_POD_MAX: f64 = 1024.0;

#[derive(Parser)]
#[command(about = "Measures the scheduler's resident memory per Pod and per Node")]
struct Options {
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Options { nodes, pods } = Options::parse();
    let figures = measure(Size { nodes, pods }).await?;
    writeln!(io::stdout(), "{figures}")?;
    let within = figures.bytes_per_node() <= PER_NODE_MAX && figures.bytes_per_pod() <= PER_POD_MAX;
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
