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
use crate::board::Wakes;
use crate::context::Context;
use crate::harness::{Controller, Pass, Turn};

/// Lets the harness run a kind.
pub(crate) struct LifeController<K>(PhantomData<fn() -> K>);

impl<K> Default for LifeController<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Kind> Controller for LifeController<K> {
    type Object = K::Object;
    type Memory = Memory<K>;

    fn wakes(context: &Context) -> &Wakes {
        K::wakes(context)
    }

    async fn pass(
        context: Arc<Context>,
        object: Arc<K::Object>,
        memory: Memory<K>,
        turn: Turn,
    ) -> Pass<Self> {
        walk::walk::<K>(&context, &object, memory, turn).await
    }

    fn needs_pass(context: &Context, object: &K::Object, memory: &mut Memory<K>) -> bool {
        calm::needs_pass(context, object, memory)
    }

    fn met(context: &Context, object: &K::Object) {
        K::roster(context).enter(object.meta().uid.as_deref().unwrap_or_default());
        K::begin_metrics(context, object);
    }

    fn vanished(context: &Context, object: &K::Object) {
        guard::vanished::<K>(context, object);
    }

    fn gone(context: &Context, object: &K::Object) {
        if let Some(uid) = object.meta().uid.as_deref() {
            K::roster(context).leave(uid);
            context.own_writes.forget(uid);
        }
        K::forget_metrics(context, object);
    }
}
