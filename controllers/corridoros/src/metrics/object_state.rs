//! Floors of objects of which nothing is measured, and objects that are refused.

use controller_runtime::SeriesMaker;
use crds::{Corridor, MemoryBundle};
use prometheus::GaugeVec;

use super::{BUNDLE, CORRIDOR, CorridorRow, Metrics, name_of};

/// The state of an object after a reconcile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectState {
    /// By its own spec, or by the policies of its namespace.
    pub is_refused: bool,
    /// Its daemon holds no allocation for it.
    pub has_nothing: bool,
    pub is_deleting: bool,
}

impl ObjectState {
    /// An object has a floor from its first reconcile on until its release.
    fn owes_floor(self) -> bool {
        !(self.is_deleting && self.has_nothing)
    }
}

pub(super) fn refused(make: &SeriesMaker<'_>) -> GaugeVec {
    make.gauges(
        "corridor_object_refused",
        "1 while an object is refused by its own spec or by the AttestationPolicies of its namespace: \
         its owner's matter, which no service level counts. The series ends with the refusal.",
        &["namespace", "kind", "object"],
    )
}

impl Metrics {
    /// The readings of a lost path are removed; its floor stays.
    pub(crate) fn set_corridor_state(&self, object: &Corridor, state: ObjectState) {
        let name = name_of(object);
        let mut rows = self.rows.lock();
        let Some(row) = rows.corridors.get_mut(&name) else { return };
        let (series, labels) = (&self.corridors, [name.0.as_str(), name.1.as_str()]);
        let mut lambdas = 0;
        if state.has_nothing {
            let CorridorRow { lambdas: lost, .. } = std::mem::take(row);
            lambdas = lost.len();
            self.forget_lambdas(&name, lost.keys());
            for gauges in series.per_corridor() {
                let _ = gauges.remove_label_values(&labels);
            }
        }
        if state.owes_floor() {
            let [_, min, _] = &mut row.gauges;
            min.get_or_insert_with(|| series.min.with_label_values(&labels))
                .set(object.spec.min_gbps.into());
        }
        rows.count -= lambdas;
        self.set_refused([labels[0], CORRIDOR, labels[1]], state.is_refused);
    }

    /// `floor`: the one that holds now.
    pub(crate) fn set_bundle_state(&self, object: &MemoryBundle, floor: u32, state: ObjectState) {
        let name = name_of(object);
        if !self.rows.lock().bundles.contains(&name) {
            return;
        }
        let (series, labels) = (&self.bundles, [name.0.as_str(), name.1.as_str()]);
        if state.has_nothing {
            for gauges in series.gauges() {
                let _ = gauges.remove_label_values(&labels);
            }
            if state.owes_floor() {
                series.floor.with_label_values(&labels).set(floor.into());
            }
        }
        self.set_refused([labels[0], BUNDLE, labels[1]], state.is_refused);
    }

    fn set_refused(&self, labels: [&str; 3], is_refused: bool) {
        if is_refused {
            self.refused.with_label_values(&labels).set(1.0);
        } else {
            // Removing a series that was never set fails, which is harmless.
            let _ = self.refused.remove_label_values(&labels);
        }
    }
}
