//! Whether a new sample calls for a reconcile: most samples change nothing.

use daemons::Allocation;
use jiff::Timestamp;

use super::allocated_kind::AllocatedKind;
use super::drift;
use super::memory::Memory;
use crate::context::Context;

/// How the last reconcile left an object for which no operation is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steady {
    /// The allocation that was judged.
    pub id: String,
    /// Why it cannot serve, if it cannot.
    pub fault: Option<&'static str>,
}

/// Whether a new sample calls for a reconcile. Metrics and signals are brought up to date in any case.
pub(super) fn needs_reconcile<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    memory: &mut Memory<K>,
) -> bool {
    let Memory { listing, signals, steady, readings_due_at, .. } = memory;
    let (Some(steady), Some(listing)) = (steady, listing) else { return true };
    let cache = &K::of_kind(context).telemetry;
    if listing.invalidations != cache.invalidations() {
        return true;
    }
    let current = listing.allocations.iter().find(|it| it.id() == steady.id);
    let Some((current, sample)) = current.zip(cache.sample(&steady.id)) else { return true };
    if !K::is_current(current, &sample) {
        return true;
    }
    K::record_metrics(&context.metrics, object, &sample);
    let now = Timestamp::now();
    let health = K::judge(object, current, Some(&sample), signals, &context.settings, now);
    let is_as_before = health.fault.map(|(reason, _)| reason) == steady.fault
        && health.remedy.is_none()
        && health.recheck_after.is_none();
    // The first reading is written as soon as it is there.
    let may_write = readings_due_at.is_none_or(|at| now >= at) || !K::has_reading(object);
    !is_as_before || (may_write && drift::has_moved::<K>(object, current, &sample))
}
