//! MemoryBundles: free-form memory of memqosd.

mod apply;
mod observe;
mod plan;
mod status;

use controller_runtime::Triggers;
use daemons::attestd::DeviceKind;
use daemons::corrd::Lease;
use daemons::memqosd::{Bundle, BundleRequest, BundleTelemetry};
use daemons::{Owner, Released, Reply};
use jiff::Timestamp;
use own_writes::PlacementStatus;

use self::plan::BundleChange;
use self::status::Signals;
use crate::context::Context;
use crate::lifecycle::{AllocatedKind, Drift, Health, Observed, StatusBase};
use crate::metrics::ObjectState;
use crate::settings::Settings;
use crate::sweep::KnownUids;
use crate::telemetry_cache::TelemetryCache;

/// The kind. Its steps are the files of this folder.
#[derive(Debug)]
pub(crate) struct Bundles;

impl AllocatedKind for Bundles {
    const FINALIZER: &'static str = crds::FFM_FINALIZER;
    const DEVICE_KIND: DeviceKind = DeviceKind::Memory;
    const BACKEND: &'static str = "memqosd";

    type Object = crds::MemoryBundle;
    type Status = crds::MemoryBundleStatus;
    type Request = BundleRequest;
    type Allocation = Bundle;
    type Sample = BundleTelemetry;
    type Change = BundleChange;
    type Signals = Signals;

    fn has_backend(context: &Context) -> bool {
        context.backends.memqosd.is_some()
    }

    fn telemetry_cache(context: &Context) -> &TelemetryCache<BundleTelemetry> {
        &context.bundles
    }

    fn known_uids(context: &Context) -> &KnownUids {
        &context.known_bundles
    }

    fn triggers(context: &Context) -> &Triggers {
        &context.bundle_triggers
    }

    fn begin_metrics(context: &Context, object: &crds::MemoryBundle) {
        context.metrics.bundle_added(object);
    }

    fn record_metrics(context: &Context, object: &crds::MemoryBundle, sample: &BundleTelemetry) {
        context.metrics.bundle_sample(object, sample);
    }

    fn record_state(
        context: &Context,
        object: &crds::MemoryBundle,
        state: ObjectState,
        now: Timestamp,
    ) {
        context.metrics.set_bundle_state(object, crds::floor_at(&object.spec, now), state);
    }

    fn forget_metrics(context: &Context, object: &crds::MemoryBundle) {
        context.metrics.forget_bundle(object);
    }

    fn observed(object: &crds::MemoryBundle) -> Observed {
        observe::observed(object)
    }

    fn validate(object: &crds::MemoryBundle) -> Result<(), String> {
        plan::validate(&object.spec)
    }

    /// Bundles are attested by policy only.
    fn demands_attestation(_object: &crds::MemoryBundle) -> bool {
        false
    }

    fn request(
        object: &crds::MemoryBundle,
        owner: &Owner,
        device: Option<&str>,
        now: Timestamp,
    ) -> BundleRequest {
        plan::request(&object.spec, owner, device, now)
    }

    fn key(request: &BundleRequest) -> String {
        request.key().to_string()
    }

    fn satisfies(allocation: &Bundle, request: &BundleRequest) -> bool {
        plan::satisfies(allocation, request)
    }

    fn change(allocation: &Bundle, request: &BundleRequest) -> Option<BundleChange> {
        plan::change(&allocation.memory, &request.memory)
    }

    fn is_current(allocation: &Bundle, sample: &BundleTelemetry) -> bool {
        status::is_current(allocation, sample)
    }

    fn has_moved(
        object: &crds::MemoryBundle,
        allocation: &Bundle,
        sample: &BundleTelemetry,
    ) -> bool {
        status::has_moved(object, allocation, sample)
    }

    fn judge(
        _object: &crds::MemoryBundle,
        allocation: &Bundle,
        sample: Option<&BundleTelemetry>,
        signals: &mut Signals,
        settings: &Settings,
        now: Timestamp,
    ) -> Health<BundleChange> {
        status::judge(allocation, sample, signals, settings, now)
    }

    fn status(
        allocation: Option<&Bundle>,
        sample: Option<&BundleTelemetry>,
        base: StatusBase,
    ) -> crds::MemoryBundleStatus {
        status::status(allocation, sample, base)
    }

    fn status_unknown(object: &crds::MemoryBundle, base: StatusBase) -> crds::MemoryBundleStatus {
        status::status_unknown(object, base)
    }

    fn drift(object: &crds::MemoryBundle, next: &crds::MemoryBundleStatus) -> Drift {
        status::drift(object, next)
    }

    fn next_change(object: &crds::MemoryBundle, now: Timestamp) -> Option<Timestamp> {
        object.spec.schedule.as_ref().and_then(|schedule| crds::next_change(schedule, now))
    }

    fn own_status(object: &crds::MemoryBundle) -> crds::MemoryBundleStatus {
        status::own(object)
    }

    fn with_own_status(
        object: &crds::MemoryBundle,
        own: &crds::MemoryBundleStatus,
    ) -> crds::MemoryBundle {
        status::with_own(object, own)
    }

    fn placement(status: &crds::MemoryBundleStatus, ticket: Option<String>) -> PlacementStatus {
        status::placement(status, ticket)
    }

    fn list<'a>(context: &'a Context, owner_prefix: &'a str) -> Reply<'a, Vec<Bundle>> {
        observe::list(context, owner_prefix)
    }

    fn get<'a>(context: &'a Context, id: &'a str) -> Reply<'a, Option<Bundle>> {
        observe::get(context, id)
    }

    fn telemetry<'a>(context: &'a Context, id: &'a str) -> Reply<'a, Option<BundleTelemetry>> {
        observe::telemetry(context, id)
    }

    fn allocate<'a>(
        context: &'a Context,
        object: &'a crds::MemoryBundle,
        request: BundleRequest,
        ticket: Option<String>,
    ) -> Reply<'a, Bundle> {
        apply::allocate(context, object, request, ticket)
    }

    fn release<'a>(context: &'a Context, id: &'a str, owner: &'a Owner) -> Reply<'a, Released> {
        apply::release(context, id, owner)
    }

    fn renew<'a>(context: &'a Context, id: &'a str, owner: &'a Owner) -> Reply<'a, Lease> {
        apply::renew(context, id, owner)
    }

    fn apply_change<'a>(
        context: &'a Context,
        _object: &'a crds::MemoryBundle,
        id: &'a str,
        owner: &'a Owner,
        change: &'a BundleChange,
    ) -> Reply<'a, ()> {
        apply::change(context, id, owner, change)
    }
}
