//! How the cost of a decision grows with the cluster: `corridor-scheduler simulate` in several sizes, each in a process of
//! its own.

use std::fmt;
use std::path::Path;

use e2e::error::Doing as _;
use e2e::{Error, Result};
use serde::Deserialize;
use tokio::process::Command;

use crate::machine::Machine;
use crate::svg::{FONT, line, text};

/// Nodes and Pods.
const SIZES: [(usize, usize); 4] =
    [(1_000, 20_000), (5_000, 50_000), (50_000, 100_000), (1_000_000, 1_000_000)];
const SHAPES: [usize; 2] = [1, 100];

/// What `simulate --output json` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    nodes: usize,
    pods: usize,
    shapes: usize,
    decisions_per_second: f64,
    placing_seconds: f64,
    decision_microseconds: Decision,
    peak_bytes: u64,
}

/// One figure of a point.
type Figure = fn(&Point) -> f64;

#[derive(Clone, Debug, Deserialize)]
struct Decision {
    p50: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p999: f64,
    max: f64,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Growth {
    machine: Machine,
    points: Vec<Point>,
}

impl Growth {
    /// In clusters of at most so many nodes.
    pub async fn measure(scheduler: &Path, nodes_max: usize) -> Result<Self> {
        let (machine, mut points) = (Machine::here(), Vec::new());
        for shapes in SHAPES {
            for (nodes, pods) in SIZES.into_iter().filter(|(nodes, _)| *nodes <= nodes_max) {
                points.push(simulate(scheduler, nodes, pods, shapes).await?);
            }
        }
        Ok(Self { machine, points })
    }

    /// As SVG, both axes in powers of ten.
    pub fn chart(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" {FONT}>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
        );
        text(
            &mut svg,
            (LEFT, 30.0),
            18.0,
            "#1f2933",
            "start",
            "One decision, by nodes in the cluster",
        );
        let below = ["50 % and 99 % of decisions take no longer", &self.machine.to_string()];
        for (y, words) in [46.0, 59.0].into_iter().zip(below) {
            text(&mut svg, (LEFT, y), 10.0, "#616e7c", "start", words);
        }
        for power in POWERS_OF_NODES.0..=POWERS_OF_NODES.1 {
            let nodes = 10_f64.powi(power);
            let (x, words) = (x_of(nodes), format!("{}", Thousands(nodes)));
            line(&mut svg, (x, TOP), (x, BOTTOM), "#e4e7eb", 1.0);
            text(&mut svg, (x, BOTTOM + 16.0), 11.0, "#3e4c59", "middle", &words);
        }
        for power in POWERS_OF_MICROS.0..=POWERS_OF_MICROS.1 {
            let y = y_of(10_f64.powi(power));
            line(&mut svg, (LEFT, y), (RIGHT, y), "#e4e7eb", 1.0);
            let words = format!("{} µs", Thousands(10_f64.powi(power)));
            text(&mut svg, (LEFT - 6.0, y + 4.0), 11.0, "#3e4c59", "end", &words);
        }
        let mut names = Vec::new();
        for (shapes, colour) in SHAPES.into_iter().zip(["#0f8a8a", "#b44d12"]) {
            names.extend(self.draw(&mut svg, shapes, colour));
        }
        names.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut free_from = f64::MIN;
        for (words, y, colour) in names {
            let y = y.max(free_from);
            free_from = y + NAME_HEIGHT;
            text(&mut svg, (RIGHT + 6.0, y + 4.0), 11.0, colour, "start", &words);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The lines, and where each wants its name.
    fn draw<'a>(
        &self,
        svg: &mut String,
        shapes: usize,
        colour: &'a str,
    ) -> Vec<(String, f64, &'a str)> {
        let points: Vec<&Point> = self.points.iter().filter(|it| it.shapes == shapes).collect();
        let figures: [(&str, Figure, f64); 2] = [
            ("50 %", |it| it.decision_microseconds.p50, 2.5),
            ("99 %", |it| it.decision_microseconds.p99, 1.0),
        ];
        let mut names = Vec::new();
        for (name, figure, width) in figures {
            let place = |it: &Point| (x_of(count(it.nodes)), y_of(figure(it)));
            for pair in points.windows(2) {
                line(svg, place(pair[0]), place(pair[1]), colour, width);
            }
            let kinds = if shapes == 1 { "kind" } else { "kinds" };
            let last = points.last().map(|last| place(last).1);
            names.extend(last.map(|y| (format!("{shapes} {kinds}, {name}"), y, colour)));
        }
        names
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 360.0;
/// Between two names, so that both can be read.
const NAME_HEIGHT: f64 = 13.0;
/// The axes go from ten to the one to ten to the other.
const POWERS_OF_NODES: (i32, i32) = (3, 6);
const POWERS_OF_MICROS: (i32, i32) = (0, 3);

fn x_of(nodes: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * along(nodes, POWERS_OF_NODES)
}

fn y_of(micros: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * along(micros, POWERS_OF_MICROS)
}

/// How far along an axis, from 0 to 1.
fn along(figure: f64, (from, to): (i32, i32)) -> f64 {
    let (from, to) = (f64::from(from), f64::from(to));
    ((figure.max(f64::MIN_POSITIVE).log10() - from) / (to - from)).clamp(0.0, 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn count(number: usize) -> f64 {
    number as f64
}

async fn simulate(scheduler: &Path, nodes: usize, pods: usize, shapes: usize) -> Result<Point> {
    let doing = || format!("simulating {nodes} nodes");
    let mut command = Command::new(scheduler);
    command.args(["simulate", "--output", "json", "--nodes"]).arg(nodes.to_string());
    command.arg("--pods").arg(pods.to_string()).arg("--shapes").arg(shapes.to_string());
    let output = command.output().await.doing(doing())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::malformed(doing(), said));
    }
    serde_json::from_slice(&output.stdout).map_err(|problem| Error::malformed(doing(), problem))
}

/// With a comma between thousands.
struct Thousands(f64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:.0}", self.0);
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place) % 3 == 0 {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// As a table of Markdown.
impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        writeln!(
            f,
            "| Nodes | Pods | Kinds | Decisions/s | all, s | p50 µs | p99 µs | p99.9 µs | longest ms | Peak MiB |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|---|")?;
        for it in &self.points {
            let Decision { p50, p99, p999, max } = it.decision_microseconds;
            let (nodes, pods) = (Thousands(count(it.nodes)), Thousands(count(it.pods)));
            let (speed, peak) = (Thousands(it.decisions_per_second), it.peak_bytes >> 20);
            writeln!(
                f,
                "| {nodes} | {pods} | {} | {speed} | {:.2} | {p50:.1} | {p99:.1} | {p999:.1} | {:.1} | {} |",
                it.shapes,
                it.placing_seconds,
                max / 1e3,
                Thousands(count(usize::try_from(peak).unwrap_or(usize::MAX))),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_apart() {
        let shown = [0.0, 999.4, 1_000.0, 1_234_567.0].map(|it| Thousands(it).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_figure_beyond_an_axis_stays_on_the_picture() {
        assert!((x_of(1e9) - RIGHT).abs() < 1e-9 && (y_of(0.0) - BOTTOM).abs() < 1e-9);
        assert!(x_of(1e4) > x_of(1e3) && y_of(10.0) < y_of(1.0));
    }
}
