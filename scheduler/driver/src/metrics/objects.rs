//! Corridors, MemoryBundles, and the daemons behind them.

use std::collections::BTreeSet;

use crds::Phase;
use model::{Amount, ObjectKind, ObjectRef};
use parking_lot::Mutex;
use prometheus::{GaugeVec, HistogramVec, IntCounter, IntGaugeVec};
use tokio::time::Instant;

use super::ages::{Ages, Since};
use super::make::{Made, Maker, gauge};
use crate::phases::Counts;
use crate::time_to_ready::ReadySample;

/// Objects with series of their own, as many as those of the controllers.
const OBJECTS_MAX: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Objects {
    /// Objects that have a series of what is reserved.
    listed: Mutex<BTreeSet<ObjectRef>>,
    unlisted: IntCounter,
    reserved_corridors: GaugeVec,
    reserved_bundles: GaugeVec,
    time_to_ready: HistogramVec,
    lease_ages: Ages,
    phases: IntGaugeVec,
}

impl Objects {
    pub(super) fn new(make: &Maker) -> Made<Self> {
        let lease_ages = Ages::new(
            "corridor_backend_lease_age_seconds",
            "Seconds since the Lease of a backend (corrd, memqosd, attestd) was renewed, as this replica sees it; +Inf while one that is configured has none.",
            "backend",
        )?;
        let time_to_ready = make.histograms(
            "corridor_time_to_ready_seconds",
            "Time from the creation of a Corridor or MemoryBundle to its first Ready. One that is not Ready after 60 s is counted then, once, above every bucket; one that its own spec or the AttestationPolicies of its namespace refused is not counted. Only the leader counts.",
            vec![0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0],
            &["kind"],
        )?;
        for kind in ObjectKind::ALL {
            time_to_ready.with_label_values(&[kind_label(kind)]);
        }
        let this = Self {
            listed: Mutex::default(),
            unlisted: make.counter(
                "corridor_reserved_samples_dropped_total",
                "Changes of what is reserved of objects that have no series of their own, because there are too many.",
            )?,
            reserved_corridors: make.amounts(
                "corridor_reserved_gbps",
                "Bandwidth of a Corridor that bound Pods have reserved.",
                &["namespace", "corridor"],
            )?,
            reserved_bundles: make.amounts(
                "ffm_reserved_gbs",
                "Bandwidth of a MemoryBundle that bound Pods have reserved, in GB/s.",
                &["namespace", "bundle"],
            )?,
            time_to_ready,
            lease_ages: make.registered(lease_ages)?,
            phases: make.gauges(
                "corridor_objects",
                "Corridors and MemoryBundles by phase: Pending, Allocating, Ready, Degraded, Failed, Releasing, Unknown. Every replica says it. Beyond 10,000 namespaces the others are counted with an empty one.",
                &["namespace", "kind", "phase"],
            )?,
        };
        // A cluster without objects says so, too.
        for kind in ObjectKind::ALL {
            this.phases(kind, "", Some(Counts::default()));
        }
        Ok(this)
    }

    /// How many objects of a namespace are in which phase; `None` when there are none, and the series end.
    pub fn phases(&self, kind: ObjectKind, namespace: &str, counts: Option<Counts>) {
        let counts = counts.or_else(|| namespace.is_empty().then(Counts::default));
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            let labels = [namespace, kind_label(kind), phase.as_str()];
            match counts {
                Some(counts) => self.phases.with_label_values(&labels).set(gauge(counts[index])),
                // What was never set cannot be removed, and need not be.
                None => drop(self.phases.remove_label_values(&labels)),
            }
        }
    }

    /// What is reserved of an object now; `None` when it is gone, and its series with it.
    pub fn reserved(&self, object: &ObjectRef, reserved: Option<Amount>) {
        let series = match object.kind {
            ObjectKind::Corridor => &self.reserved_corridors,
            ObjectKind::MemoryBundle => &self.reserved_bundles,
        };
        let labels = [&*object.key.namespace, &*object.key.name];
        let mut listed = self.listed.lock();
        match reserved {
            Some(_) if listed.len() >= OBJECTS_MAX && !listed.contains(object) => {
                self.unlisted.inc();
            }
            #[expect(clippy::cast_precision_loss, reason = "an amount on a graph")]
            Some(reserved) => {
                listed.insert(object.clone());
                series.with_label_values(&labels).set(reserved.milli() as f64 / 1000.0);
            }
            None => {
                listed.remove(object);
                // What was never set cannot be removed, and need not be.
                let _ = series.remove_label_values(&labels);
            }
        }
    }

    pub fn became_ready(&self, sample: &ReadySample) {
        let took = self.time_to_ready.with_label_values(&[kind_label(sample.kind)]);
        took.observe(sample.took.as_secs_f64());
    }

    /// This backend is configured: that it has no Lease is worth telling.
    pub fn expect_backend(&self, backend: &'static str) {
        self.lease_ages.set(backend, Since::Ever);
    }

    pub fn lease_renewed(&self, backend: &'static str, at: Instant) {
        self.lease_ages.set(backend, Since::At(at));
    }
}

pub(super) fn kind_label(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Corridor => "Corridor",
        ObjectKind::MemoryBundle => "MemoryBundle",
    }
}

#[cfg(test)]
mod tests {
    use model::ObjectKey;

    use super::*;

    fn corridor(number: usize) -> ObjectRef {
        ObjectRef { kind: ObjectKind::Corridor, key: ObjectKey::new("a", &number.to_string()) }
    }

    #[test]
    fn phases_are_0_from_the_start_and_end_with_the_last_object() {
        let make = Maker::new("here").unwrap();
        let objects = Objects::new(&make).unwrap();
        let told = |series: &str| {
            let text = prometheus::TextEncoder::new();
            text.encode_to_string(&make.registry.gather()).unwrap().contains(series)
        };
        for phase in Phase::ALL {
            let labels = format!("kind=\"Corridor\",namespace=\"\",phase=\"{phase}\"");
            assert!(told(&format!("corridor_objects{{{labels},cluster=\"here\"}} 0")), "{phase}");
        }
        objects.phases(ObjectKind::Corridor, "a", Some([0, 0, 4, 0, 1, 0, 0]));
        let failed = "corridor_objects{kind=\"Corridor\",namespace=\"a\",phase=\"Failed\",cluster=\"here\"} 1";
        assert!(told(failed));
        objects.phases(ObjectKind::Corridor, "a", None);
        assert!(!told("namespace=\"a\""));
    }

    #[test]
    fn too_many_objects_are_counted_instead_of_shown() {
        let objects = Objects::new(&Maker::new("here").unwrap()).unwrap();
        *objects.listed.lock() = (0..OBJECTS_MAX).map(corridor).collect();
        objects.reserved(&corridor(1), Some(Amount::from_whole(7)));
        objects.reserved(&corridor(OBJECTS_MAX), Some(Amount::from_whole(7)));
        let series = |object: usize| {
            let labels = ["a", &object.to_string()];
            objects.reserved_corridors.with_label_values(&labels).get() > 0.5
        };
        assert!(series(1) && !series(OBJECTS_MAX) && objects.unlisted.get() == 1);
        objects.reserved(&corridor(1), None);
        objects.reserved(&corridor(OBJECTS_MAX), Some(Amount::from_whole(7)));
        assert!(series(OBJECTS_MAX), "there is room again");
    }
}
