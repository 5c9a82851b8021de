//! Logs are for people on a terminal, and for machines everywhere else.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is wrong")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::scheduler_process::scheduler_binary;
use serde_json::Value;

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The smallest thing that starts and says so. It ends when its terminal is gone, also where whoever runs the tests ignores
/// that signal, as `nohup` does.
fn daemons(binary: &Path, state: &Path) -> String {
    let (binary, state) = (binary.display(), state.display());
    let ends_with_terminal = "env --default-signal=HUP";
    format!("exec {ends_with_terminal} '{binary}' daemons --state-dir '{state}' --http 127.0.0.1:0")
}

#[tokio::test]
async fn where_no_terminal_is_every_line_is_json() {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", &daemons(&scheduler_binary().await.unwrap(), state.path())]);
    let mut child = Running(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["level"], "INFO", "{line}");
    assert!(told["message"].is_string() && told["timestamp"].is_string(), "{line}");
}

#[tokio::test]
async fn on_a_terminal_a_line_is_text() {
    let state = tempfile::tempdir().unwrap();
    // `script` runs the command on a terminal of its own. What is written there comes out here; when this ends, the
    // terminal is gone and the command with it.
    let mut command = Command::new("script");
    let daemons = daemons(&scheduler_binary().await.unwrap(), state.path());
    command.args(["--quiet", "--flush", "--return", "--command", &daemons, "/dev/null"]);
    let mut child = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("INFO") && serde_json::from_str::<Value>(&line).is_err(), "{line}");
}
