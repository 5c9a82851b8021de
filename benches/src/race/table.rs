//! The report, for people.

use std::fmt;

use super::report::{Report, Standing};
use super::spread::Spread;

const NAME_WIDTH: usize = 20;
const WIDTH: usize = 32;

/// A figure's name, how to read it, and its digits after the point.
type Row = (&'static str, fn(&Standing) -> Option<Spread>, usize);

const ROWS: [Row; 13] = [
    ("Pods/s, last bind", |it| it.pods_per_second, 0),
    ("Pods/s, last Event", |it| it.pods_per_second_with_events, 0),
    ("start to last bind s", |it| it.seconds_from_start_to_last_bind, 1),
    ("CPU s", |it| it.cpu_seconds, 2),
    ("CPU ms per Pod", |it| it.cpu_ms_per_pod, 3),
    ("  from first bind on", |it| it.cpu_ms_per_pod_under_way, 3),
    ("decision, p99 ms", |it| it.decision_p99_ms, 1),
    ("peak memory MiB", |it| it.peak_mib, 0),
    ("API server CPU s", |it| it.api_server_cpu_seconds, 1),
    ("steady Pods/s", |it| it.steady_per_second, 0),
    ("  bound, %", |it| it.steady_bound_percent, 0),
    ("  to bound, p50 ms", |it| it.steady_p50_ms, 1),
    ("  to bound, p99 ms", |it| it.steady_p99_ms, 1),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.rounds.iter().map(|it| it.round).max().unwrap_or(0);
        writeln!(f, "{}: {}", self.workload, self.about)?;
        writeln!(f, "{} Nodes, {} Pods, {rounds} rounds", self.nodes, self.pods)?;
        writeln!(f, "{}\n", self.machine)?;
        write!(f, "{:NAME_WIDTH$}", "min – median – max")?;
        for standing in &self.contestants {
            write!(f, "{:>WIDTH$}", standing.contestant.name())?;
        }
        writeln!(f)?;
        for (name, figure, digits) in ROWS {
            if self.contestants.iter().all(|it| figure(it).is_none()) {
                continue;
            }
            write!(f, "{name:NAME_WIDTH$}")?;
            for standing in &self.contestants {
                write!(f, "{:>WIDTH$}", shown(figure(standing), digits))?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        let ratios = &self.ratios;
        for (what, ratio) in [
            ("kube-scheduler / limit", ratios.kube_scheduler_to_limit),
            ("corridor-scheduler / limit", ratios.corridor_scheduler_to_limit),
            ("Pods/s, to kube-scheduler's", ratios.throughput_to_kube_scheduler),
            ("with Events, to its", ratios.throughput_with_events_to_kube_scheduler),
            ("CPU, to kube-scheduler's", ratios.cpu_to_kube_scheduler),
            ("peak memory, to its", ratios.peak_memory_to_kube_scheduler),
        ] {
            writeln!(f, "{what:28}{:>WIDTH$}", shown(ratio, 3))?;
        }
        let word = |holds: bool| if holds { "yes" } else { "NO" };
        writeln!(f, "\nevery Pod bound once: {}", word(self.checks.every_pod_bound_once))?;
        write!(f, "no Event dropped: {}", word(self.checks.no_event_dropped))
    }
}

fn shown(figure: Option<Spread>, digits: usize) -> String {
    figure.map_or_else(|| "–".to_owned(), |it| format!("{it:.digits$}"))
}
