//! Whether panels tell the truth: nothing hides trouble, and numbers have their units and a scale.

use e2e::observability::dashboards::{ELSE_ZERO, dashboards};
use e2e::observability::panels::{Panel, panels};

/// Counters whose series are born with the first count of a namespace and device.
const BORN_LATE: [&str; 2] = ["attestation_ok_total", "attestation_fail_total"];

/// What an interval must not skip over, and by which function it does not.
const WORST: [(&str, &str); 5] = [
    ("corridor:floor_met:bool", "min_over_time"),
    ("corridor_achievable_gbps", "min_over_time"),
    ("ffm_achieved_gbs", "min_over_time"),
    ("ffm_bw_headroom", "min_over_time"),
    ("corridor_backend_lease_age_seconds", "max_over_time"),
];

fn all() -> Vec<Panel> {
    panels(&dashboards().unwrap())
}

fn the<'a>(panels: &'a [Panel], place: &str) -> &'a Panel {
    panels.iter().find(|it| it.place == place).unwrap_or_else(|| panic!("there is no {place}"))
}

#[track_caller]
fn ensure_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Places of the panels of which something does not hold.
fn wrong(is_right: impl Fn(&Panel) -> bool) -> Vec<String> {
    all().into_iter().filter(|it| !is_right(it)).map(|it| it.place).collect()
}

#[test]
fn what_a_series_is_born_with_is_counted() {
    ensure_none(&wrong(|panel| {
        panel.targets().all(|it| {
            BORN_LATE.iter().all(|counter| {
                let is_asked = it.expression.contains(&format!("increase({counter}"));
                !is_asked || it.expression.contains(&format!("max_over_time({counter}"))
            })
        })
    }));
}

/// Beside series with labels, `vector(0)` is one more, which Grafana calls `Value`.
#[test]
fn a_zero_of_nothing_is_no_series_of_its_own() {
    ensure_none(&wrong(|panel| {
        let has_labels = |expression: &str| expression.contains(" by (") && !is_total(expression);
        panel.targets().all(|it| {
            !it.expression.contains(ELSE_ZERO)
                || (!it.legend.contains("{{") && !has_labels(it.expression))
        })
    }));
}

/// Its outermost aggregation leaves no label.
fn is_total(expression: &str) -> bool {
    ["sum(", "count(", "max(", "avg("].iter().any(|it| expression.starts_with(it))
}

#[test]
fn a_failed_object_is_seen_on_the_overview() {
    let all = all();
    let not_ready = the(&all, "Corridor / Overview: Not Ready");
    let asked = not_ready.targets().next().unwrap().expression;
    assert!(asked.contains("corridor_objects{"), "{asked}");
    assert!(asked.contains("phase!~\"Ready|Releasing\""), "{asked}");
    assert_eq!(not_ready.last_threshold(), Some(1.0), "one is red");
    let which = the(&all, "Corridor / Overview: Floors not met");
    assert_eq!(which.kind, "table");
    let is_measured = |panel: &Panel| {
        panel.targets().any(|it| it.expression.contains("count(max by (cluster, namespace"))
    };
    let active: Vec<_> = all.iter().filter(|it| it.title.starts_with("Active ")).collect();
    assert!(active.len() == 2 && !active.into_iter().any(is_measured), "phases, not measurements");
}

#[test]
fn windows_are_as_long_as_what_they_show_is_rare() {
    let all = all();
    let panel = the(&all, "Corridor / Scheduler: Time to Ready");
    assert!(panel.targets().all(|it| it.expression.contains("[1d]")));
    ensure_none(&wrong(|panel| {
        let has_quantiles = panel.targets().any(|it| it.expression.contains("histogram_quantile"));
        // Without calls a quantile is NaN; what says so is a word, not an empty panel.
        let says_so = panel.targets().all(|it| it.expression.ends_with(" >= 0"))
            && panel.defaults()["noValue"].is_string();
        !has_quantiles || says_so
    }));
    // What leaves out zeros has to say that there is nothing.
    ensure_none(&wrong(|panel| {
        let is_lifted = panel.is_over_time()
            && panel.targets().count() == 1
            && panel.targets().any(|it| it.expression.contains("increase("))
            && panel.targets().any(|it| it.expression.ends_with(" > 0"));
        !is_lifted || panel.defaults()["noValue"].is_string()
    }));
}

#[test]
fn the_worst_of_an_interval_is_shown() {
    ensure_none(&wrong(|panel| {
        panel.targets().filter(|it| !it.is_instant).all(|it| {
            WORST.iter().all(|(metric, function)| {
                !it.expression.contains(metric)
                    || it.expression.contains(&format!("{function}({metric}"))
            })
        })
    }));
}

#[test]
fn units_have_one_blank_and_seconds_are_seconds() {
    // Grafana puts a blank before a suffix itself.
    ensure_none(&wrong(|panel| !panel.unit().starts_with("suffix: ")));
    // Grafana writes 0.00001 s as 10 µs, and 0.01 ms as 0.0100 ms.
    ensure_none(&wrong(|panel| {
        panel.unit() != "ms"
            && panel
                .targets()
                .all(|it| !it.expression.contains("_ms{") || it.expression.ends_with(" / 1000"))
    }));
}

#[test]
fn numbers_have_decimals() {
    ensure_none(&wrong(|panel| {
        let is_number = ["stat", "bargauge", "table"].contains(&panel.kind.as_str());
        !is_number || panel.defaults()["decimals"].is_u64()
    }));
    ensure_none(&wrong(|panel| panel.unit() != "sci" || panel.defaults()["decimals"] == 2));
}

#[test]
fn an_axis_of_zeros_has_a_scale() {
    ensure_none(&wrong(|panel| {
        let has_scale = panel.defaults()["max"].is_number() || panel.soft_max() > Some(0.0);
        !panel.is_over_time() || panel.defaults()["min"] != 0 || has_scale
    }));
    ensure_none(&wrong(|panel| panel.kind != "bargauge" || panel.defaults()["min"].is_number()));
}

#[test]
fn a_limit_is_on_the_scale() {
    let is_line = |panel: &Panel| {
        panel.defaults()["custom"]["thresholdsStyle"]["mode"].as_str() == Some("line")
    };
    ensure_none(&wrong(|panel| !is_line(panel) || panel.soft_max() > panel.last_threshold()));
    let all = all();
    for (place, limit) in [("Binds in flight", 64.0), ("Backend Leases", 15.0)] {
        let panel = the(&all, &format!("Corridor / Scheduler: {place}"));
        assert!(is_line(panel), "{place} shows no limit");
        assert_eq!(panel.last_threshold(), Some(limit), "{place}");
    }
}
