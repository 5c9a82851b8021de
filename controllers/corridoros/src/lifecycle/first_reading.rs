//! The first reading of an allocation is fetched, so that an object that becomes Ready shows it. All later readings
//! come by the feed.

use std::time::{Duration, Instant};

use daemons::{Allocation as _, Allocator as _};
use tracing::debug;

use super::allocated_kind::AllocatedKind;
use super::memory::Memory;
use super::observe::Snapshot;
use crate::context::Context;
use crate::telemetry_cache::Flow;

/// Ready does not wait longer: the feed will bring the reading.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(1);

/// Once for each allocation, and only while the feed flows: the first page of a feed has all readings.
pub(super) async fn fetch<K: AllocatedKind>(
    context: &Context,
    snapshot: &Snapshot<K>,
    memory: &mut Memory<K>,
) {
    let Some((current, daemon)) = snapshot.current().zip(K::daemon(context)) else { return };
    let (id, cache) = (current.id(), &K::of_kind(context).telemetry);
    let is_flowing = cache.flow(Instant::now()) == Flow::Flowing;
    let was_asked = memory.first_reading_of.as_deref() == Some(id);
    if snapshot.observed.is_deleting || !is_flowing || was_asked || cache.sample(id).is_some() {
        return;
    }
    memory.first_reading_of = Some(id.to_owned());
    match tokio::time::timeout(ANSWER_WAIT_MAX, daemon.telemetry(id)).await {
        Ok(Ok(Some(sample))) => cache.add(id, sample),
        Ok(Ok(None)) => debug!(id, "the daemon has no reading"),
        Ok(Err(error)) => debug!(id, %error, "no first reading"),
        Err(_) => debug!(id, "no first reading in time"),
    }
}
