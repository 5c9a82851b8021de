//! The two signals that ask for an orderly end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Ready at SIGTERM or SIGINT. The handlers are installed when this returns, not when it is
/// awaited: no signal falls between.
pub fn requested() -> io::Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
