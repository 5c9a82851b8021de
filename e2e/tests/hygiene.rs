//! No process and no file is left behind, however a test process ends.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is wrong")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use e2e::ControlPlane;
use serde::Deserialize;

/// The supervisor needs milliseconds; a busy machine may take longer.
const CLEAN_UP_TIME_MAX: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Another process that holds a control plane.
struct Holder {
    process: Child,
    orders: ChildStdin,
    held: Held,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    folders: Vec<PathBuf>,
    process_ids: Vec<u32>,
}

impl Holder {
    fn start() -> Self {
        // Tests in the background of a shell without job control inherit an ignored SIGINT, and a
        // process that ignores it cannot be interrupted.
        let mut process = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_control-plane")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // One of them panics, as it should.
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let held: Held = serde_json::from_str(&line).unwrap();
        assert_eq!(held.folders.len(), 2, "one folder for each server");
        assert_eq!(held.process_ids.len(), 2, "etcd and kube-apiserver");
        for folder in &held.folders {
            assert!(folder.is_dir(), "{} is missing", folder.display());
            // The supervisor and the server, which has its files there.
            assert!(processes_mentioning(folder).len() >= 2, "nobody uses {}", folder.display());
        }
        for id in &held.process_ids {
            assert!(Path::new(&format!("/proc/{id}")).exists(), "process {id} does not run");
        }
        Self { process, orders, held }
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// As Ctrl-C does: to the whole process group.
    fn interrupt(&self) {
        let group = format!("-{}", self.process.id());
        let sent = Command::new("sh").args(["-c", "kill -s INT -- \"$0\"", &group]).status();
        assert!(sent.unwrap().success());
    }

    fn assert_leaves_nothing(mut self) {
        self.process.wait().unwrap();
        assert_all_gone(&self.held.folders);
    }
}

/// Process numbers of everything that has this folder among its arguments.
fn processes_mentioning(folder: &Path) -> Vec<u32> {
    let folder = folder.to_str().unwrap();
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        // A process that ended while we looked has no arguments any more.
        let arguments = fs::read(format!("/proc/{number}/cmdline")).ok()?;
        String::from_utf8_lossy(&arguments).contains(folder).then_some(number)
    });
    numbers.collect()
}

fn assert_all_gone(folders: &[PathBuf]) {
    let deadline = Instant::now() + CLEAN_UP_TIME_MAX;
    for folder in folders {
        while folder.exists() || !processes_mentioning(folder).is_empty() {
            let left = processes_mentioning(folder);
            assert!(
                Instant::now() < deadline,
                "{} exists: {}; processes left: {left:?}",
                folder.display(),
                folder.exists(),
            );
            thread::sleep(POLL_EVERY);
        }
    }
}

#[tokio::test]
async fn dropping_a_control_plane_leaves_nothing() {
    let plane = ControlPlane::start().await.unwrap();
    let folders: Vec<PathBuf> = plane.folders().map(Path::to_owned).into();
    drop(plane);
    for folder in folders {
        assert!(!folder.exists(), "{} is left", folder.display());
        assert!(processes_mentioning(&folder).is_empty(), "a process of {folder:?} is left");
    }
}

#[test]
fn a_killed_test_process_leaves_nothing() {
    let mut holder = Holder::start();
    // SIGKILL, which no process can handle.
    holder.process.kill().unwrap();
    holder.assert_leaves_nothing();
}

#[test]
fn a_fixture_in_a_static_leaves_nothing() {
    let mut holder = Holder::start();
    holder.tell("exit");
    holder.assert_leaves_nothing();
}

#[test]
fn an_interrupted_test_process_leaves_nothing() {
    let holder = Holder::start();
    holder.interrupt();
    holder.assert_leaves_nothing();
}

#[test]
fn a_panic_leaves_nothing() {
    let mut holder = Holder::start();
    holder.tell("panic");
    holder.assert_leaves_nothing();
}
