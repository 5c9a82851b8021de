//! A library that stands between a process and what it asks of its system.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::process::Command;

use crate::error::{Doing as _, Error, Result};

/// The library, compiled, and a folder for what it reads.
#[derive(Debug)]
pub(super) struct Preload {
    folder: TempDir,
}

impl Preload {
    pub async fn compile(source: &str) -> Result<Self> {
        let folder = tempfile::tempdir().doing("making a folder for a library")?;
        let this = Self { folder };
        let file = this.path("shim.c");
        fs::write(&file, source).doing("writing the source of a library")?;
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O2", "-o"]).arg(this.path("shim.so")).arg(&file);
        let output = compile.output().await.doing("starting `cc`, the C compiler")?;
        if output.status.success() {
            return Ok(this);
        }
        Err(Error::Command {
            command: "cc".into(),
            status: output.status.to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// A program that runs `binary` with the library, and with these variables for it.
    pub fn wrap(&self, binary: &Path, variables: &[(&str, &Path)]) -> Result<PathBuf> {
        let doing = "writing a wrapper";
        let variables =
            variables.iter().map(|(name, value)| format!("{name}='{}' ", value.display()));
        let script = format!(
            "#!/bin/sh\n{}LD_PRELOAD='{}' exec '{}' \"$@\"\n",
            variables.collect::<String>(),
            self.path("shim.so").display(),
            binary.display(),
        );
        let path = self.path("run");
        fs::write(&path, script).doing(doing)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).doing(doing)?;
        Ok(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
