//! Tampering with our objects, counted and told. What it is, the passes find out: see `life/guard.rs`.

use std::collections::HashSet;
use std::sync::Arc;

use kube::{Client, ResourceExt};
use own_writes::{TAMPERING_REASON, Tampering};
use parking_lot::Mutex;
use prometheus::IntCounterVec;
use tokio::sync::Semaphore;
use tracing::warn;

use crate::kubernetes::{self, Object};

/// Events that are written at once, …
const EVENTS_AT_ONCE: usize = 4;
/// … and that wait for that: ten thousand objects may be stripped by one command.
const EVENTS_WAITING_MAX: usize = 256;
/// Objects that vanished, until the sweep has found what they left: as many as one sweep may meet
/// without counting them twice.
const VANISHED_MAX: usize = 1024;

pub(crate) struct Alarms {
    client: Client,
    counter: Option<IntCounterVec>,
    events: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// UIDs of objects that we have let go ourselves and that are about to be gone.
    leaving: Mutex<HashSet<String>>,
    /// UIDs of objects that went without us, and were told.
    vanished: Mutex<HashSet<String>>,
}

impl Alarms {
    pub fn new(client: Client, counter: Option<IntCounterVec>) -> Self {
        Self {
            client,
            counter,
            events: Arc::new(Semaphore::new(EVENTS_AT_ONCE)),
            waiting: Arc::new(Semaphore::new(EVENTS_WAITING_MAX)),
            leaving: Mutex::default(),
            vanished: Mutex::default(),
        }
    }

    fn count(&self, kind: Tampering) {
        if let Some(counter) = &self.counter {
            counter.with_label_values(&[kind.as_str()]).inc();
        }
    }

    /// `is_told`: or only counted, because enough has been said about this object.
    pub fn raise<K: Object>(
        &self,
        object: &K,
        kind: Tampering,
        message: &'static str,
        is_told: bool,
    ) {
        self.count(kind);
        if !is_told {
            return;
        }
        let (of, namespace) = (K::kind(&()), object.namespace().unwrap_or_default());
        warn!(%kind, %of, namespace, name = object.name_any(), message, "tampering");
        let Ok(waiting) = self.waiting.clone().try_acquire_owned() else { return };
        let (client, object, events) = (self.client.clone(), object.clone(), self.events.clone());
        tokio::spawn(async move {
            // Never closed, so this is a permit.
            let permit = events.acquire_owned().await;
            let message = format!("{kind}: {message}");
            kubernetes::post_event(&client, &object, true, TAMPERING_REASON, &message).await;
            drop((permit, waiting));
        });
    }

    /// We are about to take our finalizer away.
    pub fn lets_go(&self, uid: &str) {
        self.leaving.lock().insert(uid.to_owned());
    }

    /// It is gone. Whether that was our doing.
    pub fn is_let_go(&self, uid: &str) -> bool {
        self.leaving.lock().remove(uid)
    }

    pub fn vanished<K: Object>(&self, object: &K) {
        let message = "gone, though its finalizer was not ours to remove yet; what it had allocated \
                       is released as an orphan";
        self.raise(object, Tampering::Finalizer, message, true);
        let mut vanished = self.vanished.lock();
        if vanished.len() < VANISHED_MAX {
            vanished.insert(object.uid().unwrap_or_default());
        }
    }

    /// An allocation whose owner is gone: there was a finalizer before there was an allocation, so
    /// somebody has removed it, perhaps while nobody was looking.
    pub fn orphaned(&self, uid: &str) {
        if !self.vanished.lock().remove(uid) {
            warn!(uid, kind = %Tampering::Finalizer, "tampering: an allocation has lost its object");
            self.count(Tampering::Finalizer);
        }
    }
}
