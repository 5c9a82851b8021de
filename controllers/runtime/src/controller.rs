//! What a kind brings to the runner: how one of its objects is reconciled, and what follows from changes of the set.

use std::sync::Arc;

use kube::Resource as _;

use crate::api::Object;
use crate::owned::Owned;
use crate::triggers::Triggers;
use crate::work_queue::Requeue;

pub trait Controller: Send + Sync + 'static {
    /// What the controllers of a group share.
    type Context: Send + Sync + 'static;
    type Object: Object;
    /// What is remembered of an object between reconciles. Lost at a restart, so nothing may depend on it but cost.
    type Memory: Default + Send + 'static;

    /// Wakes by other sources than watches.
    fn triggers(_context: &Self::Context) -> Option<&Triggers> {
        None
    }

    /// The kinds of the objects that it creates: a change of one wakes its owner.
    fn owns() -> Vec<Owned<Self>>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// Observe, plan, write the status, apply at most one operation.
    fn reconcile(
        context: Arc<Self::Context>,
        object: Arc<Self::Object>,
        memory: Self::Memory,
        attempt: Attempt,
    ) -> impl Future<Output = Outcome<Self>> + Send
    where
        Self: Sized;

    /// Whether a wake-up of this one object calls for a reconcile at all. Never called while one is running.
    fn needs_reconcile(
        _context: &Self::Context,
        _object: &Self::Object,
        _memory: &mut Self::Memory,
    ) -> bool {
        true
    }

    /// The set of objects changed, and is known completely. The order is arbitrary.
    fn set_changed(
        _context: &Self::Context,
        _objects: &mut dyn Iterator<Item = &Arc<Self::Object>>,
    ) {
    }

    /// The watch shows a new object.
    fn added(_context: &Self::Context, _object: &Self::Object) {}

    /// An object was deleted, as opposed to its whole kind. [`Self::forget`] follows.
    fn deleted(_context: &Self::Context, _object: &Self::Object) {}

    /// An object, or its whole kind, is gone.
    fn forget(_context: &Self::Context, _object: &Self::Object) {}

    /// Whether `new` asks for something else than `old`, so that earlier failures do not count.
    fn spec_changed(old: &Self::Object, new: &Self::Object) -> bool {
        let (old, new) = (old.meta(), new.meta());
        old.uid != new.uid
            || old.generation != new.generation
            || old.annotations != new.annotations
            || old.deletion_timestamp != new.deletion_timestamp
    }
}

/// What a reconcile is given besides its object.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Whether an operation that failed before may be retried.
    pub may_retry: bool,
    /// In 0..1.
    pub jitter: f64,
}

/// What a reconcile leaves behind.
#[derive(Debug)]
pub struct Outcome<C: Controller> {
    /// The object as the last write left it.
    pub object: Option<C::Object>,
    pub memory: C::Memory,
    pub requeue: Requeue,
}
