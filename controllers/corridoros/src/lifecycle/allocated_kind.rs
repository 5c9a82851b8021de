//! What differs between Corridors and MemoryBundles; everything else is in [`super`].

use std::fmt::Debug;
use std::time::Duration;

use controller_runtime::Object;
use crds::Phase;
use daemons::attestd::DeviceKind;
use daemons::{AllocationTypes, Allocator, DaemonError, Owner, Reply, Sample};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::drift::SharedStatus;
use super::own_status::DriverFields;
use crate::context::{Context, KindContext};
use crate::metrics::{Metrics, ObjectState};
use crate::settings::Settings;

/// A kind whose objects stand for an allocation of a daemon. Each step is a trait, implemented in the file of that name
/// in the kind's folder.
pub(crate) trait AllocatedKind: PlanStep + ApplyStep + StatusStep {
    const FINALIZER: &'static str;
    const DEVICE_KIND: DeviceKind;
    /// The name of the daemon, and of its Lease.
    const BACKEND: &'static str;
    const BACKEND_LEASE: &'static str;

    /// `None`: not configured.
    fn daemon(context: &Context) -> Option<&Self::Daemon>;
    /// The part of the context that is about this kind.
    fn of_kind(context: &Context) -> &KindContext<Self::Sample>;

    fn begin_metrics(metrics: &Metrics, object: &Self::Object);
    fn count_allocation(metrics: &Metrics, object: &Self::Object);
    fn record_metrics(metrics: &Metrics, object: &Self::Object, sample: &Self::Sample);
    fn record_state(metrics: &Metrics, object: &Self::Object, state: ObjectState, now: Timestamp);
    fn forget_metrics(metrics: &Metrics, object: &Self::Object);
}

pub(crate) trait KindTypes: Send + Sync + 'static {
    type Daemon: ?Sized + Allocator<Self::Allocation>;
    type Object: Object + HasStatus<Status = Self::Status>;
    type Status: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    type Request: Send + Sync;
    type Allocation: AllocationTypes<Request = Self::Request, Sample = Self::Sample>;
    type Sample: Sample;
    type Change: Clone + Debug + PartialEq + Send + Sync;
    /// What is remembered to judge readings over time.
    type Signals: Clone + Debug + Default + Send + Sync;
}

/// Pure.
pub(crate) trait PlanStep: KindTypes {
    fn validate(object: &Self::Object) -> Result<(), String>;
    fn demands_attestation(object: &Self::Object) -> bool;
    fn request(
        object: &Self::Object,
        owner: &Owner,
        device: Option<&str>,
        now: Timestamp,
    ) -> Self::Request;
    /// Whether an allocation satisfies a request, changes in place aside.
    fn satisfies(allocation: &Self::Allocation, request: &Self::Request) -> bool;
    /// What has to be changed in place.
    fn change(allocation: &Self::Allocation, request: &Self::Request) -> Option<Self::Change>;
    /// When the request changes by itself.
    fn next_change(_object: &Self::Object, _now: Timestamp) -> Option<Timestamp> {
        None
    }
}

pub(crate) trait ApplyStep: KindTypes {
    /// Changes an allocation in place.
    fn apply_change<'a>(
        daemon: &'a Self::Daemon,
        target: Target<'a, Self::Object>,
        change: &'a Self::Change,
    ) -> Reply<'a, ()>;
}

/// The allocation that is changed, and its object.
pub(crate) struct Target<'a, O> {
    pub object: &'a O,
    pub id: &'a str,
    pub owner: &'a Owner,
    pub metrics: &'a Metrics,
}

/// Pure.
pub(crate) trait StatusStep: KindTypes {
    fn shared(status: &Self::Status) -> SharedStatus<'_>;
    fn driver_fields(status: &mut Self::Status) -> DriverFields<'_>;
    /// The floor that a status is measured by.
    fn floor(object: &Self::Object, status: &Self::Status) -> f64;
    /// Whether a sample is of the allocation as it stands, not of an earlier floor.
    fn is_current(allocation: &Self::Allocation, sample: &Self::Sample) -> bool;
    /// Whether the status has readings that only a sample can give.
    fn has_reading(_object: &Self::Object) -> bool {
        true
    }
    /// Whether a reading has left its deadband.
    fn readings_moved(old: &Self::Status, next: &Self::Status, floor: f64) -> bool;
    /// The health of an allocation. Updates the signals.
    fn judge(
        object: &Self::Object,
        allocation: &Self::Allocation,
        sample: Option<&Self::Sample>,
        signals: &mut Self::Signals,
        settings: &Settings,
        now: Timestamp,
    ) -> Health<Self::Change>;
    /// A change was requested, whatever its outcome.
    fn change_requested(_signals: &mut Self::Signals, _change: &Self::Change, _now: Timestamp) {}
    fn status(
        allocation: Option<&Self::Allocation>,
        sample: Option<&Self::Sample>,
        base: StatusBase,
    ) -> Self::Status;
    /// Nothing is known about the allocation, so what the status says about it stays.
    fn status_unknown(object: &Self::Object, base: StatusBase) -> Self::Status;
}

/// The daemon of a kind. Plans make no call to one that is not configured.
pub(crate) fn daemon<K: AllocatedKind>(context: &Context) -> Result<&K::Daemon, DaemonError> {
    K::daemon(context).ok_or_else(|| DaemonError::Connect {
        action: "call the daemon",
        url: String::new(),
        why: format!("{} is not configured", K::BACKEND),
    })
}

/// The health of an allocation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Health<C> {
    /// Reason and message, if it cannot serve.
    pub fault: Option<(&'static str, String)>,
    /// What might help.
    pub remedy: Option<C>,
    /// When to judge again though no sample has come.
    pub recheck_after: Option<Duration>,
}

impl<C> Default for Health<C> {
    fn default() -> Self {
        Self { fault: None, remedy: None, recheck_after: None }
    }
}

/// The part of a status that all kinds share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StatusBase {
    pub phase: Phase,
    pub generation: i64,
    pub conditions: Vec<Condition>,
    pub attestation_expires_at: Option<Timestamp>,
}
