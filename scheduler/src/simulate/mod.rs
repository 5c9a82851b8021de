//! `corridor-scheduler simulate`: how many Pods a second the engine decides, and what it takes in memory, for a
//! cluster of any size that exists in memory only.

mod course;
mod workload;

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};

use driver::SchedulerConfiguration;
use serde_json::{Value, json};

use self::course::{Course, Size};
use crate::args::{OutputArg, SimulateArgs};

pub fn simulate(args: &SimulateArgs) {
    let size = Size { nodes: args.nodes, pods: args.pods, shapes: args.shapes, seed: args.seed };
    let config = SchedulerConfiguration::default().engine;
    let scores = active_scores(&config);
    let progress = Progress::new(size.pods);
    let show = |placed| progress.show(placed);
    let course = course::simulate(size, config, crds::SCHEDULER_NAME, resident_bytes, show);
    progress.clear();
    match args.output {
        OutputArg::Json => println!("{:#}", as_json(size, &course, &scores)),
        OutputArg::Text => println!("{}", as_text(size, &course, &scores)),
    }
}

/// The scores that count in each decision.
fn active_scores(config: &engine::EngineConfig) -> Vec<String> {
    use engine::Plugin;
    let rules = &config.profiles.of(crds::SCHEDULER_NAME).rules;
    let active = Plugin::ALL.iter().filter(|plugin| plugin.scores() && rules.scores_by(**plugin));
    active.map(ToString::to_string).collect()
}

#[expect(clippy::cast_precision_loss, reason = "figures to read")]
fn as_json(size: Size, course: &Course, scores: &[String]) -> Value {
    let per = |bytes: u64, count: usize| bytes / count.max(1) as u64;
    let seconds = course.placing.as_secs_f64();
    json!({
        "nodes": size.nodes, "pods": size.pods, "shapes": size.shapes, "seed": size.seed,
        "placed": course.placed,
        "arrivalSeconds": course.arrival.as_secs_f64(),
        "placingSeconds": seconds,
        "decisionsPerSecond": course.placed as f64 / seconds.max(f64::EPSILON),
        "decisionMicroseconds": {
            "p50": course.percentile_us(0.5), "p99": course.percentile_us(0.99),
            "p99.9": course.percentile_us(0.999), "max": course.percentile_us(1.0),
        },
        "bytesPerNode": per(course.bytes_with_nodes.saturating_sub(course.bytes_before), size.nodes),
        "bytesPerPod": per(course.bytes_with_pods.saturating_sub(course.bytes_with_nodes), size.pods),
        "peakBytes": peak_bytes(),
        "scores": scores,
    })
}

fn as_text(size: Size, course: &Course, scores: &[String]) -> String {
    let figures = as_json(size, course, scores);
    let number = |name: &str| figures[name].as_f64().unwrap_or(0.0);
    let time = |name: &str| figures["decisionMicroseconds"][name].as_f64().unwrap_or(0.0);
    let mib = number("peakBytes") / f64::from(1 << 20);
    [
        format!("cluster    {} nodes, {} Pods of {} shapes", size.nodes, size.pods, size.shapes),
        format!(
            "placed     {} in {:.2} s: {:.0} a second, with what the API server would tell of each",
            course.placed,
            number("placingSeconds"),
            number("decisionsPerSecond"),
        ),
        format!(
            "decision   p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, at most {:.1} µs",
            time("p50"),
            time("p99"),
            time("p99.9"),
            time("max"),
        ),
        format!(
            "memory     {} bytes for a node, {} for a Pod, {mib:.0} MiB at most",
            figures["bytesPerNode"], figures["bytesPerPod"],
        ),
        format!("scores     {}", scores.join(", ")),
    ]
    .join("\n")
}

/// A bar on a terminal, and nothing elsewhere.
struct Progress {
    total: usize,
    is_shown: bool,
}

/// Steps of the bar.
const STEPS: usize = 200;
const WIDTH: usize = 40;

impl Progress {
    fn new(total: usize) -> Self {
        Self { total, is_shown: io::stderr().is_terminal() }
    }

    fn show(&self, placed: usize) {
        if !self.is_shown || !placed.is_multiple_of((self.total / STEPS).max(1)) {
            return;
        }
        let full = placed * WIDTH / self.total.max(1);
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH.saturating_sub(full)));
        // A bar that cannot be shown is not missed.
        let _ = write!(io::stderr(), "\r{bar} {placed} of {}", self.total);
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

/// Where the kernel says nothing, 0.
fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn peak_bytes() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
