//! Writes the status of an object, if it has changed enough.

use std::time::Instant;

use crds::Phase;
use crds::condition::{self, not_ready};
use kube::Resource as _;
use serde::Deserialize as _;

use super::allocated_kind::{AllocatedKind, StatusBase};
use super::drift::{Drift, drift, placement};
use super::events;
use super::metrics;
use super::own_status::own_status;
use super::plan::Plan;
use super::readiness::{self, StatusInput};
use super::reconcile::Reconcile;

impl<K: AllocatedKind> Reconcile<'_, K> {
    pub(super) async fn write_status(&mut self, plan: &Plan<K::Change>) -> kube::Result<()> {
        let (snapshot, observed) = (&self.snapshot, &self.snapshot.observed);
        let has_backend = snapshot.actual.has_backend;
        // Without a configured daemon another program may maintain the status: only an empty one is filled in.
        let is_described = !matches!(observed.phase, None | Some(Phase::Pending));
        if !has_backend && is_described && !observed.is_deleting {
            return self.withdraw_status().await;
        }
        let input = self.status_input(plan);
        let is_unknown = snapshot.actual.allocations.is_none();
        // A daemon that does not answer yet has as much time as its telemetry.
        let is_unreachable = snapshot.unreachable.is_some();
        if is_unreachable && is_unknown && observed.handle.is_some() && !input.is_silent() {
            return Ok(());
        }
        let object = self.written.as_ref().unwrap_or(self.object);
        let readiness = readiness::decide(&input);
        metrics::record(self.context, object, snapshot, &readiness, self.now);
        let base = StatusBase {
            phase: readiness.phase,
            generation: observed.generation,
            conditions: readiness::conditions(&input, &readiness, self.now),
            attestation_expires_at: snapshot.actual.trust.expires_at(),
        };
        let next = if is_unknown {
            K::status_unknown(object, base)
        } else {
            K::status(snapshot.current(), self.sample().as_deref(), base)
        };
        let drift = drift::<K>(object, &next);
        // Spread by a fifth, so that objects of one start do not write together for ever.
        let interval = self.context.settings.status_interval;
        let interval = interval.mul_f64(0.8 + 0.4 * self.attempt.jitter);
        let next_due_at = self.now.checked_add(interval).ok();
        let memory = &mut *self.memory;
        // A process that has just started assumes that the last write was a moment ago.
        if memory.readings_due_at.is_none() && observed.phase.is_some() {
            memory.readings_due_at = next_due_at;
        }
        let is_due = memory.readings_due_at.is_none_or(|at| self.now >= at);
        let is_needed = memory.guard.is_overwritten
            || drift == Drift::Transition
            || (drift == Drift::Reading && is_due);
        if has_backend {
            let stands = memory.guard.own_status().filter(|_| !is_needed);
            let placement = placement::<K>(stands.unwrap_or(&next), observed.ticket.clone());
            self.context.own_writes.record_placement(&observed.uid, placement);
        }
        if !is_needed {
            return Ok(());
        }
        let value = serde_json::to_value(&next).map_err(kube::Error::SerdeError)?;
        // Compared in the form in which it will be read: times are written in whole seconds.
        memory
            .guard
            .sending_status(K::Status::deserialize(&value).map_err(kube::Error::SerdeError)?);
        let api = &self.context.api;
        let written = if has_backend {
            api.apply_status(object, value).await?
        } else {
            api.apply_status_unless_changed(object, value).await?
        };
        memory.readings_due_at = next_due_at;
        memory.guard.wrote_status(written.meta(), own_status::<K>(&written));
        let events = events::of_status_change::<K>(object, &written, snapshot, &readiness);
        api.emit(&written, events, &mut memory.events).await;
        self.written = Some(written);
        Ok(())
    }

    /// Another program maintains the status: the note that no daemon is configured is no longer true.
    async fn withdraw_status(&mut self) -> kube::Result<()> {
        let ready = condition::find(&self.snapshot.observed.conditions, condition::READY);
        if ready.is_some_and(|it| it.reason == not_ready::BACKEND_NOT_CONFIGURED) {
            let object = self.written.as_ref().unwrap_or(self.object);
            let (api, nothing) = (&self.context.api, serde_json::json!({}));
            self.written = Some(api.apply_status_unless_changed(object, nothing).await?);
        }
        Ok(())
    }

    fn status_input<'a>(&'a self, plan: &Plan<K::Change>) -> StatusInput<'a> {
        let (snapshot, actual) = (&self.snapshot, &self.snapshot.actual);
        let allocations = actual.allocations.as_ref();
        StatusInput {
            observed: &snapshot.observed,
            backend: K::BACKEND,
            has_backend: actual.has_backend,
            flow: K::of_kind(self.context).telemetry.flow(Instant::now()),
            unreachable_after: self.context.settings.unreachable_after,
            invalid: snapshot.desired.invalid.as_deref(),
            trust: &actual.trust,
            has_attestd: self.context.backends.attestd.is_some(),
            is_allocated: snapshot.current().is_some(),
            is_matching: actual.matching.is_some(),
            has_extras: actual.matching.is_some() && allocations.is_some_and(|it| it.len() > 1),
            has_change: snapshot.desired.change.is_some(),
            waits: plan.waits,
            fault: self.health.fault.as_ref(),
            last_error: self.memory.last_error.as_ref(),
        }
    }
}
