//! Side by side with kube-scheduler: `cargo run --release -p benches --bin race -- --workload basic`.
//!
//! Exits with 1 when a check fails: a Pod that was not bound exactly once, an Event that was dropped.

use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::race::{self, Plan, Report, bind_only};
use benches::start_up;
use benches::workload::{Size, Workload};
use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;

#[derive(Parser)]
#[command(about = "Lets kube-scheduler and corridor-scheduler bind the same backlog, in turns")]
struct Options {
    #[command(subcommand)]
    part: Option<Part>,
    /// A name from `benches/workloads/`, or a path. May be given several times: one race after the other.
    #[arg(long, default_value = "basic")]
    workload: Vec<String>,
    /// Another number of Nodes than the workload has.
    #[arg(long)]
    nodes: Option<usize>,
    /// Another number of measured Pods than the workload has.
    #[arg(long)]
    pods: Option<usize>,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long Pods come at a steady rate after each backlog; 0 = not at all.
    #[arg(long, default_value_t = 20)]
    steady_seconds: u64,
    /// Only the limit and corridor-scheduler: a round takes a fraction of the time.
    #[arg(long)]
    without_kube_scheduler: bool,
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
    /// Draws the result into this file, as SVG.
    #[arg(long)]
    chart: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

#[derive(Subcommand)]
enum Part {
    /// From the start of the scheduler to its first bind, in a large cluster.
    StartUp {
        #[arg(long, default_value_t = 5_000)]
        nodes: usize,
        /// On Nodes already.
        #[arg(long, default_value_t = 50_000)]
        pods: usize,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        #[arg(long, value_enum, default_value = "text")]
        output: Output,
    },
    /// The client that lists; `start-up` starts it.
    #[command(hide = true)]
    ListOnly {
        #[arg(long)]
        kubeconfig: PathBuf,
    },
    /// The limit client; the race starts it.
    #[command(hide = true)]
    BindOnly {
        #[arg(long)]
        kubeconfig: PathBuf,
        #[arg(long)]
        leader: String,
    },
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    match &options.part {
        Some(Part::BindOnly { kubeconfig, leader }) => {
            bind_only::run(kubeconfig, leader).await?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Part::ListOnly { kubeconfig }) => {
            writeln!(io::stdout(), "{} bytes", start_up::list_and_drop(kubeconfig).await?)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Part::StartUp { nodes, pods, rounds, output }) => {
            let figures = start_up::measure(*nodes, *pods, *rounds).await?;
            print(&figures, *output)?;
            Ok(ExitCode::SUCCESS)
        }
        None => run_race(&options).await,
    }
}

async fn run_race(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut all_hold = true;
    for name in &options.workload {
        let workload = Workload::load(name)?;
        let own = workload.size();
        let (nodes, pods) = (options.nodes.unwrap_or(own.nodes), options.pods.unwrap_or(own.pods));
        let size = Size { nodes, pods };
        let workload = if size == own { workload } else { workload.scaled(size) };
        let steady = Duration::from_secs(options.steady_seconds);
        let with_kube_scheduler = !options.without_kube_scheduler;
        let plan = Plan { rounds: options.rounds, steady, with_kube_scheduler };
        let report = race::run(workload, plan).await?;
        show(&report, options)?;
        all_hold &= report.checks.all_hold();
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(report: &Report, options: &Options) -> Result<(), Box<dyn Error>> {
    if let Some(path) = &options.chart {
        fs::write(path, report.chart())?;
    }
    print(report, options.output)
}

fn print<T: Display + Serialize>(figures: &T, output: Output) -> Result<(), Box<dyn Error>> {
    match output {
        Output::Text => writeln!(io::stdout(), "{figures}")?,
        Output::Json => writeln!(io::stdout(), "{}", serde_json::to_string_pretty(figures)?)?,
    }
    Ok(())
}
