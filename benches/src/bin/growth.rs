//! How the cost of a decision grows: `cargo run --release -p benches --bin growth -- --chart benches/growth.svg`.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use benches::growth::Growth;
use clap::Parser;
use e2e::scheduler_process::scheduler_binary;

#[derive(Parser)]
#[command(about = "Measures decisions in clusters of 1,000 to 1,000,000 nodes, in memory")]
struct Options {
    /// Leaves larger clusters out.
    #[arg(long, default_value_t = 1_000_000)]
    nodes_max: usize,
    /// Draws the result into this file, as SVG.
    #[arg(long)]
    chart: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let growth = Growth::measure(&scheduler_binary().await?, options.nodes_max).await?;
    write!(io::stdout(), "{growth}")?;
    if let Some(file) = options.chart {
        fs::write(file, growth.chart())?;
    }
    Ok(())
}
