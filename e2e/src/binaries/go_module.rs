//! Programs that are built from a Go module of this crate, which pins them.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::patience::{self, command_failed};
use crate::error::{Doing as _, Error, Result};

/// A folder with go.mod and go.sum.
pub(super) struct GoModule {
    folder: &'static str,
    time_max: Duration,
}

impl GoModule {
    pub const fn at(folder: &'static str, time_max: Duration) -> Self {
        Self { folder, time_max }
    }

    /// The version of Go that would build here. `what` is needed, and `variable` is the other way to it.
    pub fn go_version(&self, what: &str, variable: &str) -> Result<String> {
        let output = Command::new("go")
            .args(["env", "GOVERSION"])
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|problem| {
                Error::NoProgram(format!(
                    "The tests need {what}, and there are two ways to them: install Go, so that \
                     they are built (`go` cannot be started now: {problem}); or set {variable} to a \
                     folder that holds them.",
                ))
            })?;
        if !output.status.success() {
            return Err(command_failed("go env GOVERSION", output.status, &output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub fn build(&self, ldflags: &str, output: OsString, packages: &[String]) -> Result<()> {
        let mut build = Command::new("go");
        build
            .args(["build", "-mod=readonly", "-trimpath", "-ldflags", ldflags, "-o"])
            .arg(output)
            .args(packages)
            .current_dir(self.folder);
        patience::run(&mut build, &format!("go build {}", packages.join(" ")), self.time_max)
    }

    /// Where the source of a module lies that go.sum vouches for. Fetched if need be.
    pub fn source(&self, module: &str) -> Result<String> {
        let mut fetch = Command::new("go");
        fetch.args(["mod", "download", module]).current_dir(self.folder);
        patience::run(&mut fetch, &format!("go mod download {module}"), self.time_max)?;
        let shown = format!("go list -m {module}");
        let output = Command::new("go")
            .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module])
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .output()
            .doing(format!("starting `{shown}`"))?;
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && !folder.is_empty() {
            return Ok(folder);
        }
        Err(command_failed(&shown, output.status, &output.stderr))
    }
}

/// The version a go.mod requires of a module: the word after its name, outside the `tool` block.
pub(super) fn required_version(go_mod: &str, module: &str) -> Result<String> {
    go_mod
        .lines()
        .filter_map(|line| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            (words.next() == Some(module)).then(|| words.next()).flatten()
        })
        .find(|version| version.starts_with('v'))
        .map(str::to_owned)
        .ok_or_else(|| Error::malformed("reading a go.mod", format!("no {module}")))
}
