//! Dashboards as Grafana reads them. Grafana itself is not run.

use std::collections::BTreeSet;

use e2e::binaries::GrafanaTypes;
use e2e::observability::dashboards::dashboards;
use serde_json::Value;

#[test]
fn dashboards_are_what_grafanas_types_say() {
    let types = GrafanaTypes::locate().unwrap();
    let dashboards = dashboards().unwrap();
    for dashboard in &dashboards {
        types.check(&dashboard.title, &dashboard.text).unwrap();
    }
    // The compiler does look: a slip that Grafana would pass over in silence is an error.
    let text = &dashboards[0].text;
    for (right, wrong) in [("\"legend\":", "\"legends\":"), ("\"refId\":", "\"refID\":")] {
        let slip = text.replace(right, wrong);
        assert_ne!(&slip, text);
        let refusal = types.check("a slip", &slip).unwrap_err().to_string();
        assert!(refusal.contains(wrong.trim_matches([':', '"'])), "{refusal}");
    }
}

/// Panels that each dashboard must have, whatever else it shows.
const PROMISED: [(&str, &[&str]); 5] = [
    (
        "corridor-overview",
        &[
            "SLO status",
            "Active Corridors",
            "Not Ready",
            "Alerts firing",
            "FFM floors met",
            "Energy per bit",
            "Recalibration events",
        ],
    ),
    (
        "corridor-detail",
        &["BER per λ", "Eye margin per λ", "Energy per bit", "Bias per λ", "λ shift"],
    ),
    ("corridor-ffm", &["Achieved and floor", "Migrations", "Tail p99"]),
    ("corridor-security", &["Pass and fail", "Failures by reason", "Tampering by kind"]),
    (
        "corridor-scheduler",
        &[
            "Queue",
            "Held Pods by object and reason",
            "Attempt latency",
            "Binds",
            "Stranded CPU per floor",
        ],
    ),
];

/// Grafana finds a dashboard by its uid, and the menu of all of them by their tag.
#[test]
fn dashboards_can_be_found_and_have_the_panels_that_are_promised() {
    let mut found = BTreeSet::new();
    for dashboard in dashboards().unwrap() {
        let value: Value = serde_json::from_str(&dashboard.text).unwrap();
        let uid = value["uid"].as_str().unwrap();
        assert_eq!(dashboard.file.file_stem().unwrap(), uid);
        assert_eq!(value["tags"], value["links"][0]["tags"], "{uid}");
        let panels = value["panels"].as_array().unwrap();
        let ids: BTreeSet<u64> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len(), "{uid}: two panels have one id");
        let (_, promised) = PROMISED.iter().find(|(of, _)| *of == uid).unwrap();
        for title in *promised {
            assert!(panels.iter().any(|it| it["title"] == *title), "{uid} does not show {title}");
        }
        found.insert(uid.to_owned());
    }
    assert_eq!(found.len(), PROMISED.len());
}
