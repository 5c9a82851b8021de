//! The first reading of an allocation is asked for, so that an object that is Ready shows it. All later
//! ones come by the feed.

use std::time::{Duration, Instant};

use tracing::debug;

use super::kind::{Allocation, Kind};
use super::observe::Found;
use super::walk::Memory;
use crate::context::Context;
use crate::telemetry_cache::Flow;

/// A daemon that takes longer has its say by the feed: being Ready does not wait for it.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(1);

/// Once for each allocation, and only while the feed flows: its first page has them all.
pub(super) async fn ask<K: Kind>(context: &Context, found: &Found<K>, memory: &mut Memory<K>) {
    let Some(current) = found.seen.current(&found.facts) else { return };
    let (id, cache) = (current.id(), K::telemetry_cache(context));
    let is_flowing = cache.flow(Instant::now()) == Flow::Flowing;
    let was_asked = memory.reading_asked_of.as_deref() == Some(id);
    if found.facts.is_deleting || !is_flowing || was_asked || cache.sample(id).is_some() {
        return;
    }
    memory.reading_asked_of = Some(id.to_owned());
    match tokio::time::timeout(ANSWER_WAIT_MAX, K::telemetry(context, id)).await {
        Ok(Ok(Some(sample))) => cache.add(id, sample),
        Ok(Ok(None)) => debug!(id, "the daemon has no reading of it"),
        Ok(Err(error)) => debug!(id, %error, "no first reading"),
        Err(_) => debug!(id, "no first reading in time"),
    }
}
