//! Logs are for people on a terminal, and for machines everywhere else.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is wrong")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::scheduler_process::scheduler_binary;
use e2e::{ControlPlane, SchedulerProcess};
use serde_json::{Value, json};

/// Each connection is another handshake; the scheduler has some, and makes new ones.
#[tokio::test]
async fn a_certificate_that_is_not_verified_is_told_once() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let secure = std::fs::read_to_string(plane.scheduler_kubeconfig()).unwrap();
    let mut insecure: Value = serde_json::from_str(&secure).unwrap();
    let cluster = insecure["clusters"][0]["cluster"].as_object_mut().unwrap();
    cluster.remove("certificate-authority");
    cluster.insert("insecure-skip-tls-verify".to_owned(), json!(true));
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, insecure.to_string()).unwrap();
    let scheduler = SchedulerProcess::start(&kubeconfig, &["--backends", "simulated"]).await;
    let scheduler = scheduler.unwrap();
    let log = scheduler.log();
    assert_eq!(log.matches("cert bypassed").count(), 0, "{log}");
    assert_eq!(log.matches("insecure-skip-tls-verify").count(), 1, "{log}");
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The smallest thing that starts and says so. It ends when its terminal is gone, also where the tests inherit that
/// signal as ignored, as from `nohup`.
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
