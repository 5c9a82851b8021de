//! kube-scheduler's allocator: a Go program that is built here and asked in batches.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the plain rules have no clock; waiting for another program takes one"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use serde::Deserialize;
use serde_json::Value;

const MODULE_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/device-allocator");

/// From nothing, a busy core takes a minute or two; a hung download must not wait for ever.
const BUILD_TIME_MAX: Duration = Duration::from_mins(20);
/// Most cases take less than a millisecond, and a search that does not end is stopped after 2 s on each Node.
const CASE_TIME_MAX: Duration = Duration::from_millis(200);
const START_TIME_MAX: Duration = Duration::from_mins(2);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// The Go program explains the fields.
#[derive(Debug, Deserialize)]
struct Answer {
    seed: u64,
    nodes: BTreeMap<String, Told>,
}

/// What it says of one Node.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    // Go writes a list that was never made as null.
    pub allocations: Option<Vec<Value>>,
    pub error: String,
    pub only_here: bool,
    pub timed_out: bool,
}

pub struct Oracle {
    program: PathBuf,
}

impl Oracle {
    /// Go decides whether there is anything to do.
    pub fn build() -> Result<Self, String> {
        let this = env::current_exe().map_err(|why| format!("where this program lies: {why}"))?;
        // Beside this program, so under `target/`.
        let program = this.with_file_name("devices-kube-scheduler");
        let child = Command::new("go")
            .args(["build", "-mod=readonly", "-trimpath", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(MODULE_DIR)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|why| cannot_start_go(&why))?;
        await_success(child, "go build", BUILD_TIME_MAX)?;
        Ok(Self { program })
    }

    /// The answers by seed and Node.
    pub fn ask(&self, cases: &[Value]) -> Result<BTreeMap<u64, BTreeMap<String, Told>>, String> {
        // Files, not pipes: neither side has to read while the other writes.
        let questions = write_lines(cases).map_err(|why| format!("writing the cases: {why}"))?;
        let answers = tempfile::tempfile().map_err(|why| format!("a temporary file: {why}"))?;
        let output = answers.try_clone().map_err(|why| format!("a temporary file: {why}"))?;
        let child = Command::new(&self.program)
            .stdin(questions)
            .stdout(output)
            .spawn()
            .map_err(|why| format!("starting {}: {why}", self.program.display()))?;
        let count = u32::try_from(cases.len()).expect("batches are small");
        await_success(child, "device-allocator", START_TIME_MAX + CASE_TIME_MAX * count)?;
        read_answers(answers).map_err(|why| format!("reading the answers: {why}"))
    }
}

fn cannot_start_go(why: &io::Error) -> String {
    format!(
        "`go` cannot be started: {why}. The allocator of kube-scheduler is built from \
         scheduler/rules/device-allocator: install the version of Go that its go.mod names, or a \
         later one, and put it on the PATH."
    )
}

fn write_lines(cases: &[Value]) -> io::Result<File> {
    let mut lines = BufWriter::new(tempfile::tempfile()?);
    for case in cases {
        writeln!(lines, "{case}")?;
    }
    let mut file = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

fn read_answers(mut file: File) -> io::Result<BTreeMap<u64, BTreeMap<String, Told>>> {
    file.rewind()?;
    let mut answers = BTreeMap::new();
    for line in BufReader::new(file).lines() {
        let Answer { seed, nodes } = serde_json::from_str(&line?)?;
        answers.insert(seed, nodes);
    }
    Ok(answers)
}

/// What the program has to say for itself goes straight to standard error.
fn await_success(mut child: Child, name: &str, time_max: Duration) -> Result<(), String> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{name}` failed ({status}); see above")),
            Ok(None) if started.elapsed() < time_max => thread::sleep(POLL_EVERY),
            Ok(None) => {
                // If it ended just now, there is nothing left to stop.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{name}` was stopped after {} s", time_max.as_secs()));
            }
            Err(why) => return Err(format!("waiting for `{name}`: {why}")),
        }
    }
}
