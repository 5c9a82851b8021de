//! Whether panels can be read: legends that are not cut, rows and bars that have room, forms that say which.

use std::collections::BTreeSet;

use e2e::observability::dashboards::{ABOVE_ZERO, dashboards};
use e2e::observability::panels::{Panel, panels};
use e2e::observability::rules::rules;
use serde_json::{Value, json};

/// Labels of which there are few values. Any other needs a table beside the panel, or only what is above 0.
const FEW: [&str; 9] =
    ["slo", "queue", "plugin", "result", "outcome", "type", "kind", "backend", "phase"];

/// Heights in pixels: of a cell of the grid with the gap below it, of what is around a table, of a small row.
const CELL: u64 = 38;
const AROUND: u64 = 56;
const ROW: u64 = 36;
/// Thicker bars are a block of colour.
const BAR_HEIGHT_MAX: u64 = 48;
/// Letters of a title that fit into a column of the grid, on a screen of 1,400 pixels.
const LETTERS_PER_COLUMN: usize = 6;

fn all() -> Vec<Panel> {
    panels(&dashboards().unwrap())
}

/// Places of the panels of which something does not hold.
#[track_caller]
fn ensure_all(is_right: impl Fn(&Panel) -> bool) {
    let wrong: Vec<String> =
        all().into_iter().filter(|it| !is_right(it)).map(|it| it.place).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn labels(legend: &str) -> impl Iterator<Item = &str> {
    legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next())
}

fn is_beside(panel: &Panel) -> bool {
    let legend = &panel.json["options"]["legend"];
    legend["placement"] == "right" && legend["displayMode"] == "table"
}

#[test]
fn legends_are_not_cut() {
    ensure_all(|panel| {
        let fits = |legend: &str, expression: &str| {
            let labels: Vec<_> = labels(legend).collect();
            let are_few = labels.len() < 2 && labels.iter().all(|label| FEW.contains(label));
            let is_of_objects = labels.iter().any(|it| ["namespace", "object"].contains(it));
            are_few || (expression.ends_with(ABOVE_ZERO) && !is_of_objects)
        };
        let all_fit = panel.targets().all(|it| fits(it.legend, it.expression));
        !panel.is_over_time() || all_fit || is_beside(panel)
    });
}

/// Two tenants may call their Corridors alike.
#[test]
fn a_wavelength_is_named_with_its_namespace() {
    ensure_all(|panel| {
        panel.targets().all(|it| {
            let labels: BTreeSet<_> = labels(it.legend).collect();
            !labels.contains("lambda") || labels.contains("namespace")
        })
    });
}

#[test]
fn floors_are_dashed_and_nothing_hides_behind_a_fill() {
    let mut seen = 0;
    for panel in all().iter().filter(|it| it.targets().any(|it| it.legend.ends_with(" floor"))) {
        assert_eq!(panel.defaults()["custom"]["fillOpacity"], 0, "{} is filled", panel.place);
        let overrides = panel.json["fieldConfig"]["overrides"].as_array().unwrap();
        let of_floors = overrides.iter().find(|it| it["matcher"]["options"] == "/ floor$/");
        let properties = of_floors.map(|it| it["properties"].to_string()).unwrap_or_default();
        assert!(properties.contains("\"fill\":\"dash\""), "{}: {properties}", panel.place);
        seen += 1;
    }
    assert_eq!(seen, 2);
}

/// Grafana chooses the first value of a variable without "All".
#[test]
fn one_object_is_chosen_until_somebody_chooses_more() {
    for (uid, name) in [("corridor-detail", "corridor"), ("corridor-ffm", "bundle")] {
        let dashboards = dashboards().unwrap();
        let dashboard = dashboards.iter().find(|it| it.file.ends_with(format!("{uid}.json")));
        let value: Value = serde_json::from_str(&dashboard.unwrap().text).unwrap();
        let variables = value["templating"]["list"].as_array().unwrap();
        let variable = variables.iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(variable["includeAll"], false, "{uid}");
        assert_eq!(variable["multi"], true, "{uid}");
        assert!(variable["current"].is_null(), "{uid}: {}", variable["current"]);
    }
}

#[test]
fn the_table_of_service_levels_shows_all_of_them_and_the_poorest_first() {
    let rules = rules().unwrap();
    let objectives: BTreeSet<_> = rules
        .iter()
        .filter(|rule| rule.name == "corridor:slo_objective:ratio")
        .map(|rule| rule.selector.as_str())
        .collect();
    assert!(objectives.len() >= 7);
    let panels = all();
    let table = panels.iter().find(|it| it.title == "SLO status").unwrap();
    let rows = u64::try_from(objectives.len()).unwrap() + 1;
    assert!(table.height() * CELL >= AROUND + rows * ROW, "{} is too short", table.height());
    let sorted = json!([{ "displayName": "Budget left", "desc": false }]);
    assert_eq!(table.json["options"]["sortBy"], sorted);
}

#[test]
fn each_panel_has_the_form_that_says_which() {
    let panels = all();
    let of = |title: &str| panels.iter().filter(move |it| it.title == title).collect::<Vec<_>>();
    for (title, kind, count) in [
        ("Alerts firing", "table", 1),
        ("Allocations", "table", 2),
        ("Who leads", "state-timeline", 1),
    ] {
        let found = of(title);
        assert_eq!(found.len(), count, "{title}");
        assert!(found.iter().all(|it| it.kind == kind), "{title} is no {kind}");
    }
    let alerts = &of("Alerts firing")[0].json;
    let renamed = &alerts["transformations"][0]["options"]["renameByName"];
    assert_eq!(renamed["alertname"], "Alert", "{renamed}");
}

#[test]
fn bars_are_no_blocks() {
    let is_limited = |panel: &Panel| {
        let options = &panel.json["options"];
        // Only a manual size has limits.
        options["sizing"] == "manual"
            && options["maxVizHeight"].as_u64().is_some_and(|it| it <= BAR_HEIGHT_MAX)
    };
    ensure_all(|panel| panel.kind != "bargauge" || is_limited(panel));
}

#[test]
fn titles_fit_their_panels_and_panels_their_grid() {
    ensure_all(|panel| {
        let columns = usize::try_from(panel.width()).unwrap();
        panel.title.chars().count() <= columns * LETTERS_PER_COLUMN - 2
    });
    for dashboard in dashboards().unwrap() {
        let panels = panels(std::slice::from_ref(&dashboard));
        let mut taken = BTreeSet::new();
        for panel in &panels {
            let at = |name: &str| panel.json["gridPos"][name].as_u64().unwrap();
            assert!(at("x") + panel.width() <= 24, "{} is too wide", panel.place);
            for x in at("x")..at("x") + panel.width() {
                for y in at("y")..at("y") + panel.height() {
                    assert!(taken.insert((x, y)), "{} lies upon another", panel.place);
                }
            }
        }
    }
}
