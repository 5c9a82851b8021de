//! Corridors: photonic paths of corrd.

mod apply;
mod plan;
mod status;

use daemons::attestd::DeviceKind;
use daemons::corrd::{self, Corrd, CorridorRequest, CorridorTelemetry};
use jiff::Timestamp;

use self::plan::PathChange;
use self::status::Signals;
use crate::context::{Context, KindContext};
use crate::lifecycle::{AllocatedKind, KindTypes};
use crate::metrics::{Metrics, ObjectState};

/// The kind. Its steps are the files of this folder.
#[derive(Debug)]
pub(crate) struct Corridors;

impl KindTypes for Corridors {
    type Daemon = dyn Corrd;
    type Object = crds::Corridor;
    type Status = crds::CorridorStatus;
    type Request = CorridorRequest;
    type Allocation = corrd::Corridor;
    type Sample = CorridorTelemetry;
    type Change = PathChange;
    type Signals = Signals;
}

impl AllocatedKind for Corridors {
    const FINALIZER: &'static str = crds::CORRIDOR_FINALIZER;
    const DEVICE_KIND: DeviceKind = DeviceKind::Photonic;
    const BACKEND: &'static str = "corrd";
    const BACKEND_LEASE: &'static str = crds::backend_lease::CORRD;

    fn daemon(context: &Context) -> Option<&Self::Daemon> {
        context.backends.corrd.as_deref()
    }

    fn of_kind(context: &Context) -> &KindContext<CorridorTelemetry> {
        &context.corridors
    }

    fn begin_metrics(metrics: &Metrics, object: &crds::Corridor) {
        metrics.corridor_added(object);
    }

    fn count_allocation(metrics: &Metrics, object: &crds::Corridor) {
        metrics.corridor_allocated(object);
    }

    fn record_metrics(metrics: &Metrics, object: &crds::Corridor, sample: &CorridorTelemetry) {
        metrics.corridor_sample(object, sample);
    }

    fn record_state(metrics: &Metrics, object: &crds::Corridor, state: ObjectState, _: Timestamp) {
        metrics.set_corridor_state(object, state);
    }

    fn forget_metrics(metrics: &Metrics, object: &crds::Corridor) {
        metrics.forget_corridor(object);
    }
}
