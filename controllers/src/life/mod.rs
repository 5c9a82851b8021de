//! The life of an object that stands for an allocation: what Corridors and MemoryBundles share.
//!
//! ```text
//! Pending → Allocating → Ready ⇄ Degraded → Releasing → gone
//!               └────────→ Failed
//! ```

mod apply;
mod calm;
mod damping;
mod event_budget;
mod facts;
mod first_reading;
mod guard;
mod kind;
mod observe;
mod plan;
mod rest;
mod standing;
mod telling;
mod verdict;
mod walk;

use std::marker::PhantomData;
use std::sync::Arc;

use kube::Resource;

pub(crate) use self::damping::Damping;
pub(crate) use self::facts::{Facts, Use};
pub(crate) use self::kind::{Allocation, Common, Drift, Health, Kind, not_configured};
pub(crate) use self::verdict::conditions_drift;
use self::walk::Memory;
use crate::context::Context;
use crate::controller::{Attempt, Controller, Outcome};
use crate::triggers::Triggers;

/// The controller of a kind whose objects stand for an allocation.
pub(crate) struct LifeController<K>(PhantomData<fn() -> K>);

impl<K> Default for LifeController<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Kind> Controller for LifeController<K> {
    type Object = K::Object;
    type Memory = Memory<K>;

    fn triggers(context: &Context) -> &Triggers {
        K::triggers(context)
    }

    async fn reconcile(
        context: Arc<Context>,
        object: Arc<K::Object>,
        memory: Memory<K>,
        attempt: Attempt,
    ) -> Outcome<Self> {
        walk::walk::<K>(&context, &object, memory, attempt).await
    }

    fn needs_reconcile(context: &Context, object: &K::Object, memory: &mut Memory<K>) -> bool {
        calm::needs_reconcile(context, object, memory)
    }

    fn added(context: &Context, object: &K::Object) {
        K::known_uids(context).insert(object.meta().uid.as_deref().unwrap_or_default());
        K::begin_metrics(context, object);
    }

    fn deleted(context: &Context, object: &K::Object) {
        guard::deleted::<K>(context, object);
    }

    fn forget(context: &Context, object: &K::Object) {
        if let Some(uid) = object.meta().uid.as_deref() {
            K::known_uids(context).remove(uid);
            context.own_writes.forget(uid);
        }
        K::forget_metrics(context, object);
    }
}
