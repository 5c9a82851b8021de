//! Corridors: photonic paths of corrd.

mod apply;
mod observe;
mod plan;
mod status;

use controller_runtime::Triggers;
use daemons::attestd::DeviceKind;
use daemons::corrd::{self, CorridorRequest, CorridorTelemetry, Lease};
use daemons::{Owner, Released, Reply};
use jiff::Timestamp;
use own_writes::PlacementStatus;

use self::plan::PathChange;
use self::status::Signals;
use crate::context::Context;
use crate::lifecycle::{AllocatedKind, Drift, Health, Observed, StatusBase};
use crate::metrics::ObjectState;
use crate::settings::Settings;
use crate::sweep::KnownUids;
use crate::telemetry_cache::TelemetryCache;

/// The kind. Its steps are the files of this folder.
#[derive(Debug)]
pub(crate) struct Corridors;

impl AllocatedKind for Corridors {
    const FINALIZER: &'static str = crds::CORRIDOR_FINALIZER;
    const DEVICE_KIND: DeviceKind = DeviceKind::Photonic;
    const BACKEND: &'static str = "corrd";

    type Object = crds::Corridor;
    type Status = crds::CorridorStatus;
    type Request = CorridorRequest;
    type Allocation = corrd::Corridor;
    type Sample = CorridorTelemetry;
    type Change = PathChange;
    type Signals = Signals;

    fn has_backend(context: &Context) -> bool {
        context.backends.corrd.is_some()
    }

    fn telemetry_cache(context: &Context) -> &TelemetryCache<CorridorTelemetry> {
        &context.corridors
    }

    fn known_uids(context: &Context) -> &KnownUids {
        &context.known_corridors
    }

    fn triggers(context: &Context) -> &Triggers {
        &context.corridor_triggers
    }

    fn begin_metrics(context: &Context, object: &crds::Corridor) {
        context.metrics.corridor_added(object);
    }

    fn record_metrics(context: &Context, object: &crds::Corridor, sample: &CorridorTelemetry) {
        context.metrics.corridor_sample(object, sample);
    }

    fn record_state(
        context: &Context,
        object: &crds::Corridor,
        state: ObjectState,
        _now: Timestamp,
    ) {
        context.metrics.set_corridor_state(object, state);
    }

    fn forget_metrics(context: &Context, object: &crds::Corridor) {
        context.metrics.forget_corridor(object);
    }

    fn observed(object: &crds::Corridor) -> Observed {
        observe::observed(object)
    }

    fn validate(object: &crds::Corridor) -> Result<(), String> {
        plan::validate(&object.spec)
    }

    fn demands_attestation(object: &crds::Corridor) -> bool {
        object.spec.attestation_required
    }

    fn request(
        object: &crds::Corridor,
        owner: &Owner,
        device: Option<&str>,
        _now: Timestamp,
    ) -> CorridorRequest {
        plan::request(&object.spec, owner, device)
    }

    fn key(request: &CorridorRequest) -> String {
        request.key().to_string()
    }

    fn satisfies(allocation: &corrd::Corridor, request: &CorridorRequest) -> bool {
        plan::satisfies(allocation, request)
    }

    fn change(allocation: &corrd::Corridor, request: &CorridorRequest) -> Option<PathChange> {
        plan::change(&allocation.path, &request.path)
    }

    fn is_current(allocation: &corrd::Corridor, sample: &CorridorTelemetry) -> bool {
        status::is_current(allocation, sample)
    }

    fn has_reading(object: &crds::Corridor) -> bool {
        object.status.as_ref().is_some_and(|it| it.telemetry.is_some())
    }

    fn has_moved(
        object: &crds::Corridor,
        allocation: &corrd::Corridor,
        sample: &CorridorTelemetry,
    ) -> bool {
        status::has_moved(object, allocation, sample)
    }

    fn judge(
        object: &crds::Corridor,
        allocation: &corrd::Corridor,
        sample: Option<&CorridorTelemetry>,
        signals: &mut Signals,
        settings: &Settings,
        now: Timestamp,
    ) -> Health<PathChange> {
        status::judge(object, allocation, sample, signals, settings, now)
    }

    fn change_requested(signals: &mut Signals, change: &PathChange, now: Timestamp) {
        if matches!(change, PathChange::Recalibrate(_)) {
            signals.recalibrated(now);
        }
    }

    fn status(
        allocation: Option<&corrd::Corridor>,
        sample: Option<&CorridorTelemetry>,
        base: StatusBase,
    ) -> crds::CorridorStatus {
        status::status(allocation, sample, base)
    }

    fn status_unknown(object: &crds::Corridor, base: StatusBase) -> crds::CorridorStatus {
        status::status_unknown(object, base)
    }

    fn drift(object: &crds::Corridor, next: &crds::CorridorStatus) -> Drift {
        status::drift(object, next)
    }

    fn own_status(object: &crds::Corridor) -> crds::CorridorStatus {
        status::own(object)
    }

    fn with_own_status(object: &crds::Corridor, own: &crds::CorridorStatus) -> crds::Corridor {
        status::with_own(object, own)
    }

    fn placement(status: &crds::CorridorStatus, ticket: Option<String>) -> PlacementStatus {
        status::placement(status, ticket)
    }

    fn list<'a>(context: &'a Context, owner_prefix: &'a str) -> Reply<'a, Vec<corrd::Corridor>> {
        observe::list(context, owner_prefix)
    }

    fn get<'a>(context: &'a Context, id: &'a str) -> Reply<'a, Option<corrd::Corridor>> {
        observe::get(context, id)
    }

    fn telemetry<'a>(context: &'a Context, id: &'a str) -> Reply<'a, Option<CorridorTelemetry>> {
        observe::telemetry(context, id)
    }

    fn allocate<'a>(
        context: &'a Context,
        object: &'a crds::Corridor,
        request: CorridorRequest,
        ticket: Option<String>,
    ) -> Reply<'a, corrd::Corridor> {
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
        object: &'a crds::Corridor,
        id: &'a str,
        owner: &'a Owner,
        change: &'a PathChange,
    ) -> Reply<'a, ()> {
        apply::change(context, object, id, owner, change)
    }
}
