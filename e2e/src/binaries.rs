//! Finds the programs of the control plane, or builds them.
//!
//! `KUBEBUILDER_ASSETS` is honoured when it is set. Otherwise the Go module in
//! `control-plane/` is built once into a cache folder outside `target/`, named
//! after every version that decides what comes out.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing as _, Error, Result};

/// What a control plane of tests needs. The build adds kube-scheduler, for comparisons.
const NEEDED: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];

const GO_MOD: &str = include_str!("../control-plane/go.mod");
const MODULE_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane");

const KUBERNETES_MODULE: &str = "k8s.io/kubernetes";
const ETCD_MODULE: &str = "go.etcd.io/etcd/server/v3";

/// A cold build took 5 minutes on two busy cores; a hung download must not wait for ever.
const BUILD_TIME_MAX: Duration = Duration::from_mins(40);
const PROGRESS_EVERY: Duration = Duration::from_secs(15);
const CHILD_POLL_EVERY: Duration = Duration::from_millis(200);

/// A folder that holds the programs.
#[derive(Debug, Clone)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds them, or builds them, which takes minutes the first time. Blocks.
    pub fn locate() -> Result<Self> {
        match env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()) {
            Some(folder) => Self::from_assets(PathBuf::from(folder)),
            None => Self::from_cache(),
        }
    }

    pub fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    fn from_assets(folder: PathBuf) -> Result<Self> {
        let missing = missing_programs(&folder);
        if missing.is_empty() {
            return Ok(Self { folder });
        }
        Err(Error::NoControlPlane(format!(
            "KUBEBUILDER_ASSETS names {}, which lacks {}. Put the missing programs there, or unset \
             the variable to have them built with Go.",
            folder.display(),
            missing.join(", "),
        )))
    }

    fn from_cache() -> Result<Self> {
        let versions = Versions::read()?;
        let cache = cache_folder()?;
        let folder = cache.join(versions.key());
        if missing_programs(&folder).is_empty() {
            return Ok(Self { folder });
        }
        fs::create_dir_all(&cache).doing(format!("creating the cache {}", cache.display()))?;
        let lock_path = cache.join(format!("{}.lock", versions.key()));
        let lock = File::create(&lock_path).doing(format!("opening {}", lock_path.display()))?;
        if lock.try_lock().is_err() {
            say("another process is building the control plane; waiting for it");
            lock.lock().doing(format!("locking {}", lock_path.display()))?;
        }
        if !missing_programs(&folder).is_empty() {
            build(&versions, &cache, &folder)?;
        }
        Ok(Self { folder })
    }
}

/// The versions that decide what a build gives.
struct Versions {
    kubernetes: String,
    etcd: String,
    go: String,
}

impl Versions {
    fn read() -> Result<Self> {
        Ok(Self {
            kubernetes: required_version(GO_MOD, KUBERNETES_MODULE)?,
            etcd: required_version(GO_MOD, ETCD_MODULE)?,
            go: go_version()?,
        })
    }

    fn key(&self) -> String {
        format!("k8s-{}_etcd-{}_{}", self.kubernetes, self.etcd, self.go)
    }
}

/// The version a go.mod requires of a module: the word after its name, outside the `tool` block.
fn required_version(go_mod: &str, module: &str) -> Result<String> {
    go_mod
        .lines()
        .filter_map(|line| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            (words.next() == Some(module)).then(|| words.next()).flatten()
        })
        .find(|version| version.starts_with('v'))
        .map(str::to_owned)
        .ok_or_else(|| Error::malformed("reading control-plane/go.mod", format!("no {module}")))
}

