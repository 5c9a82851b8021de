//! Wakes of a kind's objects by other sources than its own watch: telemetry, policies, owned objects.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Objects of one kind to reconcile. Never blocks and coalesces, so it is bounded by the objects.
#[derive(Debug, Default)]
pub struct Triggers {
    pending: Mutex<Pending>,
    notify: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub all: bool,
    pub namespaces: HashSet<String>,
    pub uids: HashSet<String>,
}

impl Triggers {
    /// In one step, so that the runner wakes once for all of them.
    pub fn wake_each(&self, uids: impl Iterator<Item = String>) {
        self.pending.lock().uids.extend(uids);
        self.notify.notify_one();
    }

    /// All objects of these namespaces.
    pub fn wake_namespaces<'a>(&self, namespaces: impl Iterator<Item = &'a String>) {
        self.pending.lock().namespaces.extend(namespaces.cloned());
        self.notify.notify_one();
    }

    pub fn wake_all(&self) {
        self.pending.lock().all = true;
        self.notify.notify_one();
    }

    /// Waits until something is pending, and takes all of it.
    pub(crate) async fn next(&self) -> Pending {
        loop {
            let pending = std::mem::take(&mut *self.pending.lock());
            if pending.all || !pending.namespaces.is_empty() || !pending.uids.is_empty() {
                return pending;
            }
            self.notify.notified().await;
        }
    }
}
