//! Pods that are held for objects, and for how long. Only the leader reports it.

use std::collections::BTreeSet;

use engine::{Cause, PendingSummary};
use model::{Instant, ObjectRef};
use parking_lot::Mutex;
use prometheus::{GaugeVec, IntGauge, IntGaugeVec};

use super::ages::{Ages, Since};
use super::make::{Made, Maker, gauge};
use super::objects::kind_label;
use crate::clock::Clock;

/// Objects and reasons with series of their own: as many as one looks at in a dashboard, and far more.
const ROWS_MAX: usize = 10_000;

#[derive(Debug)]
pub(super) struct HeldPods {
    oldest: Ages,
    held: IntGaugeVec,
    stranded: GaugeVec,
    /// Pods held for objects without series of their own.
    unlisted: IntGauge,
    shown: Mutex<Shown>,
}

type Row = [String; 4];

/// What has series now, so that they end when no Pod is held any more.
#[derive(Debug, Default)]
struct Shown {
    held: BTreeSet<Row>,
    stranded: BTreeSet<[String; 3]>,
    unschedulable: BTreeSet<[String; 2]>,
}

impl HeldPods {
    pub fn new(make: &Maker) -> Made<Self> {
        let oldest = Ages::new(
            "corridor_oldest_held_pod_seconds",
            "Longest time that a Pod is held for an object, by reason. 0: none is, or another replica leads.",
            "reason",
        )?;
        for why in Cause::LABELS {
            oldest.set(why, Since::Nothing);
        }
        Ok(Self {
            oldest: make.registered(oldest)?,
            held: make.gauges(
                "corridor_held_pods",
                "Pods held for a Corridor or MemoryBundle, by reason. Only the leader reports it; a series ends when no Pod is held. At most 10,000 series.",
                &["namespace", "kind", "object", "reason"],
            )?,
            stranded: make.amounts(
                "corridor_stranded_cpu_cores",
                "CPU requested by Pods that lack nothing but this object, at most what is free on all nodes together. Only the leader reports it.",
                &["namespace", "kind", "object"],
            )?,
            unlisted: make.gauge(
                "corridor_held_pods_unlisted",
                "Pods held for objects that have no series in corridor_held_pods, because there are too many.",
            )?,
            shown: Mutex::default(),
        })
    }

    /// `None`: another replica leads.
    pub fn publish(
        &self,
        summary: Option<&PendingSummary>,
        unschedulable: &IntGaugeVec,
        clock: &Clock,
    ) {
        let empty = PendingSummary::default();
        let summary = summary.unwrap_or(&empty);
        for why in Cause::LABELS {
            let at = |since: &Instant| Since::At(clock.deadline(*since));
            self.oldest.set(why, summary.oldest.get(why).map_or(Since::Nothing, at));
        }
        let mut shown = self.shown.lock();
        let rows = summary
            .by_plugin
            .iter()
            .map(|((plugin, profile), pods)| ([plugin.clone(), profile.to_string()], gauge(*pods)));
        shown.unschedulable = show(unschedulable, rows, &shown.unschedulable);
        let listed = summary.held.iter().take(ROWS_MAX);
        let rows = listed.map(|((object, why), pods)| {
            let [namespace, kind, name] = names(object);
            ([namespace, kind, name, why.clone()], gauge(*pods))
        });
        shown.held = show(&self.held, rows, &shown.held);
        self.unlisted.set(gauge(summary.held.values().skip(ROWS_MAX).sum()));
        let rows: Vec<_> = summary.stranded_cpu_milli.iter().take(ROWS_MAX).collect();
        let now: BTreeSet<[String; 3]> = rows.iter().map(|(object, _)| names(object)).collect();
        for gone in shown.stranded.difference(&now) {
            let _ = self.stranded.remove_label_values(gone);
        }
        for (object, milli) in rows {
            #[expect(clippy::cast_precision_loss, reason = "an amount on a graph")]
            self.stranded.with_label_values(&names(object)).set(*milli as f64 / 1000.0);
        }
        shown.stranded = now;
    }
}

fn names(object: &ObjectRef) -> [String; 3] {
    let kind = kind_label(object.kind).to_owned();
    [object.key.namespace.to_string(), kind, object.key.name.to_string()]
}

/// Sets the rows, and ends those that were shown before and are none now.
fn show<const N: usize>(
    gauges: &IntGaugeVec,
    rows: impl Iterator<Item = ([String; N], i64)>,
    before: &BTreeSet<[String; N]>,
) -> BTreeSet<[String; N]> {
    let mut now = BTreeSet::new();
    for (labels, value) in rows {
        gauges.with_label_values(&labels).set(value);
        now.insert(labels);
    }
    for gone in before.difference(&now) {
        // What was set can be removed.
        let _ = gauges.remove_label_values(gone);
    }
    now
}

#[cfg(test)]
mod tests {
    use model::{ObjectKey, ObjectKind};

    use super::*;

    fn held_for(name: &str) -> PendingSummary {
        let object = ObjectRef { kind: ObjectKind::Corridor, key: ObjectKey::new("a", name) };
        PendingSummary {
            held: [((object.clone(), "Short".to_owned()), 2)].into(),
            oldest: [("Short".to_owned(), Instant::START)].into(),
            stranded_cpu_milli: [(object, 1_500)].into(),
            by_plugin: [(("Corridor".to_owned(), "p".into()), 2)].into(),
        }
    }

    #[tokio::test]
    async fn series_end_when_no_pod_is_held() {
        let make = Maker::new("here").unwrap();
        let held = HeldPods::new(&make).unwrap();
        let unschedulable = make.gauges("u", "help", &["plugin", "profile"]).unwrap();
        let clock = Clock::start();
        held.publish(Some(&held_for("c1")), &unschedulable, &clock);
        held.publish(Some(&held_for("c2")), &unschedulable, &clock);
        let text = || {
            let families = make.registry.gather();
            prometheus::TextEncoder::new().encode_to_string(&families).unwrap()
        };
        let told = text();
        assert!(!told.contains("object=\"c1\""), "{told}");
        let row = "kind=\"Corridor\",namespace=\"a\",object=\"c2\"";
        let stranded = format!("corridor_stranded_cpu_cores{{{row},cluster=\"here\"}} 1.5");
        let two = format!("corridor_held_pods{{{row},reason=\"Short\",cluster=\"here\"}} 2");
        assert!(told.contains(&stranded) && told.contains(&two), "{told}");
        held.publish(None, &unschedulable, &clock);
        let told = text();
        assert!(!told.contains("object="), "{told}");
        let none = "corridor_oldest_held_pod_seconds{reason=\"Short\",cluster=\"here\"} 0";
        assert!(told.contains(none), "{told}");
    }
}