fn go_version() -> Result<String> {
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(MODULE_DIR)
        .stdin(Stdio::null())
        .output()
        .map_err(|problem| {
            Error::NoControlPlane(format!(
                "The tests need etcd, kube-apiserver and kubectl, and there are two ways to them: \
                 install Go, so that they are built from e2e/control-plane (`go` cannot be started \
                 now: {problem}); or set KUBEBUILDER_ASSETS to a folder that holds them.",
            ))
        })?;
    if !output.status.success() {
        return Err(command_failed("go env GOVERSION", output.status, &output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn cache_folder() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .ok_or_else(|| {
            Error::NoControlPlane(
                "There is no place for the built control plane: set HOME or XDG_CACHE_HOME.".into(),
            )
        })?;
    Ok(base.join("corridor").join("control-plane"))
}

fn missing_programs(folder: &Path) -> Vec<&'static str> {
    NEEDED.into_iter().filter(|program| !folder.join(program).is_file()).collect()
}

/// Builds beside `folder` and renames at the end, so that `folder` is whole whenever it exists.
fn build(versions: &Versions, cache: &Path, folder: &Path) -> Result<()> {
    let started = Instant::now();
    say(&format!(
        "building the control plane (Kubernetes {}, etcd {}) into {}; this takes minutes, once",
        versions.kubernetes,
        versions.etcd,
        folder.display(),
    ));
    let prefix = format!("{}.partial-", versions.key());
    remove_stale(cache, &prefix)?;
    let partial = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(cache)
        .doing(format!("creating a folder in {}", cache.display()))?;

    let stamp = format!(
        "-s -w -X k8s.io/component-base/version.gitVersion={version}",
        version = versions.kubernetes
    );
    let commands = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]
        .map(|command| format!("{KUBERNETES_MODULE}/cmd/{command}"));
    // A trailing slash makes `go build` name each output after its command.
    let mut into_folder = partial.path().as_os_str().to_owned();
    into_folder.push("/");
    go_build(&stamp, into_folder, &commands)?;
    let etcd = partial.path().join("etcd").into_os_string();
    go_build("-s -w", etcd, &[ETCD_MODULE.to_owned()])?;

    // A folder that lacks a program is of no use to anyone, and would be in the way.
    if folder.exists() {
        fs::remove_dir_all(folder).doing(format!("removing {}", folder.display()))?;
    }
    let built = partial.keep();
    fs::rename(&built, folder).doing(format!("renaming {}", built.display()))?;
    say(&format!("the control plane is built ({} s)", started.elapsed().as_secs()));
    Ok(())
}

/// Whoever holds the lock is the only builder: other partial folders are of builds that died.
fn remove_stale(cache: &Path, prefix: &str) -> Result<()> {
    let doing = || format!("looking for stale builds in {}", cache.display());
    for entry in fs::read_dir(cache).doing(doing())? {
        let entry = entry.doing(doing())?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path()).doing(doing())?;
        }
    }
    Ok(())
}

fn go_build(ldflags: &str, output: OsString, packages: &[String]) -> Result<()> {
    let shown = format!("go build {}", packages.join(" "));
    let mut child = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-ldflags", ldflags, "-o"])
        .arg(output)
        .args(packages)
        .current_dir(MODULE_DIR)
        .stdin(Stdio::null())
        .spawn()
        .doing(format!("starting `{shown}`"))?;
    let started = Instant::now();
    let mut said = started;
    loop {
        if let Some(status) = child.try_wait().doing(format!("waiting for `{shown}`"))? {
            let told_above = b"see its output above";
            return if status.success() {
                Ok(())
            } else {
                Err(command_failed(&shown, status, told_above))
            };
        }
        if started.elapsed() > BUILD_TIME_MAX {
            child.kill().doing(format!("stopping `{shown}`"))?;
            child.wait().doing(format!("stopping `{shown}`"))?;
            return Err(Error::TimedOut {
                awaited: format!("`{shown}`"),
                seconds: BUILD_TIME_MAX.as_secs(),
                seen: "it was stopped".into(),
            });
        }
        if said.elapsed() > PROGRESS_EVERY {
            said = Instant::now();
            say(&format!("still at `{shown}` ({} s)", started.elapsed().as_secs()));
        }
        thread::sleep(CHILD_POLL_EVERY);
    }
}

fn command_failed(command: &str, status: ExitStatus, stderr: &[u8]) -> Error {
    Error::Command {
        command: command.to_owned(),
        status: status.to_string(),
        stderr: String::from_utf8_lossy(stderr).trim().to_owned(),
    }
}

/// Straight to standard error: the test harness hides what `eprintln!` writes until a test fails.
pub fn say(line: &str) {
    // Nobody to read it is no reason to fail.
    let _ = writeln!(io::stderr(), "[e2e] {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_require_block() {
        let go_mod = "tool (\n\tk8s.io/kubernetes/cmd/kubectl\n)\nrequire (\n\tk8s.io/kubernetes \
                      v1.2.3\n)\nrequire go.etcd.io/etcd/server/v3 v3.4.5\n";
        assert_eq!(required_version(go_mod, KUBERNETES_MODULE).unwrap(), "v1.2.3");
        assert_eq!(required_version(go_mod, ETCD_MODULE).unwrap(), "v3.4.5");
        assert!(required_version(go_mod, "k8s.io/api").is_err());
    }

    #[test]
    fn assets_without_a_program_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for program in ["etcd", "kube-controller-manager", "kubectl"] {
            fs::write(folder.path().join(program), "").unwrap();
        }
        let refusal = Binaries::from_assets(folder.path().to_owned()).unwrap_err().to_string();
        assert!(refusal.contains("lacks kube-apiserver."), "{refusal}");
    }
}
