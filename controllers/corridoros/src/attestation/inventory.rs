//! attestd's devices, as last read.

use daemons::attestd::Device;
use parking_lot::RwLock;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct DeviceInventory {
    state: RwLock<Result<Vec<Device>, String>>,
    was_read: watch::Sender<bool>,
}

impl Default for DeviceInventory {
    fn default() -> Self {
        let unread = Err("its inventory has not been read yet".to_owned());
        Self { state: RwLock::new(unread), was_read: watch::channel(false).0 }
    }
}

impl DeviceInventory {
    pub fn devices(&self) -> Result<Vec<Device>, String> {
        self.state.read().clone()
    }

    /// Returns whether anything changed.
    pub fn replace(&self, devices: Result<Vec<Device>, String>) -> bool {
        let mut state = self.state.write();
        let changed = *state != devices;
        *state = devices;
        drop(state);
        self.was_read.send_replace(true);
        changed
    }

    /// Waits for the first answer of attestd, or its first failure: a process that has just started must not take its
    /// own ignorance for a refusal.
    pub async fn was_read(&self) {
        // The sender lives as long as `self`, so this ends only when it is true.
        let _ = self.was_read.subscribe().wait_for(|was_read| *was_read).await;
    }
}
