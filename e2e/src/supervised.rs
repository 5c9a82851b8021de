//! A server process that never outlives the test process, and leaves no file behind.
//!
//! Between the two stands a small shell (`supervise.sh`) that reads a pipe. However the test process
//! ends (return, panic, Ctrl-C, `kill -9`), the kernel closes its end of the pipe, and the shell kills
//! the server and removes the server's folder. Rust opens its pipes close-on-exec, so no other child
//! holds the end open by accident.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::{Doing as _, Error, Result};

const SUPERVISOR: &str = include_str!("supervise.sh");

/// As much of a log as helps to see why a server stopped.
const LOG_TAIL_LINES: usize = 40;

/// A server, its folder, and the shell between.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    folder: PathBuf,
    supervisor: Child,
    /// `None` once the supervisor was told to clean up.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    server: Option<u32>,
    ended: watch::Receiver<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Kill,
    Stop,
    Continue,
}

impl Supervised {
    /// Makes the server's folder and starts nothing yet, so that its files can be written first.
    /// `arguments` is given the folder.
    pub fn prepare(
        name: &str,
        program: &Path,
        arguments: impl FnOnce(&Path) -> Vec<OsString>,
    ) -> Result<Self> {
        let folder = unique_folder(name);
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "corridor-e2e"])
            .arg(&folder)
            .arg(program)
            .args(arguments(&folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C goes to the whole foreground group: the supervisor must outlive it.
            .process_group(0)
            .spawn()
            .doing(format!("starting the supervisor of {name}"))?;
        let pipes = (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        let (Some(orders), Some(answers), Some(held_by_server)) = pipes else {
            unreachable!("all three were asked for as pipes");
        };
        let mut this = Self {
            name: name.to_owned(),
            folder,
            supervisor,
            orders: Some(orders),
            answers: BufReader::new(answers),
            server: None,
            ended: notice_end(held_by_server),
        };
        let made = this.answer()?;
        if made != "made" {
            return Err(Error::malformed(format!("making a folder for {name}"), made));
        }
        Ok(this)
    }

    pub fn start(&mut self) -> Result<()> {
        let answer = self.order("start")?;
        let number = answer
            .parse()
            .map_err(|_| Error::malformed(format!("starting {}", self.name), answer))?;
        self.server = Some(number);
        Ok(())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server's process number, once started.
    pub fn process_id(&self) -> Option<u32> {
        self.server
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Returns when the server has ended, by itself or by a signal.
    pub async fn ended(&self) {
        // An error means that the noticing thread is gone, and that only follows the end.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        let order = match signal {
            Signal::Terminate => "TERM",
            Signal::Kill => "KILL",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
        };
        self.order(order).map(drop)
    }

    /// Waits for the end and returns the exit code as a shell gives it: 128 + n after signal n.
    pub async fn exit_code(&mut self, patience: Duration) -> Result<i32> {
        if timeout(patience, self.ended()).await.is_err() {
            return Err(Error::TimedOut {
                awaited: format!("the end of {}", self.name),
                seconds: patience.as_secs(),
                seen: format!("it still runs; its log ends with:\n{}", self.log_tail()),
            });
        }
        let code = self.order("wait")?;
        code.parse().map_err(|_| Error::malformed(format!("the exit code of {}", self.name), code))
    }

    /// Where the server's standard output and error go.
    pub fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// What the server wrote to its standard output and error.
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }

    pub fn stopped_unexpectedly(&self) -> Error {
        Error::ServerStopped { program: self.name.clone(), log_tail: self.log_tail() }
    }

    fn order(&mut self, order: &str) -> Result<String> {
        let doing = format!("telling the supervisor of {}: {order}", self.name);
        if let Some(orders) = &mut self.orders {
            writeln!(orders, "{order}").doing(doing)?;
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .doing(format!("hearing from the supervisor of {}", self.name))?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Supervised {
    /// Returns when the server is dead and its folder gone.
    fn drop(&mut self) {
        drop(self.orders.take());
        // Nothing can be done about a failure here; the leftover check of the suite would show it.
        let _ = self.supervisor.wait();
    }
}

/// Waits in a thread of its own: a pipe cannot be waited for by runtimes that come and go, while a
/// control plane may be shared by tests with a runtime each.
fn notice_end(mut held_by_server: ChildStderr) -> watch::Receiver<bool> {
    let (tell, ended) = watch::channel(false);
    thread::spawn(move || {
        // Whatever ends the reading, no process holds the other end any more.
        let _ = held_by_server.read_to_end(&mut Vec::new());
        // The receiver is dropped with the fixture.
        let _ = tell.send(true);
    });
    ended
}

/// A path that no other fixture has: the supervisor refuses one that exists.
fn unique_folder(name: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let count = MADE.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
    env::temp_dir().join(format!("corridor-e2e-{name}-{}-{count}-{nanos}", id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Supervised {
        let script = script.to_owned();
        Supervised::prepare("shell", Path::new("/bin/sh"), |_| vec!["-c".into(), script.into()])
            .unwrap()
    }

    #[tokio::test]
    async fn exit_codes_and_output_arrive() {
        let mut process = shell("echo working in $PWD; exit 7");
        process.start().unwrap();
        assert_eq!(process.exit_code(Duration::from_secs(30)).await.unwrap(), 7);
        assert_eq!(process.log(), format!("working in {}\n", process.folder().display()));
    }

    #[tokio::test]
    async fn a_terminated_process_reports_its_signal() {
        let mut process = shell("exec sleep 1000");
        process.start().unwrap();
        assert!(!process.has_ended());
        process.signal(Signal::Terminate).unwrap();
        assert_eq!(process.exit_code(Duration::from_secs(30)).await.unwrap(), 128 + 15);
    }

    #[test]
    fn dropping_removes_process_and_folder() {
        let mut process = shell("exec sleep 1000");
        process.start().unwrap();
        let folder = process.folder().to_owned();
        let proc_entry = format!("/proc/{}", process.process_id().unwrap());
        assert!(folder.exists() && Path::new(&proc_entry).exists());
        drop(process);
        assert!(!folder.exists() && !Path::new(&proc_entry).exists());
    }

    #[test]
    fn a_folder_without_a_started_server_goes_too() {
        let prepared = shell("exec sleep 1000");
        let folder = prepared.folder().to_owned();
        assert!(folder.is_dir());
        drop(prepared);
        assert!(!folder.exists());
    }
}
