//! What a reconcile works on: the object, the daemon's allocations, the policies, the devices, the ticket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use daemons::{Allocation, AllocationTypes as _, Allocator as _};
use daemons::{DaemonError, Owner};
use jiff::Timestamp;

use super::allocated_kind::{AllocatedKind, daemon};
use super::memory::Memory;
use super::observed::{Intent, Observed};
use super::plan::{Actual, Desired};
use crate::attestation::{self, Holder, KnownTicket, Requirement, Trust};
use crate::context::Context;

/// A list of allocations is used for this long unless it is invalidated: telemetry shows a loss at once, and so does
/// each renewal of a lease. A new list would only show changes that other clients made at the daemon.
pub(crate) const LISTING_AGE_MAX: Duration = Duration::from_mins(30);

/// What one reconcile works on.
pub(crate) struct Snapshot<K: AllocatedKind> {
    pub observed: Observed,
    pub owner: Owner,
    pub requirement: Option<Requirement>,
    pub actual: Actual<K::Allocation>,
    pub desired: Desired<K::Change>,
    /// Why the daemon could not be asked for its allocations.
    pub unreachable: Option<DaemonError>,
}

impl<K: AllocatedKind> Snapshot<K> {
    /// The allocation that serves now.
    pub fn current(&self) -> Option<&K::Allocation> {
        self.actual.current(&self.observed)
    }
}

/// The last list of allocations, and what it was based on.
pub(crate) struct Listing<A> {
    pub allocations: Vec<A>,
    pub taken: Instant,
    pub invalidations: u64,
}

pub(crate) async fn observe<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    observed: Observed,
    owner: Owner,
    memory: &mut Memory<K>,
    now: Timestamp,
) -> Snapshot<K> {
    let has_backend = K::daemon(context).is_some();
    let mut unreachable = None;
    if has_backend && (observed.has_finalizer || !observed.is_deleting) {
        unreachable = refresh::<K>(context, &observed, &owner, memory).await.err();
    }
    let allocations = memory.listing.as_ref().map(|it| it.allocations.clone());
    let requirement = requirement::<K>(context, object, &observed);
    if requirement.is_some() {
        context.inventory.was_read().await;
    }
    let current =
        allocations.iter().flatten().find(|it| observed.handle.as_deref() == Some(it.id()));
    let current = current.or_else(|| allocations.iter().flatten().next());
    let trust =
        trust::<K>(context, &observed, requirement.as_ref(), current, &mut memory.ticket, now);
    let request = K::request(object, &owner, trust.device(), now);
    let matching =
        allocations.as_ref().and_then(|all| all.iter().position(|it| K::satisfies(it, &request)));
    let intent = Intent {
        key: K::Allocation::key(&request).to_string(),
        device_id: trust.device().map(ToOwned::to_owned),
    };
    let actual = Actual { has_backend, allocations, matching, trust };
    let change = actual.current(&observed).and_then(|held| K::change(held, &request));
    let desired = Desired { invalid: K::validate(object).err(), intent, change, remedy: None };
    Snapshot { observed, owner, requirement, actual, desired, unreachable }
}

/// Lists the allocations again when the last list is doubtful, and always before a release: no finalizer is removed on
/// the strength of an old list.
async fn refresh<K: AllocatedKind>(
    context: &Context,
    observed: &Observed,
    owner: &Owner,
    memory: &mut Memory<K>,
) -> Result<(), DaemonError> {
    let invalidations = K::of_kind(context).telemetry.invalidations();
    let is_good = |it: &Listing<K::Allocation>| {
        it.invalidations == invalidations && it.taken.elapsed() < LISTING_AGE_MAX
    };
    if !observed.is_deleting && memory.listing.as_ref().is_some_and(is_good) {
        return Ok(());
    }
    // If this fails the last list stays, and no operation is based on it.
    let mut allocations = daemon::<K>(context)?.list(&owner.to_string()).await?;
    // The daemon lists by prefix; only the exact owner counts.
    allocations.retain(|it| it.owner() == owner);
    memory.listing = Some(Listing { allocations, taken: Instant::now(), invalidations });
    Ok(())
}

fn requirement<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    observed: &Observed,
) -> Option<Requirement> {
    let policies: Vec<Arc<_>> = context.policies.of(&observed.namespace);
    Requirement::of(K::demands_attestation(object), &policies)
}

fn trust<K: AllocatedKind>(
    context: &Context,
    observed: &Observed,
    requirement: Option<&Requirement>,
    current: Option<&K::Allocation>,
    known: &mut Option<KnownTicket>,
    now: Timestamp,
) -> Trust {
    let current = current.and_then(Allocation::device);
    let intended = observed.intent.as_ref().and_then(|it| it.device_id.as_deref());
    let preferred: Vec<&str> = current.into_iter().chain(intended).collect();
    let holder = Holder {
        uid: &observed.uid,
        namespace: &observed.namespace,
        kind: K::DEVICE_KIND,
        pinned_device: current.filter(|_| observed.is_in_use),
        preferred_devices: &preferred,
        ticket: observed.ticket.as_deref(),
    };
    let keys = &context.backends.trusted_keys;
    attestation::judge(requirement, &context.inventory.devices(), keys, holder, known, now)
}
