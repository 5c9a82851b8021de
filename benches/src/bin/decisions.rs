//! The engine alone, in memory: decisions a second, and allocations for each attempt.
//!
//! `cargo run --release -p benches --bin decisions -- --workload basic --nodes 5000 --pods 10000`

use std::error::Error;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use benches::allocations::{self, Counting};
use benches::machine::Machine;
use benches::memory::{Arena, FLOOR_RETURN};
use benches::workload::{Size, Workload, names};
use clap::Parser;
use e2e::figures::Times;
use e2e::process_cost::peak_resident_kib;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Parser)]
#[command(about = "Lets the engine place workloads in memory, on one core")]
struct Options {
    /// Names from `benches/workloads/`, or paths; all of them if none is given.
    #[arg(long)]
    workload: Vec<String>,
    #[arg(long, default_value_t = 500)]
    nodes: usize,
    #[arg(long, default_value_t = 1_000)]
    pods: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let chosen = if options.workload.is_empty() { names()? } else { options.workload };
    let size = Size { nodes: options.nodes, pods: options.pods };
    let mut out = io::stdout();
    writeln!(out, "{}\n{} Nodes, {} Pods, one core\n", Machine::here(), size.nodes, size.pods)?;
    writeln!(
        out,
        "{:28}{:>14}{:>12}{:>14}{:>16}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "workload",
        "decisions/s",
        "attempts",
        "allocations",
        "peak MiB so far",
        "poll ms",
        "event ms",
        "p99 ms",
        "ms each",
        "ms in vain"
    )?;
    for name in chosen {
        let workload = Workload::load(&name)?.scaled(size);
        if workload.name == FLOOR_RETURN {
            writeln!(out, "{}", floor_returns(&workload)?)?;
        } else {
            writeln!(out, "{}", placed(&workload)?)?;
        }
    }
    writeln!(out, "\nallocations: for each attempt, while the engine decides, in the second half")?;
    writeln!(
        out,
        "poll, event: the longest turn of the engine, up to 64 attempts in one poll; p99: of all polls"
    )?;
    writeln!(
        out,
        "each: all time for one measured Pod; in vain: for one that waits, tried before those came"
    )?;
    Ok(())
}

/// The clock runs while Pods are placed: each decision, its outcome and the watch's word of it.
fn placed(workload: &Workload) -> Result<String, Box<dyn Error>> {
    let mut arena = Arena::new(workload)?;
    let in_vain = arena.let_others_wait();
    arena.fill_line();
    let pods = arena.measured();
    let began = Instant::now();
    // Shapes are known and buffers have grown by then.
    let cold = arena.place(pods / 2)?;
    let warm = arena.place_counting(pods - pods / 2, allocations::so_far)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(format!(
        "{:28}{:>14.0}{:>12}{:>14.1}{:>16}{:>12.2}{:>12.2}{:>12.3}{:>12.4}{:>12.3}",
        workload.name,
        ratio(pods, seconds),
        warm.attempts,
        ratio(usize::try_from(warm.allocations_in_poll)?, f64::from(u32::try_from(warm.attempts)?)),
        peak_resident_kib(std::process::id())? >> 10,
        cold.longest_poll.max(warm.longest_poll).as_secs_f64() * 1e3,
        cold.longest_event.max(warm.longest_event).as_secs_f64() * 1e3,
        warm.poll_p99.as_secs_f64() * 1e3,
        warm.for_each.as_secs_f64() * 1e3,
        in_vain.as_secs_f64() * 1e3,
    ))
}

/// Each Pod asks for the whole floor, so it returns once for each.
fn floor_returns(workload: &Workload) -> Result<String, Box<dyn Error>> {
    /// Enough for a 99th percentile.
    const RETURNS_MAX: usize = 500;
    let mut arena = Arena::new(workload)?;
    arena.fill_line();
    arena.place(1)?;
    let mut times = Times::default();
    for _ in 0..RETURNS_MAX.min(arena.measured() - 1) {
        times.add(arena.return_floor()?);
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(format!(
        "{:28}floor to decision: p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs",
        workload.name,
        micros(times.percentile(50)),
        micros(times.percentile(99)),
        micros(times.max()),
    ))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(count: usize, to: f64) -> f64 {
    count as f64 / to.max(f64::MIN_POSITIVE)
}
