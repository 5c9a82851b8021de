//! One reconcile: observe → plan → write the status → apply.
//!
//! The status is written before the operation is carried out, so that its readers are never behind: no Pod is placed on
//! a path that is about to move. An operation that fails is followed by a second status.

use std::sync::Arc;
use std::time::Duration;

use controller_runtime::{Attempt, Outcome, Requeue};
use daemons::Allocation as _;
use daemons::Owner;
use jiff::Timestamp;
use kube::Resource as _;
use tracing::{debug, warn};

use super::AllocationController;
use super::allocated_kind::{AllocatedKind, Health};
use super::apply::{ApplyError, step_error};
use super::events;
use super::first_reading;
use super::guard::repair;
use super::memory::Memory;
use super::metrics;
use super::observe::{LISTING_AGE_MAX, Snapshot, observe};
use super::observed::Observed;
use super::plan::{self, Op, Plan, Step};
use crate::context::Context;

/// The shortest delay between two reconciles of an object, unless it is woken.
pub(super) const DELAY_MIN: Duration = Duration::from_millis(100);
/// A lease that is always due is renewed no faster than this.
const LEASE_DELAY_MIN: Duration = Duration::from_secs(1);

/// One reconcile of one object.
pub(super) struct Reconcile<'a, K: AllocatedKind> {
    pub context: &'a Context,
    /// The object as the reconcile began with it.
    pub object: &'a K::Object,
    /// The object as the last write of this reconcile left it.
    pub written: Option<K::Object>,
    pub snapshot: Snapshot<K>,
    pub health: Health<K::Change>,
    pub memory: &'a mut Memory<K>,
    pub attempt: Attempt,
    pub now: Timestamp,
}

pub(crate) async fn reconcile<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    mut memory: Memory<K>,
    attempt: Attempt,
) -> Outcome<AllocationController<K>> {
    let (object, requeue) = match run::<K>(context, object, &mut memory, attempt).await {
        Ok(done) => done,
        // Deleted meanwhile: no object is left to write to.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            context.own_writes.forget(object.meta().uid.as_deref().unwrap_or_default());
            (None, Requeue::After(LISTING_AGE_MAX))
        }
        Err(error) => {
            let kind = <K::Object as kube::Resource>::kind(&());
            warn!(%kind, %error, "a write to the API server failed");
            (None, Requeue::WithBackoff)
        }
    };
    Outcome { object, memory, requeue }
}

async fn run<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    memory: &mut Memory<K>,
    attempt: Attempt,
) -> kube::Result<(Option<K::Object>, Requeue)> {
    context.policies.synced().await;
    let now = Timestamp::now();
    memory.steady = None;
    let repaired = repair::<K>(context, object, &mut memory.guard).await?;
    let object = repaired.as_ref().unwrap_or(object);
    let observed = observed::<K>(context, object);
    // Without the finalizer the allocation was released, or there never was one.
    if observed.is_deleting && !observed.has_finalizer {
        return Ok((None, Requeue::After(LISTING_AGE_MAX)));
    }
    let Ok(owner) = Owner::new(&context.cluster_uid, &observed.uid) else {
        return Ok((None, Requeue::WithBackoff));
    };
    memory.begin(observed.generation);
    let snapshot = observe::<K>(context, object, observed, owner, memory, now).await;
    metrics::count_failures(context, &snapshot, &mut memory.failures);
    memory.note_listing(snapshot.unreachable.as_ref().map(|it| step_error(Step::List, it)));
    first_reading::fetch::<K>(context, &snapshot, memory).await;
    let (written, health) = (None, Health::default());
    let mut this = Reconcile { context, object, written, snapshot, health, memory, attempt, now };
    this.judge();
    let requeue = this.run().await?;
    Ok((this.written, requeue))
}

/// The object's own fields, with the driver's record of its use where there is one.
fn observed<K: AllocatedKind>(context: &Context, object: &K::Object) -> Observed {
    let mut observed = Observed::of::<K>(object);
    if let Some(usage) = context.own_writes.usage(&observed.uid) {
        let drained = usage.and_then(|it| it.drained_generation);
        observed.is_in_use = usage.map_or(observed.is_in_use, |it| it.is_in_use);
        // The condition has to be there as well, so that the status shows why the object goes.
        observed.is_drained &= drained.is_some_and(|generation| generation >= observed.generation);
    }
    observed
}

