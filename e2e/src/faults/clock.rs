//! A wall clock that can be set, for one process and without any right to set the machine's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::process::Command;

use crate::error::{Doing as _, Error, Result};

const SHIM: &str = include_str!("clock_shim.c");

/// Seconds that a process started by [`Self::wrap`] is ahead of the machine.
#[derive(Debug)]
pub struct WallClock {
    folder: TempDir,
}

impl WallClock {
    /// Compiles the library that stands between the process and its clock.
    pub async fn new() -> Result<Self> {
        let folder = tempfile::tempdir().doing("making a folder for a clock")?;
        let this = Self { folder };
        let source = this.path("shim.c");
        fs::write(&source, SHIM).doing("writing the clock's source")?;
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O2", "-o"]).arg(this.path("shim.so")).arg(&source);
        let output = compile.output().await.doing("starting `cc`, the C compiler")?;
        if !output.status.success() {
            return Err(Error::Command {
                command: "cc".into(),
                status: output.status.to_string(),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        this.set(0)?;
        Ok(this)
    }

    /// Steps the clock, under the running process.
    pub fn set(&self, seconds_ahead: i64) -> Result<()> {
        let doing = "setting a clock";
        // In one step: the other side reads at any time.
        let new = self.path("offset.new");
        fs::write(&new, seconds_ahead.to_string()).doing(doing)?;
        fs::rename(&new, self.path("offset")).doing(doing)
    }

    /// A program that runs `binary` by this clock.
    pub fn wrap(&self, binary: &Path) -> Result<PathBuf> {
        let doing = "writing a wrapper";
        let script = format!(
            "#!/bin/sh\nLD_PRELOAD='{}' CORRIDOR_CLOCK_OFFSET='{}' exec '{}' \"$@\"\n",
            self.path("shim.so").display(),
            self.path("offset").display(),
            binary.display(),
        );
        let path = self.path("run");
        fs::write(&path, script).doing(doing)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).doing(doing)?;
        Ok(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
