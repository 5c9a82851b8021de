//! Counts and reports tampering. It is found by `lifecycle/guard.rs`.

use std::collections::HashSet;
use std::sync::Arc;

use controller_runtime::{ApiClient, Event, Object};
use kube::ResourceExt;
use own_writes::{TAMPERING_REASON, Tampering};
use parking_lot::Mutex;
use prometheus::IntCounterVec;
use tokio::sync::Semaphore;
use tracing::warn;

/// Events that are posted concurrently.
const EVENTS_AT_ONCE: usize = 4;
/// Events that wait to be posted: one command can strip ten thousand objects.
const EVENTS_WAITING_MAX: usize = 256;
/// Objects that were deleted before their release, until the sweep finds their allocations. Beyond this number they are
/// counted twice.
const UNRELEASED_MAX: usize = 1024;

pub(crate) struct Alarms {
    api: ApiClient,
    counter: Option<IntCounterVec>,
    events: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// UIDs of objects whose finalizer the controllers have removed.
    released: Mutex<HashSet<String>>,
    /// UIDs of objects that were deleted before their release, and reported.
    unreleased: Mutex<HashSet<String>>,
}

impl Alarms {
    pub fn new(api: ApiClient, counter: Option<IntCounterVec>) -> Self {
        Self {
            api,
            counter,
            events: Arc::new(Semaphore::new(EVENTS_AT_ONCE)),
            waiting: Arc::new(Semaphore::new(EVENTS_WAITING_MAX)),
            released: Mutex::default(),
            unreleased: Mutex::default(),
        }
    }

    fn count(&self, kind: Tampering) {
        if let Some(counter) = &self.counter {
            counter.with_label_values(&[kind.as_str()]).inc();
        }
    }

    /// `is_reported`: otherwise it is only counted, because the object has had enough reports.
    pub fn raise<K: Object>(
        &self,
        object: &K,
        kind: Tampering,
        message: &'static str,
        is_reported: bool,
    ) {
        self.count(kind);
        if !is_reported {
            return;
        }
        let (of, namespace) = (K::kind(&()), object.namespace().unwrap_or_default());
        warn!(%kind, %of, namespace, name = object.name_any(), message, "tampering");
        let Ok(waiting) = self.waiting.clone().try_acquire_owned() else { return };
        let (api, object, events) = (self.api.clone(), object.clone(), self.events.clone());
        tokio::spawn(async move {
            // Never closed, so this is a permit.
            let permit = events.acquire_owned().await;
            let event = Event::warning(TAMPERING_REASON, format!("{kind}: {message}"));
            api.post_event(&object, &event).await;
            drop((permit, waiting));
        });
    }

    /// The controllers are about to remove their finalizer.
    pub fn finalizer_released(&self, uid: &str) {
        self.released.lock().insert(uid.to_owned());
    }

    /// The object is gone. Whether the controllers had removed their finalizer.
    pub fn was_finalizer_released(&self, uid: &str) -> bool {
        self.released.lock().remove(uid)
    }

    pub fn deleted_unreleased<K: Object>(&self, object: &K) {
        let message = "gone, though its finalizer was not ours to remove yet; what it had allocated \
                       is released as an orphan";
        self.raise(object, Tampering::Finalizer, message, true);
        let mut unreleased = self.unreleased.lock();
        if unreleased.len() < UNRELEASED_MAX {
            unreleased.insert(object.uid().unwrap_or_default());
        }
    }

    /// The owner of an allocation is gone. The finalizer is older than the allocation, so it was removed by another
    /// account, perhaps while no controller was running.
    pub fn orphaned(&self, uid: &str) {
        if !self.unreleased.lock().remove(uid) {
            warn!(uid, kind = %Tampering::Finalizer, "tampering: an allocation has lost its object");
            self.count(Tampering::Finalizer);
        }
    }
}
