//! Does the one operation that was planned; decides nothing.

use std::sync::Arc;

use crds::annotations;
use daemons::attestd::{VerifyRequest, fresh_nonce};
use daemons::{DaemonError, RefusalReason};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;
use tracing::info;

use super::guard::{Guard, write_metadata};
use super::kind::{Allocation, Kind};
use super::observe::Found;
use super::plan::{Op, Step};
use super::verdict::Trouble;
use super::walk::Memory;
use crate::attestation::{self, Holder, Requirement};
use crate::context::Context;
use crate::kubernetes;

/// What a failed operation leaves behind.
pub(crate) enum Failure {
    /// The API server: another version of the object will come, or the same later.
    Kubernetes(kube::Error),
    Daemon(Trouble),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Kubernetes(error)
    }
}

pub(crate) fn trouble(step: Step, error: &DaemonError) -> Trouble {
    Trouble { step, is_refusal: error.is_refusal(), message: error.to_string() }
}

/// Returns the object if it was changed.
pub(crate) async fn apply<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    op: &Op<K::Change>,
    memory: &mut Memory<K>,
    now: Timestamp,
) -> Result<Option<K::Object>, Failure> {
    let failed = |error: DaemonError| Failure::Daemon(trouble(op.step(), &error));
    let owner = &found.owner;
    match op {
        Op::Prepare(intent) => {
            let mut finalizers = object.finalizers().to_vec();
            if !found.facts.has_finalizer {
                finalizers.push(K::FINALIZER.to_owned());
            }
            let annotations = json!({ annotations::ALLOCATION_INTENT: intent.to_annotation() });
            let metadata = json!({ "finalizers": finalizers, "annotations": annotations });
            Ok(Some(write_metadata::<K>(context, object, metadata, &mut memory.guard).await?))
        }
        Op::DropFinalizer => {
            context.alarms.lets_go(&found.facts.uid);
            let finalizers = object.finalizers().iter().filter(|it| *it != K::FINALIZER);
            let metadata = json!({ "finalizers": finalizers.collect::<Vec<_>>() });
            Ok(Some(write_metadata::<K>(context, object, metadata, &mut memory.guard).await?))
        }
        Op::Attest { device } => {
            let guard = &mut memory.guard;
            attest(context, object, found, device, guard, now).await.map(Some)
        }
        Op::Allocate => allocate::<K>(context, object, found, memory, now).await,
        Op::ReleaseExtra(id) | Op::Release(id) => {
            memory.listing = None;
            let released = K::release(context, id, owner).await.map_err(failed)?;
            info!(id, %owner, ?released, "released");
            confirm_gone::<K>(context, found, id).await?;
            Ok(None)
        }
        Op::RenewLease(id) => {
            let lease = match K::renew(context, id, owner).await {
                Ok(lease) => lease,
                Err(error) => {
                    // It may be lost: look, before anything else is believed about it.
                    memory.listing = None;
                    return Err(failed(error));
                }
            };
            let listed = memory.listing.iter_mut().flat_map(|it| &mut it.allocations);
            for held in listed.filter(|held| held.id() == id) {
                held.set_lease(lease);
            }
            Ok(None)
        }
        Op::Change(id, change) => {
            memory.listing = None;
            K::apply_change(context, object, id, owner, change).await.map_err(failed)?;
            Ok(None)
        }
    }
}

async fn allocate<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    memory: &mut Memory<K>,
    now: Timestamp,
) -> Result<Option<K::Object>, Failure> {
    if !knows_policies::<K>(context, object, found).await? {
        return Ok(None);
    }
    let device = found.wish.intent.device_id.as_deref();
    let request = K::request(object, &found.owner, device, now);
    // Whatever comes of it, only a new list tells what there is.
    memory.listing = None;
    let ticket = device.and(found.facts.ticket.clone());
    match K::allocate(context, object, request, ticket).await {
        Ok(allocation) => info!(id = allocation.id(), owner = %found.owner, "allocated"),
        // The same key stands for another wording of the wish: the list shows it, and it is
        // changed in place.
        Err(error) if error.refusal() == Some(RefusalReason::KeyReused) => {}
        Err(error) => return Err(Failure::Daemon(trouble(Step::Allocate, &error))),
    }
    Ok(None)
}

/// Whether what was required is what the policies require by a consistent read. The watches of
/// objects and of policies are not in step: a policy older than the object may not be known yet,
/// and nothing is allocated by rules that have changed. It will be, when the watch has shown them.
async fn knows_policies<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
) -> Result<bool, Failure> {
    let namespace = &found.facts.namespace;
    let policies = match kubernetes::list_in(&context.client, namespace).await {
        Ok(policies) => policies.into_iter().map(Arc::new).collect(),
        // The kind is not installed, so there is none.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(Requirement::of(K::demands_attestation(object), &policies) == found.requirement)
}

/// A daemon that says "released" and keeps the allocation must not be believed.
async fn confirm_gone<K: Kind>(
    context: &Context,
    found: &Found<K>,
    id: &str,
) -> Result<(), Failure> {
    let left = K::get(context, id).await;
    let left = left.map_err(|error| Failure::Daemon(trouble(Step::Release, &error)))?;
    match left {
        Some(left) if *left.owner() == found.owner => Err(Failure::Daemon(Trouble {
            step: Step::Release,
            is_refusal: false,
            message: format!("{} still has {id} after its release", K::BACKEND),
        })),
        _ => Ok(()),
    }
}

async fn attest<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    device: &str,
    guard: &mut Guard<K::Status>,
    now: Timestamp,
) -> Result<K::Object, Failure> {
    let refuse = |message: String, label: &str| {
        context.metrics.attestation_failed(&found.facts.namespace, device, label);
        Failure::Daemon(Trouble { step: Step::Attest, is_refusal: true, message })
    };
    let (Some(attestd), Some(requirement)) = (&context.backends.attestd, &found.requirement) else {
        return Err(refuse("attestd is not configured".to_owned(), "unreachable"));
    };
    context.metrics.attestation_begins(&found.facts.namespace, device);
    let nonce = fresh_nonce().map_err(|error| refuse(error.to_string(), "nonce"))?;
    let facts = &found.facts;
    let ask = VerifyRequest {
        device_id: device.to_owned(),
        nonce: nonce.clone(),
        subject: facts.uid.clone(),
        tenant: facts.namespace.clone(),
        pqc: requirement.pqc,
    };
    let verified = attestd.verify(&ask).await.map_err(|error| {
        let label =
            error.refusal().and_then(RefusalReason::attestation_label).unwrap_or("unreachable");
        refuse(error.to_string(), label)
    })?;
    let holder = Holder {
        uid: &facts.uid,
        namespace: &facts.namespace,
        kind: K::DEVICE_KIND,
        pinned_device: None,
        preferred_devices: &[],
        ticket: None,
    };
    let (keys, ticket) = (&context.backends.trusted_keys, &verified.ticket);
    attestation::verify(requirement, keys, holder, device, ticket, Some(&nonce), now)
        .map_err(|fault| refuse(fault.to_string(), fault.reason()))?;
    context.metrics.attestation_passed(&facts.namespace, device);
    context.own_writes.record_ticket(&facts.uid, ticket);
    let annotations = json!({ annotations::ATTESTATION_TICKET: ticket });
    let metadata = json!({ "annotations": annotations });
    Ok(write_metadata::<K>(context, object, metadata, guard).await?)
}
