//! The race in small: everything that it promises to show is there.

use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs the race and reads its JSON.
fn race(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_race"))
        .args(arguments)
        .args(["--output", "json"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("the race can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).expect("its output is JSON")
}

fn number(report: &Value, place: &str) -> f64 {
    let found = report.pointer(place).and_then(Value::as_f64);
    assert!(found.is_some(), "{place} is missing in {report:#}");
    found.unwrap_or_default()
}

#[test]
fn a_small_race_shows_every_figure() {
    let chart = std::env::temp_dir().join(format!("corridor-race-{}.svg", std::process::id()));
    let size = ["--nodes", "50", "--pods", "100", "--rounds", "1", "--steady-seconds", "2"];
    let drawn = ["--chart", chart.to_str().unwrap()];
    let report = race(&[&["--workload", "basic"], &size[..], &drawn[..]].concat());
    for (index, who) in ["bind-only", "kube-scheduler", "corridor-scheduler"].iter().enumerate() {
        let of = |figure: &str| format!("/contestants/{index}/{figure}/median");
        assert_eq!(report["contestants"][index]["contestant"], *who);
        let mut figures =
            vec!["podsPerSecond", "cpuSeconds", "peakMib", "apiServerCpuSeconds", "cpuMsPerPod"];
        figures.push("cpuMsPerPodUnderWay");
        if *who == "corridor-scheduler" {
            figures.push("decisionP99Ms");
        }
        if *who != "bind-only" {
            figures.extend(["podsPerSecondWithEvents", "steadyP50Ms", "steadyP99Ms"]);
        }
        for figure in figures {
            assert!(number(&report, &of(figure)) >= 0.0, "{who}: {figure}");
        }
        assert!(number(&report, &of("podsPerSecond")) > 1.0);
    }
    let ratios = report["ratios"].as_object().unwrap();
    for name in ratios.keys() {
        for part in ["min", "median", "max"] {
            assert!(number(&report, &format!("/ratios/{name}/{part}")) > 0.0, "{name}");
        }
    }
    assert_eq!(report["checks"]["everyPodBoundOnce"], true);
    assert_eq!(report["checks"]["noEventDropped"], true);
    assert!(number(&report, "/machine/cores") >= 1.0);
    assert!(report["machine"]["date"].as_str().unwrap().starts_with("20"));
    let drawing = std::fs::read_to_string(&chart).unwrap();
    std::fs::remove_file(&chart).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>"));
}

#[test]
fn a_small_start_up_shows_its_ratio() {
    let figures = race(&["start-up", "--nodes", "20", "--pods", "50", "--rounds", "1"]);
    assert!(number(&figures, "/listSeconds/median") > 0.0);
    assert!(number(&figures, "/firstBindSeconds/median") > 0.0);
    assert!(number(&figures, "/ratio/median") > 0.0);
}

#[test]
fn pods_with_volumes_are_bound_in_every_workload() {
    let workloads = ["bound-zonal", "attach-limits", "local-pv", "dynamic-wffc"];
    for workload in workloads {
        let size = ["--nodes", "20", "--pods", "30", "--rounds", "1", "--steady-seconds", "1"];
        let report = race(&[&["--workload", workload], &size[..]].concat());
        for index in 0..3 {
            let rate = number(&report, &format!("/contestants/{index}/podsPerSecond/median"));
            assert!(rate > 1.0, "{workload}: {rate}");
        }
        assert_eq!(report["checks"]["everyPodBoundOnce"], true, "{workload}");
        assert_eq!(report["checks"]["noEventDropped"], true, "{workload}");
    }
}
