//! One pass: observe → plan → say → apply.
//!
//! What is found is said before anything is done, so that readers of the status are never behind:
//! no Pod is placed on a path that is about to move. An operation that fails is said too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crds::Phase;
use crds::condition::not_ready;
use daemons::Owner;
use jiff::Timestamp;
use kube::Resource as _;
use serde::Deserialize as _;
use tracing::{debug, warn};

use super::apply::{Failure, apply, trouble};
use super::calm::Calm;
use super::event_budget::EventBudget;
use super::facts::Facts;
use super::first_reading;
use super::guard::{Guard, put_right};
use super::kind::{Allocation, Common, Drift, Health, Kind};
use super::observe::{Found, LISTING_AGE_MAX, Listing, observe};
use super::plan::{self, Op, Plan, Step};
use super::rest::{calm, renewed, rest};
use super::standing;
use super::telling::{self, tell};
use super::verdict::{self, Trouble, View};
use crate::attestation::{self, KnownTicket};
use crate::context::Context;
use crate::controller::{Attempt, Outcome};
use crate::kubernetes;
use crate::life::LifeController;
use crate::work_queue::Requeue;

/// No pass follows another sooner, unless something happened.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(100);
/// A lease that is always due is renewed no faster than this.
const LEASE_PAUSE_MIN: Duration = Duration::from_secs(1);

/// What is remembered of an object between passes.
pub(crate) struct Memory<K: Kind> {
    pub listing: Option<Listing<K::Allocation>>,
    pub signals: K::Signals,
    /// Set while nothing is to be done.
    pub calm: Option<Calm>,
    pub ticket: Option<KnownTicket>,
    pub trouble: Option<Trouble>,
    /// The generation that `trouble` is about.
    generation: i64,
    /// What the last pass did: the same twice in a row had no effect.
    pub last_op: Option<Op<K::Change>>,
    /// Readings are not written before.
    pub routine_at: Option<Timestamp>,
    /// What was written, so that what others write is noticed.
    pub guard: Guard<K::Status>,
    pub events: EventBudget,
    /// Failed attestations that were counted.
    pub failures: Vec<attestation::Failure>,
    /// The allocation whose first reading was asked for.
    pub reading_asked_of: Option<String>,
}

impl<K: Kind> Default for Memory<K> {
    fn default() -> Self {
        Self {
            listing: None,
            signals: K::Signals::default(),
            calm: None,
            ticket: None,
            trouble: None,
            generation: 0,
            last_op: None,
            routine_at: None,
            guard: Guard::default(),
            events: EventBudget::default(),
            failures: Vec::new(),
            reading_asked_of: None,
        }
    }
}

pub(crate) async fn walk<K: Kind>(
    context: &Context,
    object: &K::Object,
    mut memory: Memory<K>,
    attempt: Attempt,
) -> Outcome<LifeController<K>> {
    let (object, requeue) = match step::<K>(context, object, &mut memory, attempt).await {
        Ok(done) => done,
        // It went while this pass was under way: there is nothing left to write to.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            context.own_writes.forget(object.meta().uid.as_deref().unwrap_or_default());
            (None, Requeue::After(LISTING_AGE_MAX))
        }
        Err(error) => {
            let kind = <K::Object as kube::Resource>::kind(&());
            warn!(%kind, %error, "the API server did not take a write");
            (None, Requeue::WithBackoff)
        }
    };
    Outcome { object, memory, requeue }
}

