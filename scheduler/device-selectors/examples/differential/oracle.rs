//! The evaluator of kube-scheduler: a Go program that is built here and asked in batches.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::{env, io};

use serde::Deserialize;

use crate::generate::Question;

const MODULE_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/differential");

/// The Go program explains the fields.
#[derive(Debug, Deserialize)]
pub struct Answer {
    pub refused: String,
    pub cost: u64,
    // Go writes a list that was never made as null.
    pub verdicts: Option<Vec<Verdict>>,
}

#[derive(Debug, Deserialize)]
pub struct Verdict {
    pub matches: bool,
    pub failed: String,
    pub unstable: bool,
    pub changed: bool,
}

pub struct Oracle {
    program: PathBuf,
}

impl Oracle {
    /// Go decides whether there is anything to do: half a minute the first time, a second later on.
    pub fn build() -> Result<Self, String> {
        let this = env::current_exe().map_err(|why| format!("where this program lies: {why}"))?;
        // Beside this program, so under `target/`. Two of them can be built at a time.
        let program = this.with_extension("kube-scheduler");
        let status = Command::new("go")
            .args(["build", "-mod=readonly", "-trimpath", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(MODULE_DIR)
            .stdin(Stdio::null())
            .status()
            .map_err(|why| cannot_start_go(&why))?;
        expect_success(status, "go build")?;
        Ok(Self { program })
    }

    /// The answers in the order of the questions.
    pub fn ask(&self, questions: &[Question]) -> Result<Vec<Answer>, String> {
        // Files, not pipes: neither side has to read while the other writes.
        let input = write_lines(questions).map_err(|why| format!("writing questions: {why}"))?;
        let answers = tempfile::tempfile().map_err(|why| format!("a temporary file: {why}"))?;
        let output = answers.try_clone().map_err(|why| format!("a temporary file: {why}"))?;
        let status = Command::new(&self.program).stdin(input).stdout(output).status();
        let status = status.map_err(|why| format!("starting {}: {why}", self.program.display()))?;
        expect_success(status, "the evaluator of kube-scheduler")?;
        let answers = read_answers(answers).map_err(|why| format!("reading answers: {why}"))?;
        if answers.len() != questions.len() {
            return Err(format!("{} answers to {} questions", answers.len(), questions.len()));
        }
        Ok(answers)
    }
}

fn cannot_start_go(why: &io::Error) -> String {
    format!(
        "`go` cannot be started: {why}. The evaluator of kube-scheduler is built from \
         scheduler/device-selectors/differential: install the version of Go that its go.mod names, \
         or a later one, and put it on the PATH."
    )
}

fn expect_success(status: ExitStatus, name: &str) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("`{name}` failed ({status}); see above")) }
}

fn write_lines(questions: &[Question]) -> io::Result<File> {
    let mut lines = BufWriter::new(tempfile::tempfile()?);
    for question in questions {
        writeln!(lines, "{}", question.as_json())?;
    }
    let mut file = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

fn read_answers(mut file: File) -> io::Result<Vec<Answer>> {
    file.rewind()?;
    let lines = BufReader::new(file).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}
