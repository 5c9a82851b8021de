//! Carries out the one operation that was planned; decides nothing.

use std::sync::Arc;

use crds::annotations;
use daemons::attestd::{VerifyRequest, fresh_nonce};
use daemons::{Allocation as _, AllocationTypes as _, Allocator as _};
use daemons::{DaemonError, RefusalReason};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tracing::info;

use super::allocated_kind::{AllocatedKind, Target, daemon};
use super::guard::write_metadata;
use super::plan::{Op, Step};
use super::readiness::StepError;
use super::reconcile::Reconcile;
use crate::attestation::{self, Holder, Requirement};

/// Why an operation failed.
pub(crate) enum ApplyError {
    /// The API server: the same write may succeed later, or another version of the object will come.
    Kubernetes(kube::Error),
    Daemon(StepError),
}

impl From<kube::Error> for ApplyError {
    fn from(error: kube::Error) -> Self {
        Self::Kubernetes(error)
    }
}

pub(crate) fn step_error(step: Step, error: &DaemonError) -> StepError {
    StepError { step, is_refusal: error.is_refusal(), message: error.to_string() }
}

impl<K: AllocatedKind> Reconcile<'_, K> {
    pub(super) async fn apply(&mut self, op: &Op<K::Change>) -> Result<(), ApplyError> {
        let failed = |error: DaemonError| ApplyError::Daemon(step_error(op.step(), &error));
        let object = self.written.as_ref().unwrap_or(self.object);
        let (context, owner) = (self.context, &self.snapshot.owner);
        match op {
            Op::Prepare(intent) => {
                let mut finalizers = object.finalizers().to_vec();
                if !self.snapshot.observed.has_finalizer {
                    finalizers.push(K::FINALIZER.to_owned());
                }
                let annotations = json!({ annotations::ALLOCATION_INTENT: intent.to_annotation() });
                let metadata = json!({ "finalizers": finalizers, "annotations": annotations });
                self.write_metadata(metadata).await?;
            }
            Op::DropFinalizer => {
                context.alarms.finalizer_released(&self.snapshot.observed.uid);
                let finalizers = object.finalizers().iter().filter(|it| *it != K::FINALIZER);
                let metadata = json!({ "finalizers": finalizers.collect::<Vec<_>>() });
                self.write_metadata(metadata).await?;
            }
            Op::Attest { device } => self.attest(device).await?,
            Op::Allocate => self.allocate().await?,
            Op::ReleaseExtra(id) | Op::Release(id) => {
                self.memory.listing = None;
                let released = self.daemon()?.release(id, owner).await.map_err(failed)?;
                info!(id, %owner, ?released, "released");
                self.confirm_gone(id).await?;
            }
            Op::RenewLease(id) => {
                let lease = match self.daemon()?.renew_lease(id, owner).await {
                    Ok(lease) => lease,
                    Err(error) => {
                        // The allocation may be lost, which only a new list can tell.
                        self.memory.listing = None;
                        return Err(failed(error));
                    }
                };
                let listed = self.memory.listing.iter_mut().flat_map(|it| &mut it.allocations);
                for held in listed.filter(|held| held.id() == id) {
                    held.set_lease(lease);
                }
            }
            Op::Change(id, change) => {
                self.memory.listing = None;
                let target = Target { object, id, owner, metrics: &context.metrics };
                let changed = K::apply_change(self.daemon()?, target, change).await;
                changed.map_err(failed)?;
            }
        }
        Ok(())
    }

    fn daemon(&self) -> Result<&K::Daemon, ApplyError> {
        daemon::<K>(self.context)
            .map_err(|error| ApplyError::Daemon(step_error(Step::List, &error)))
    }

    async fn write_metadata(&mut self, metadata: Value) -> Result<(), ApplyError> {
        let object = self.written.as_ref().unwrap_or(self.object);
        let guard = &mut self.memory.guard;
        self.written = Some(write_metadata::<K>(self.context, object, metadata, guard).await?);
        Ok(())
    }

    async fn allocate(&mut self) -> Result<(), ApplyError> {
        if !self.knows_policies().await? {
            return Ok(());
        }
        let (snapshot, context) = (&self.snapshot, self.context);
        let object = self.written.as_ref().unwrap_or(self.object);
        let device = snapshot.desired.intent.device_id.as_deref();
        let request = K::request(object, &snapshot.owner, device, self.now);
        // Whatever the outcome, only a new list tells what the daemon holds.
        self.memory.listing = None;
        let ticket = device.and(snapshot.observed.ticket.clone());
        let (key, ask) =
            (K::Allocation::key(&request), K::Allocation::with_ticket(request, ticket));
        match self.daemon()?.allocate(&key, &ask).await {
            Ok(allocation) => {
                K::count_allocation(&context.metrics, object);
                info!(id = allocation.id(), owner = %snapshot.owner, "allocated");
            }
            // The key stands for another wording of the same request: the list shows it, and it is changed in place.
            Err(error) if error.refusal() == Some(RefusalReason::KeyReused) => {}
            Err(error) => return Err(ApplyError::Daemon(step_error(Step::Allocate, &error))),
        }
        Ok(())
    }

    /// Whether the requirement that was planned with is that of the policies by a consistent read. The watches of
    /// objects and of policies are not in step: a policy older than the object may not be known yet, and nothing is
    /// allocated by rules that have changed. The watch of policies will wake the object.
    async fn knows_policies(&self) -> Result<bool, ApplyError> {
        let object = self.written.as_ref().unwrap_or(self.object);
        let namespace = &self.snapshot.observed.namespace;
        let policies = match self.context.api.list_in(namespace).await {
            Ok(policies) => policies.into_iter().map(Arc::new).collect(),
            // The kind is not installed, so there is no policy.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let required = Requirement::of(K::demands_attestation(object), &policies);
        Ok(required == self.snapshot.requirement)
    }

    /// A daemon that answers "released" and keeps the allocation must not be believed.
    async fn confirm_gone(&self, id: &str) -> Result<(), ApplyError> {
        let left = self.daemon()?.get(id).await;
        let left = left.map_err(|error| ApplyError::Daemon(step_error(Step::Release, &error)))?;
        match left {
            Some(left) if *left.owner() == self.snapshot.owner => {
                Err(ApplyError::Daemon(StepError {
                    step: Step::Release,
                    is_refusal: false,
                    message: format!("{} still has {id} after its release", K::BACKEND),
                }))
            }
            _ => Ok(()),
        }
    }

    async fn attest(&mut self, device: &str) -> Result<(), ApplyError> {
        let (context, snapshot) = (self.context, &self.snapshot);
        let observed = &snapshot.observed;
        let refuse = |message: String, label: &str| {
            context.metrics.attestation_failed(&observed.namespace, device, label);
            ApplyError::Daemon(StepError { step: Step::Attest, is_refusal: true, message })
        };
        let backends = &context.backends;
        let (Some(attestd), Some(requirement)) = (&backends.attestd, &snapshot.requirement) else {
            return Err(refuse("attestd is not configured".to_owned(), "unreachable"));
        };
        context.metrics.attestation_begins(&observed.namespace, device);
        let nonce = fresh_nonce().map_err(|error| refuse(error.to_string(), "nonce"))?;
        let ask = VerifyRequest {
            device_id: device.to_owned(),
            nonce: nonce.clone(),
            subject: observed.uid.clone(),
            tenant: observed.namespace.clone(),
            pqc: requirement.pqc,
        };
        let verified = attestd.verify(&ask).await.map_err(|error| {
            let label =
                error.refusal().and_then(RefusalReason::attestation_label).unwrap_or("unreachable");
            refuse(error.to_string(), label)
        })?;
        let holder = Holder {
            uid: &observed.uid,
            namespace: &observed.namespace,
            kind: K::DEVICE_KIND,
            pinned_device: None,
            preferred_devices: &[],
            ticket: None,
        };
        let (keys, ticket) = (&backends.trusted_keys, &verified.ticket);
        attestation::verify(requirement, keys, holder, device, ticket, Some(&nonce), self.now)
            .map_err(|fault| refuse(fault.to_string(), fault.reason()))?;
        context.metrics.attestation_passed(&observed.namespace, device);
        context.own_writes.record_ticket(&observed.uid, ticket);
        let annotations = json!({ annotations::ATTESTATION_TICKET: ticket });
        self.write_metadata(json!({ "annotations": annotations })).await
    }
}
