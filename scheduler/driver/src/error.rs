//! Why the driver ended other than it was asked to.

use std::time::Duration;

use crate::watch::WatchEnded;

#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error(
        "stopped with {binds} Binding(s) still open after {patience:?}; the next start reads \
         their outcome from the API server"
    )]
    StoppedWithOpenBindings { binds: usize, patience: Duration },
    #[error(transparent)]
    WatchEnded(#[from] WatchEnded),
}