async fn step<K: Kind>(
    context: &Context,
    object: &K::Object,
    memory: &mut Memory<K>,
    attempt: Attempt,
) -> kube::Result<(Option<K::Object>, Requeue)> {
    context.policies.synced().await;
    memory.calm = None;
    let now = Timestamp::now();
    let right = put_right::<K>(context, object, &mut memory.guard).await?;
    let object = right.as_ref().unwrap_or(object);
    let facts = facts::<K>(context, object);
    // Ours no longer, or never: nothing is touched.
    if facts.is_deleting && !facts.has_finalizer {
        return Ok((None, Requeue::After(LISTING_AGE_MAX)));
    }
    let Ok(owner) = Owner::new(&context.cluster_uid, &facts.uid) else {
        return Ok((None, Requeue::WithBackoff));
    };
    if memory.generation != facts.generation {
        (memory.generation, memory.trouble, memory.last_op) = (facts.generation, None, None);
    }
    let mut found = observe::<K>(context, object, facts, owner, memory, now).await;
    standing::count_failures(context, &found.facts, &found.seen.trust, &mut memory.failures);
    if let Some(error) = &found.silence {
        memory.trouble = Some(trouble(Step::List, error));
    } else if memory.trouble.as_ref().is_some_and(|it| it.step == Step::List) {
        memory.trouble = None;
    }
    first_reading::ask::<K>(context, &found, memory).await;
    let health = health::<K>(context, object, &found, memory, now);
    found.wish.remedy.clone_from(&health.remedy);
    let plan = plan::plan(&found.facts, &found.seen, &found.wish, now);
    if plan.op.is_none() {
        (memory.trouble, memory.last_op) =
            (memory.trouble.take().filter(|_| found.silence.is_some()), None);
    }
    // The object is about to go: nothing more is said of it.
    let is_over = plan.op == Some(Op::DropFinalizer) && found.silence.is_none();
    let said = if is_over {
        None
    } else {
        say::<K>(context, object, &found, &health, &plan, memory, attempt, now).await?
    };
    if found.silence.is_some() {
        return Ok((said, Requeue::WithBackoff));
    }
    let newest = said.as_ref().unwrap_or(object);
    let done = match &plan.op {
        Some(op) if attempt.may_retry => {
            let done =
                act::<K>(context, newest, &found, &health, &plan, op, memory, attempt, now).await?;
            let is_renewal = matches!(op, Op::RenewLease(_)) && said.is_none();
            match is_renewal.then(|| renewed::<K>(object, &mut found, &health, memory, now)) {
                Some(Some(rest)) => (done.0, rest),
                _ => done,
            }
        }
        // What was just said may be all that the next step waited for: a handle that is named, a
        // phase that is announced. Our own write coming back by the watch wakes nobody.
        None if said.is_some() => (None, Requeue::After(PAUSE_MIN)),
        _ => {
            if plan.op.is_none() && plan.waits.is_none() && memory.trouble.is_none() {
                memory.calm = calm::<K>(&found, &health);
            }
            (None, rest::<K>(object, &found, &health, &plan, memory, now))
        }
    };
    Ok((done.0.or(said), done.1))
}

/// What the object says, with the driver's own word about its use where there is one.
fn facts<K: Kind>(context: &Context, object: &K::Object) -> Facts {
    let mut facts = K::facts(object);
    if let Some(usage) = context.own_writes.usage(&facts.uid) {
        let drained = usage.and_then(|it| it.drained_generation);
        facts.is_in_use = usage.map_or(facts.is_in_use, |it| it.is_in_use);
        // It has to be said in public as well: whoever looks on must be able to see why the object goes.
        facts.is_drained &= drained.is_some_and(|generation| generation >= facts.generation);
    }
    facts
}

/// Does what was planned, and says so if it fails.
#[expect(clippy::too_many_arguments, reason = "one pass in two functions")]
async fn act<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    health: &Health<K::Change>,
    plan: &Plan<K::Change>,
    op: &Op<K::Change>,
    memory: &mut Memory<K>,
    attempt: Attempt,
    now: Timestamp,
) -> kube::Result<(Option<K::Object>, Requeue)> {
    debug!(owner = %found.owner, ?op, "applies");
    if let Op::Change(_, change) = op {
        K::asked(&mut memory.signals, change, now);
    }
    tell::<K>(context, object, telling::of_operation(op, &found.facts), &mut memory.events).await;
    match apply::<K>(context, object, found, op, memory, now).await {
        Ok(changed) => {
            memory.trouble = None;
            let requeue = match op {
                // Gone, as far as we are concerned: nothing more is touched.
                Op::DropFinalizer => Requeue::After(LISTING_AGE_MAX),
                Op::RenewLease(_) => Requeue::After(LEASE_PAUSE_MIN),
                // It succeeds and changes nothing: no reason to ask faster and faster.
                _ if memory.last_op.as_ref() == Some(op) => Requeue::WithBackoff,
                _ => Requeue::Now,
            };
            memory.last_op = Some(op.clone());
            Ok((changed, requeue))
        }
        Err(Failure::Kubernetes(error)) => Err(error),
        Err(Failure::Daemon(trouble)) => {
            warn!(owner = %found.owner, why = trouble.message, "an operation failed");
            memory.trouble = Some(trouble);
            let said = say::<K>(context, object, found, health, plan, memory, attempt, now).await?;
            Ok((said, Requeue::WithBackoff))
        }
    }
}

fn health<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    memory: &mut Memory<K>,
    now: Timestamp,
) -> Health<K::Change> {
    let Some(current) = found.seen.current(&found.facts) else {
        return Health::default();
    };
    let sample = sample::<K>(context, found);
    // At full rate: every sample wakes a pass.
    if let Some(sample) = &sample {
        K::record_metrics(context, object, sample);
    }
    K::judge(object, current, sample.as_deref(), &mut memory.signals, &context.settings, now)
}

fn sample<K: Kind>(context: &Context, found: &Found<K>) -> Option<Arc<K::Sample>> {
    let current = found.seen.current(&found.facts)?;
    K::telemetry_cache(context).sample(current.id()).filter(|sample| K::is_current(current, sample))
}

