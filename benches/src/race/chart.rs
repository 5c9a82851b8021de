//! The report as a picture: three panels of bars, each with the range of its rounds.

use std::fmt::Write as _;

use super::contestant::Contestant;
use super::report::{Report, Standing};
use super::spread::Spread;
use crate::svg::{FONT, text};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 340.0;
const PANEL_WIDTH: f64 = 300.0;
const LEFT: f64 = 30.0;
const TOP: f64 = 92.0;
const BAR_AREA: f64 = 170.0;
const BAR_WIDTH: f64 = 58.0;
const BAR_GAP: f64 = 30.0;

struct Panel {
    title: &'static str,
    better: &'static str,
    figure: fn(&Standing) -> Option<Spread>,
    digits: usize,
    /// The limit client decides nothing: its own cost is not compared.
    with_limit: bool,
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "Pods bound per second",
        better: "higher is better",
        figure: |it| it.pods_per_second,
        digits: 0,
        with_limit: true,
    },
    Panel {
        title: "CPU per Pod, ms",
        better: "lower is better",
        figure: |it| it.cpu_ms_per_pod,
        digits: 2,
        with_limit: false,
    },
    Panel {
        title: "peak memory, MiB",
        better: "lower is better",
        figure: |it| it.peak_mib,
        digits: 0,
        with_limit: false,
    },
];

impl Report {
    /// As SVG.
    pub fn chart(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" {FONT}>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
        );
        let heading = format!("{}: {} Nodes, {} Pods", self.workload, self.nodes, self.pods);
        text(&mut svg, (LEFT, 32.0), 20.0, "#1f2933", "start", &heading);
        let below = format!("median of the rounds; lines show their range. {}", self.machine);
        text(&mut svg, (LEFT, 52.0), 11.0, "#616e7c", "start", &below);
        let mut left = LEFT;
        for panel in &PANELS {
            self.draw(&mut svg, panel, left);
            left += PANEL_WIDTH;
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw(&self, svg: &mut String, panel: &Panel, left: f64) {
        let title = format!("{} ({})", panel.title, panel.better);
        text(svg, (left, TOP - 12.0), 13.0, "#1f2933", "start", &title);
        let bars: Vec<(Contestant, Spread)> = self
            .contestants
            .iter()
            .filter(|it| panel.with_limit || it.contestant != Contestant::BindOnly)
            .filter_map(|it| Some((it.contestant, (panel.figure)(it)?)))
            .collect();
        let highest = bars.iter().map(|(_, it)| it.max).fold(f64::MIN_POSITIVE, f64::max);
        let bottom = TOP + 16.0 + BAR_AREA;
        let mut x = left + 10.0;
        for (contestant, spread) in bars {
            let y = |figure: f64| bottom - figure / highest * BAR_AREA;
            let (top, middle) = (y(spread.median), x + BAR_WIDTH / 2.0);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{BAR_WIDTH}\" height=\"{:.1}\" rx=\"3\" \
                 fill=\"{}\"/>",
                bottom - top,
                colour(contestant),
            );
            let _ = writeln!(
                svg,
                "<line x1=\"{middle:.1}\" x2=\"{middle:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" \
                 stroke=\"#1f2933\" stroke-width=\"1.5\"/>",
                y(spread.max),
                y(spread.min),
            );
            let digits = panel.digits;
            let shown = format!("{:.digits$}", spread.median);
            text(svg, (middle, y(spread.max) - 5.0), 13.0, "#1f2933", "middle", &shown);
            let (first, second) = label(contestant);
            text(svg, (middle, bottom + 16.0), 11.0, "#3e4c59", "middle", first);
            text(svg, (middle, bottom + 30.0), 11.0, "#3e4c59", "middle", second);
            x += BAR_WIDTH + BAR_GAP;
        }
        let _ = writeln!(
            svg,
            "<line x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\" \
             stroke=\"#9aa5b1\"/>",
            left + PANEL_WIDTH - 24.0,
        );
    }
}

fn colour(contestant: Contestant) -> &'static str {
    match contestant {
        Contestant::BindOnly => "#cbd2d9",
        Contestant::KubeScheduler => "#7b8794",
        Contestant::CorridorScheduler => "#0f8a8a",
    }
}

fn label(contestant: Contestant) -> (&'static str, &'static str) {
    match contestant {
        Contestant::BindOnly => ("bind-only", "(limit)"),
        Contestant::KubeScheduler => ("kube-", "scheduler"),
        Contestant::CorridorScheduler => ("corridor-", "scheduler"),
    }
}
