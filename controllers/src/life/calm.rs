//! A glance at a sample: most change nothing, and cost no pass.

use jiff::Timestamp;

use super::kind::{Allocation, Kind};
use super::walk::Memory;
use crate::context::Context;

/// How the last pass left an object at rest: nothing to do, nothing in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Calm {
    /// The allocation that was judged.
    pub id: String,
    /// Why it cannot serve, if it cannot.
    pub fault: Option<&'static str>,
}

/// Whether a new sample calls for a pass. Metrics and what has to be remembered of the signal are
/// brought up to date here in any case.
pub(super) fn needs_reconcile<K: Kind>(
    context: &Context,
    object: &K::Object,
    memory: &mut Memory<K>,
) -> bool {
    let Memory { listing, signals, calm, routine_at, .. } = memory;
    let (Some(calm), Some(listing)) = (calm, listing) else { return true };
    let cache = K::telemetry_cache(context);
    if listing.invalidations != cache.invalidations() {
        return true;
    }
    let current = listing.allocations.iter().find(|it| it.id() == calm.id);
    let Some((current, sample)) = current.zip(cache.sample(&calm.id)) else { return true };
    if !K::is_current(current, &sample) {
        return true;
    }
    K::record_metrics(context, object, &sample);
    let now = Timestamp::now();
    let health = K::judge(object, current, Some(&sample), signals, &context.settings, now);
    let is_as_before = health.fault.map(|(reason, _)| reason) == calm.fault
        && health.remedy.is_none()
        && health.look_again.is_none();
    // The first reading is written as soon as it is there.
    let may_write = routine_at.is_none_or(|at| now >= at) || !K::has_reading(object);
    !is_as_before || (may_write && K::has_moved(object, current, &sample))
}
