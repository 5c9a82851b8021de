//! MemoryBundles: free-form memory of memqosd.

mod apply;
mod plan;
mod status;

use crds::MemoryBundle;
use daemons::attestd::DeviceKind;
use daemons::memqosd::{Bundle, BundleRequest, BundleTelemetry, Memqosd};
use jiff::Timestamp;

use self::plan::BundleChange;
use self::status::Signals;
use crate::context::{Context, KindContext};
use crate::lifecycle::{AllocatedKind, KindTypes};
use crate::metrics::{Metrics, ObjectState};

/// The kind. Its steps are the files of this folder.
#[derive(Debug)]
pub(crate) struct Bundles;

impl KindTypes for Bundles {
    type Daemon = dyn Memqosd;
    type Object = MemoryBundle;
    type Status = crds::MemoryBundleStatus;
    type Request = BundleRequest;
    type Allocation = Bundle;
    type Sample = BundleTelemetry;
    type Change = BundleChange;
    type Signals = Signals;
}

impl AllocatedKind for Bundles {
    const FINALIZER: &'static str = crds::FFM_FINALIZER;
    const DEVICE_KIND: DeviceKind = DeviceKind::Memory;
    const BACKEND: &'static str = "memqosd";
    const BACKEND_LEASE: &'static str = crds::backend_lease::MEMQOSD;

    fn daemon(context: &Context) -> Option<&Self::Daemon> {
        context.backends.memqosd.as_deref()
    }

    fn of_kind(context: &Context) -> &KindContext<BundleTelemetry> {
        &context.bundles
    }

    fn begin_metrics(metrics: &Metrics, object: &MemoryBundle) {
        metrics.bundle_added(object);
    }

    fn count_allocation(metrics: &Metrics, object: &MemoryBundle) {
        metrics.bundle_allocated(object);
    }

    fn record_metrics(metrics: &Metrics, object: &MemoryBundle, sample: &BundleTelemetry) {
        metrics.bundle_sample(object, sample);
    }

    fn record_state(metrics: &Metrics, object: &MemoryBundle, state: ObjectState, now: Timestamp) {
        metrics.set_bundle_state(object, crds::floor_at(&object.spec, now), state);
    }

    fn forget_metrics(metrics: &Metrics, object: &MemoryBundle) {
        metrics.forget_bundle(object);
    }
}
