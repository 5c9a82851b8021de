//! Ends the leader of two replicas again and again, under load, and checks what must hold.

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Instant;

use clap::Parser;
use e2e::replicas::rounds::{End, play};
use e2e::replicas::site::ReplicaSite;

#[derive(Parser)]
#[command(about = "Kills, stops and restarts the leader of two replicas under load")]
struct Options {
    /// SIGKILL, so often
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    kills: u16,
    /// SIGSTOP past the Lease with Bindings under way, then SIGCONT, so often
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    stops: u16,
    /// SIGTERM and a new start, so often
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    restarts: u16,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let started = Instant::now();
    let kinds = [
        (options.kills, End::Killed),
        (options.stops, End::Stopped),
        (options.restarts, End::Restarted),
    ];
    let ends: Vec<End> =
        kinds.into_iter().flat_map(|(times, end)| vec![end; times.into()]).collect();
    let mut site = ReplicaSite::start(2).await?;
    let outcome = play(&mut site, &ends).await?;
    writeln!(
        io::stdout(),
        "{} changes of leader in {} s: {}\n{} Pods, none lost, none bound twice, no limit exceeded; \
         waiting: {}\n{} Bindings of late leaders were refused",
        ends.len(),
        started.elapsed().as_secs(),
        outcome.takeovers,
        outcome.pods,
        outcome.waits,
        outcome.refused,
    )?;
    Ok(())
}
