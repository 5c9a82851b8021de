//! What there is: the daemon's allocations, the policies, the devices, the ticket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use daemons::{DaemonError, Owner};
use jiff::Timestamp;

use super::facts::{Facts, Intent};
use super::kind::{Allocation, Kind};
use super::plan::{Seen, Wish};
use super::walk::Memory;
use crate::attestation::{self, Holder, KnownTicket, Requirement, Trust};
use crate::context::Context;

/// A list of allocations is believed for this long unless something speaks against it: telemetry
/// tells what is lost at once, and so does each renewal of a lease. A list would only show what
/// somebody else has changed at the daemon.
pub(crate) const LISTING_AGE_MAX: Duration = Duration::from_mins(30);

/// What one pass has found.
pub(crate) struct Found<K: Kind> {
    pub facts: Facts,
    pub owner: Owner,
    pub requirement: Option<Requirement>,
    pub seen: Seen<K::Allocation>,
    pub wish: Wish<K::Change>,
    /// The daemon did not say what there is.
    pub silence: Option<DaemonError>,
}

/// The last list of allocations, and what it was based on.
pub(crate) struct Listing<A> {
    pub allocations: Vec<A>,
    pub taken: Instant,
    pub invalidations: u64,
}

pub(crate) async fn observe<K: Kind>(
    context: &Context,
    object: &K::Object,
    facts: Facts,
    owner: Owner,
    memory: &mut Memory<K>,
    now: Timestamp,
) -> Found<K> {
    let has_backend = K::has_backend(context);
    let mut silence = None;
    if has_backend && (facts.has_finalizer || !facts.is_deleting) {
        silence = refresh::<K>(context, &facts, &owner, memory).await.err();
    }
    let allocations = memory.listing.as_ref().map(|it| it.allocations.clone());
    let requirement = requirement::<K>(context, object, &facts);
    if requirement.is_some() {
        context.inventory.was_read().await;
    }
    let current = allocations.iter().flatten().find(|it| facts.handle.as_deref() == Some(it.id()));
    let current = current.or_else(|| allocations.iter().flatten().next());
    let trust = trust::<K>(context, &facts, requirement.as_ref(), current, &mut memory.ticket, now);
    let request = K::request(object, &owner, trust.device(), now);
    let matching =
        allocations.as_ref().and_then(|all| all.iter().position(|it| K::answers(it, &request)));
    let intent = Intent { key: K::key(&request), device_id: trust.device().map(ToOwned::to_owned) };
    let seen = Seen { has_backend, allocations, matching, trust };
    let change = seen.current(&facts).and_then(|held| K::change(held, &request));
    let wish = Wish { invalid: K::validate(object).err(), intent, change, remedy: None };
    Found { facts, owner, requirement, seen, wish, silence }
}

/// Asks the daemon again when the last list is doubtful. What is about to be released is always
/// asked for: a finalizer must not fall on hearsay.
async fn refresh<K: Kind>(
    context: &Context,
    facts: &Facts,
    owner: &Owner,
    memory: &mut Memory<K>,
) -> Result<(), DaemonError> {
    let invalidations = K::telemetry_cache(context).invalidations();
    let is_good = |it: &Listing<K::Allocation>| {
        it.invalidations == invalidations && it.taken.elapsed() < LISTING_AGE_MAX
    };
    if !facts.is_deleting && memory.listing.as_ref().is_some_and(is_good) {
        return Ok(());
    }
    // Should this fail, the last list remains what is known; nothing is done on its strength.
    let mut allocations = K::list(context, &owner.to_string()).await?;
    // The daemon lists by prefix; only the exact owner is ours.
    allocations.retain(|it| it.owner() == owner);
    memory.listing = Some(Listing { allocations, taken: Instant::now(), invalidations });
    Ok(())
}

fn requirement<K: Kind>(
    context: &Context,
    object: &K::Object,
    facts: &Facts,
) -> Option<Requirement> {
    let policies: Vec<Arc<_>> = context.policies.of(&facts.namespace);
    Requirement::of(K::demands_attestation(object), &policies)
}

fn trust<K: Kind>(
    context: &Context,
    facts: &Facts,
    requirement: Option<&Requirement>,
    current: Option<&K::Allocation>,
    known: &mut Option<KnownTicket>,
    now: Timestamp,
) -> Trust {
    let current = current.and_then(Allocation::device);
    let intended = facts.intent.as_ref().and_then(|it| it.device_id.as_deref());
    let preferred: Vec<&str> = current.into_iter().chain(intended).collect();
    let holder = Holder {
        uid: &facts.uid,
        namespace: &facts.namespace,
        kind: K::DEVICE_KIND,
        pinned_device: current.filter(|_| facts.is_in_use),
        preferred_devices: &preferred,
        ticket: facts.ticket.as_deref(),
    };
    let keys = &context.backends.trusted_keys;
    attestation::judge(requirement, &context.inventory.devices(), keys, holder, known, now)
}