impl<K: AllocatedKind> Reconcile<'_, K> {
    async fn run(&mut self) -> kube::Result<Requeue> {
        let plan = self.plan();
        let is_unreachable = self.snapshot.unreachable.is_some();
        if plan.op.is_none() {
            self.memory.last_op = None;
            if !is_unreachable {
                self.memory.last_error = None;
            }
        }
        // An object that is about to go gets no further status.
        if is_unreachable || plan.op != Some(Op::DropFinalizer) {
            self.write_status(&plan).await?;
        }
        if is_unreachable {
            return Ok(Requeue::WithBackoff);
        }
        let has_written = self.written.is_some();
        match &plan.op {
            Some(op) if self.attempt.may_retry => {
                let requeue = self.act(&plan, op).await?;
                let is_renewal = matches!(op, Op::RenewLease(_)) && !has_written;
                let renewed = if is_renewal { self.after_renewal() } else { None };
                Ok(renewed.unwrap_or(requeue))
            }
            // The status may be all that the next step waited for, as a handle that is named or a phase that is
            // announced. The runner does not wake an object for its own write.
            None if has_written => Ok(Requeue::After(DELAY_MIN)),
            op => {
                if op.is_none() && plan.waits.is_none() && self.memory.last_error.is_none() {
                    self.memory.steady = self.steady();
                }
                Ok(self.requeue_after(&plan))
            }
        }
    }

    pub fn plan(&self) -> Plan<K::Change> {
        let Snapshot { observed, actual, desired, .. } = &self.snapshot;
        plan::plan(observed, actual, desired, self.now)
    }

    /// Carries out what was planned, and reports a failure in the status.
    async fn act(&mut self, plan: &Plan<K::Change>, op: &Op<K::Change>) -> kube::Result<Requeue> {
        debug!(owner = %self.snapshot.owner, ?op, "applies");
        if let Op::Change(_, change) = op {
            K::change_requested(&mut self.memory.signals, change, self.now);
        }
        let event = events::of_operation(op, &self.snapshot.observed);
        let object = self.written.as_ref().unwrap_or(self.object);
        self.context.api.emit(object, event, &mut self.memory.events).await;
        match self.apply(op).await {
            Ok(()) => {
                self.memory.last_error = None;
                let requeue = match op {
                    // The object is released, and nothing more of it is touched.
                    Op::DropFinalizer => Requeue::After(LISTING_AGE_MAX),
                    Op::RenewLease(_) => Requeue::After(LEASE_DELAY_MIN),
                    // An operation that succeeds without effect is not repeated faster and faster.
                    _ if self.memory.last_op.as_ref() == Some(op) => Requeue::WithBackoff,
                    _ => Requeue::Now,
                };
                self.memory.last_op = Some(op.clone());
                Ok(requeue)
            }
            Err(ApplyError::Kubernetes(error)) => Err(error),
            Err(ApplyError::Daemon(error)) => {
                warn!(owner = %self.snapshot.owner, why = error.message, "an operation failed");
                self.memory.last_error = Some(error);
                self.write_status(plan).await?;
                Ok(Requeue::WithBackoff)
            }
        }
    }

    /// How the current allocation does, and what might help it.
    fn judge(&mut self) {
        let Some(current) = self.snapshot.current() else { return };
        let sample = self.sample();
        // Every sample wakes the object, so metrics have the full rate.
        if let Some(sample) = &sample {
            K::record_metrics(&self.context.metrics, self.object, sample);
        }
        let (signals, settings) = (&mut self.memory.signals, &self.context.settings);
        let sample = sample.as_deref();
        self.health = K::judge(self.object, current, sample, signals, settings, self.now);
        self.snapshot.desired.remedy.clone_from(&self.health.remedy);
    }

    /// The latest sample of the current allocation as it stands.
    pub fn sample(&self) -> Option<Arc<K::Sample>> {
        let current = self.snapshot.current()?;
        let sample = K::of_kind(self.context).telemetry.sample(current.id())?;
        K::is_current(current, &sample).then_some(sample)
    }
}
