//! The lifecycle of an object that stands for an allocation of a daemon: what Corridors and MemoryBundles share.
//!
//! ```text
//! Pending → Allocating → Ready ⇄ Degraded → Releasing → gone
//!               └────────→ Failed
//! ```

mod allocated_kind;
mod apply;
mod damping;
mod drift;
mod events;
mod first_reading;
mod guard;
mod memory;
mod metrics;
mod observe;
mod observed;
mod own_status;
mod plan;
mod readiness;
mod reconcile;
mod requeue;
mod steady;
#[cfg(test)]
mod testkit;
mod write_status;

use std::marker::PhantomData;
use std::sync::Arc;

use controller_runtime::{Attempt, Controller, Outcome, Triggers};
use kube::Resource;

pub(crate) use self::allocated_kind::{
    AllocatedKind, ApplyStep, Health, KindTypes, PlanStep, StatusBase, StatusStep, Target,
};
pub(crate) use self::damping::Damping;
#[cfg(test)]
pub(crate) use self::drift::{Drift, drift};
pub(crate) use self::drift::{SharedStatus, reading_moved};
pub(crate) use self::guard::version;
use self::memory::Memory;
pub(crate) use self::observed::Use;
pub(crate) use self::own_status::DriverFields;
pub(crate) use self::readiness::condition_since;
use crate::context::Context;

/// The controller of a kind whose objects stand for an allocation.
pub(crate) struct AllocationController<K>(PhantomData<fn() -> K>);

impl<K: AllocatedKind> Controller for AllocationController<K> {
    type Context = Context;
    type Object = K::Object;
    type Memory = Memory<K>;

    fn triggers(context: &Context) -> Option<&Triggers> {
        Some(&K::of_kind(context).triggers)
    }

    async fn reconcile(
        context: Arc<Context>,
        object: Arc<K::Object>,
        memory: Memory<K>,
        attempt: Attempt,
    ) -> Outcome<Self> {
        reconcile::reconcile::<K>(&context, &object, memory, attempt).await
    }

    fn needs_reconcile(context: &Context, object: &K::Object, memory: &mut Memory<K>) -> bool {
        steady::needs_reconcile(context, object, memory)
    }

    fn added(context: &Context, object: &K::Object) {
        K::of_kind(context).known_uids.insert(object.meta().uid.as_deref().unwrap_or_default());
        K::begin_metrics(&context.metrics, object);
    }

    fn deleted(context: &Context, object: &K::Object) {
        guard::deleted::<K>(context, object);
    }

    fn forget(context: &Context, object: &K::Object) {
        if let Some(uid) = object.meta().uid.as_deref() {
            K::of_kind(context).known_uids.remove(uid);
            context.own_writes.forget(uid);
        }
        K::forget_metrics(&context.metrics, object);
    }
}
