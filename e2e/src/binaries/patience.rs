//! Commands that may take minutes, and must not take for ever.

use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::say;
use crate::error::{Doing as _, Error, Result};

const PROGRESS_EVERY: Duration = Duration::from_secs(15);
const CHILD_POLL_EVERY: Duration = Duration::from_millis(50);

/// Runs a command to its end. What it says on standard error is shown.
pub(super) fn run(command: &mut Command, shown: &str, time_max: Duration) -> Result<()> {
    let mut child = command.stdin(Stdio::null()).spawn().doing(format!("starting `{shown}`"))?;
    let started = Instant::now();
    let mut said = started;
    loop {
        if let Some(status) = child.try_wait().doing(format!("waiting for `{shown}`"))? {
            let told_above = b"see its output above";
            return if status.success() {
                Ok(())
            } else {
                Err(command_failed(shown, status, told_above))
            };
        }
        if started.elapsed() > time_max {
            child.kill().doing(format!("stopping `{shown}`"))?;
            child.wait().doing(format!("stopping `{shown}`"))?;
            return Err(Error::TimedOut {
                awaited: format!("`{shown}`"),
                seconds: time_max.as_secs(),
                seen: "it was stopped".into(),
            });
        }
        if said.elapsed() > PROGRESS_EVERY {
            said = Instant::now();
            say(&format!("still at `{shown}` ({} s)", started.elapsed().as_secs()));
        }
        thread::sleep(CHILD_POLL_EVERY);
    }
}

pub(super) fn command_failed(command: &str, status: ExitStatus, stderr: &[u8]) -> Error {
    Error::Command {
        command: command.to_owned(),
        status: status.to_string(),
        stderr: String::from_utf8_lossy(stderr).trim().to_owned(),
    }
}
