//! Every metric that a process can serve, with or without series.

use std::collections::BTreeMap;

use prometheus::Registry;
use prometheus::core::Collector;
use prometheus::proto::{MetricFamily, MetricType};

use super::{Table, row};
use crate::configuration::Reloads;

/// Each series has it, and the page says so once.
const CLUSTER: &str = "cluster";

/// By name: type, labels and help.
type Rows = BTreeMap<String, [String; 3]>;

pub fn tables() -> [Table; 3] {
    let metrics = driver::Metrics::new("here").unwrap();
    let mut rows: Rows = metrics.collectors().iter().flat_map(rows_of).collect();
    let registry = Registry::new();
    Reloads::register(&registry).unwrap();
    driver::ShadowBook::new("other", &registry).unwrap();
    rows.extend(registry.gather().iter().map(|family| {
        let labels = family.get_metric()[0].get_label().iter().map(|label| label.name().to_owned());
        described(family, &labels.collect::<Vec<_>>())
    }));
    let (shared, ours): (Rows, Rows) = rows
        .into_iter()
        .partition(|(name, _)| name.starts_with("scheduler_") || name.starts_with("leader_"));
    let controllers = controllers::Metrics::new("here");
    let measured: Rows = controllers.collectors().flat_map(rows_of).collect();
    assert!(shared.len() > 10 && ours.len() > 20 && measured.len() > 20);
    [
        Table { name: "metrics under Kubernetes's names", text: text(&shared) },
        Table { name: "metrics of the scheduler", text: text(&ours) },
        Table { name: "metrics of the controllers", text: text(&measured) },
    ]
}

fn rows_of(collector: &dyn Collector) -> Vec<(String, [String; 3])> {
    let labels = collector.desc().first().map(|it| it.variable_labels.clone()).unwrap_or_default();
    collector.collect().iter().map(|family| described(family, &labels)).collect()
}

fn described(family: &MetricFamily, labels: &[String]) -> (String, [String; 3]) {
    let kind = match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        other => panic!("{} is a {other:?}", family.name()),
    };
    let labels: Vec<_> =
        labels.iter().filter(|label| *label != CLUSTER).map(|label| format!("`{label}`")).collect();
    assert!(!family.help().is_empty(), "{} has no help text", family.name());
    (family.name().to_owned(), [kind.to_owned(), labels.join(", "), family.help().to_owned()])
}

fn text(rows: &Rows) -> String {
    let head = row(["Name", "Type", "Labels", "Meaning"]) + "|---|---|---|---|\n";
    rows.iter().fold(head, |text, (name, [kind, labels, help])| {
        text + &row([&format!("`{name}`"), kind, labels, help])
    })
}