/// Writes the status if it is worth it. Returns the object as it is then.
#[expect(clippy::too_many_arguments, reason = "everything that a status depends on")]
async fn say<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    health: &Health<K::Change>,
    plan: &Plan<K::Change>,
    memory: &mut Memory<K>,
    attempt: Attempt,
    now: Timestamp,
) -> kube::Result<Option<K::Object>> {
    let facts = &found.facts;
    // Without a daemon somebody else may play it: only what nobody has described is described.
    let is_described = !matches!(facts.phase, None | Some(Phase::Pending));
    if !found.seen.has_backend && is_described && !facts.is_deleting {
        return take_back::<K>(context, object, facts).await;
    }
    let view = view::<K>(context, found, health, plan, memory.trouble.as_ref());
    let is_unknown = found.seen.allocations.is_none();
    // A daemon that does not answer yet is given the time that telemetry is given.
    if found.silence.is_some() && is_unknown && facts.handle.is_some() && !view.is_silent() {
        return Ok(None);
    }
    let verdict = verdict::decide(&view);
    standing::record(context, object, found, &verdict, now);
    let attestation_expires_at = found.seen.trust.expires_at();
    let (phase, conditions) = (verdict.phase, verdict::conditions(&view, &verdict, now));
    let common = Common { phase, generation: facts.generation, conditions, attestation_expires_at };
    let sample = sample::<K>(context, found);
    let next = if is_unknown {
        K::status_unknown(object, common)
    } else {
        K::status(found.seen.current(facts), sample.as_deref(), common)
    };
    let drift = K::drift(object, &next);
    // Spread by a fifth, so that objects of one start do not write together for ever.
    let pause = context.settings.status_interval.mul_f64(0.8 + 0.4 * attempt.jitter);
    let next_routine = now.checked_add(pause).ok();
    // A process that has just started does not know when the last write was: a moment ago, for all
    // it can tell.
    if memory.routine_at.is_none() && facts.phase.is_some() {
        memory.routine_at = next_routine;
    }
    let is_due = memory.routine_at.is_none_or(|at| now >= at);
    let is_worth_it = drift == Drift::Turning || (drift == Drift::Reading && is_due);
    let is_overwritten = memory.guard.is_overwritten;
    let stands = memory.guard.own_status().filter(|_| !is_worth_it && !is_overwritten);
    if found.seen.has_backend {
        let placement = K::placement(stands.unwrap_or(&next), facts.ticket.clone());
        context.own_writes.record_placement(&facts.uid, placement);
    }
    if !is_worth_it && !is_overwritten {
        return Ok(None);
    }
    let value = serde_json::to_value(&next).map_err(kube::Error::SerdeError)?;
    // As it will be read: times are written in whole seconds.
    memory.guard.sends_status(K::Status::deserialize(&value).map_err(kube::Error::SerdeError)?);
    let written = if found.seen.has_backend {
        kubernetes::apply_status(&context.client, object, value).await?
    } else {
        kubernetes::apply_status_unless_changed(&context.client, object, value).await?
    };
    memory.routine_at = next_routine;
    memory.guard.wrote_status(written.meta(), K::own_status(&written));
    let news = telling::news::<K>(object, &written, found, &verdict);
    tell::<K>(context, &written, news, &mut memory.events).await;
    Ok(Some(written))
}

/// Somebody else describes the object: that no daemon is configured is not true any more.
async fn take_back<K: Kind>(
    context: &Context,
    object: &K::Object,
    facts: &Facts,
) -> kube::Result<Option<K::Object>> {
    let ready = crds::condition::find(&facts.conditions, crds::condition::READY);
    if ready.is_none_or(|it| it.reason != not_ready::BACKEND_NOT_CONFIGURED) {
        return Ok(None);
    }
    let nothing = serde_json::json!({});
    kubernetes::apply_status_unless_changed(&context.client, object, nothing).await.map(Some)
}

fn view<'a, K: Kind>(
    context: &Context,
    found: &'a Found<K>,
    health: &'a Health<K::Change>,
    plan: &'a Plan<K::Change>,
    trouble: Option<&'a Trouble>,
) -> View<'a> {
    let allocations = found.seen.allocations.as_ref();
    View {
        facts: &found.facts,
        backend: K::BACKEND,
        has_backend: found.seen.has_backend,
        flow: K::telemetry_cache(context).flow(Instant::now()),
        unreachable_after: context.settings.unreachable_after,
        invalid: found.wish.invalid.as_deref(),
        trust: &found.seen.trust,
        has_attestd: context.backends.attestd.is_some(),
        is_allocated: found.seen.current(&found.facts).is_some(),
        is_matching: found.seen.matching.is_some(),
        has_extras: found.seen.matching.is_some() && allocations.is_some_and(|it| it.len() > 1),
        has_change: found.wish.change.is_some(),
        waits: plan.waits,
        fault: health.fault.as_ref(),
        trouble,
    }
}
