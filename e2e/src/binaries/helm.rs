//! Helm, built from the Go module in `helm/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::cache::Cached;
use super::go_module::{GoModule, required_version};
use super::patience::command_failed;
use crate::error::{Doing as _, Result};

const GO_MOD: &str = include_str!("../../helm/go.mod");
const HELM_MODULE: &str = "helm.sh/helm/v4";
/// A cold build took 8 minutes beside other builds on two cores.
const BUILD_TIME_MAX: Duration = Duration::from_mins(30);
const MODULE: GoModule = GoModule::at(concat!(env!("CARGO_MANIFEST_DIR"), "/helm"), BUILD_TIME_MAX);
const PROGRAM: &str = "helm";

/// A helm without the settings of the user that runs the tests.
#[derive(Debug, Clone)]
pub struct Helm {
    program: PathBuf,
}

impl Helm {
    /// Finds it, or builds it, which takes minutes the first time. Blocks.
    pub fn locate() -> Result<Self> {
        let version = required_version(GO_MOD, HELM_MODULE)?;
        let go = MODULE.go_version("helm", "PATH")?;
        let cached = Cached {
            place: "helm",
            key: format!("helm-{version}_{go}"),
            what: format!("helm {version}"),
            needed: &[PROGRAM],
        };
        let folder = cached.made_once(|folder| {
            let packages = [format!("{HELM_MODULE}/cmd/helm")];
            MODULE.build("-s -w", folder.join(PROGRAM).into_os_string(), &packages)
        })?;
        Ok(Self { program: folder.join(PROGRAM) })
    }

    /// Runs it in `home`, where it may keep what it likes, and returns what it prints. It is given no
    /// cluster.
    pub fn run(&self, home: &Path, arguments: &[&str]) -> Result<String> {
        let shown = format!("helm {}", arguments.join(" "));
        let output = Command::new(&self.program)
            .args(arguments)
            .env_clear()
            .env("HOME", home)
            .env("KUBECONFIG", "/dev/null")
            .stdin(Stdio::null())
            .output()
            .doing(format!("starting `{shown}`"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let told = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        Err(command_failed(&shown, output.status, &told))
    }
}
