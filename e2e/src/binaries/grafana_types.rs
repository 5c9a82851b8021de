//! Grafana's published types and the TypeScript compiler, by the lock file in `grafana/`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::cache::Cached;
use super::patience;
use crate::error::{Doing as _, Error, Result};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/grafana");
const LOCK: &str = include_str!("../../grafana/package-lock.json");
const COMPILER: &str = "node_modules/typescript/bin/tsc";
const TYPES: &str = "node_modules/@grafana/schema/package.json";
/// Two packages; a hung download must not wait for ever.
const FETCH_TIME_MAX: Duration = Duration::from_mins(10);
/// Enough of the lock's digest to tell two locks apart.
const KEY_BYTES: usize = 8;

/// A folder with `node_modules`.
#[derive(Debug, Clone)]
pub struct GrafanaTypes {
    folder: PathBuf,
}

impl GrafanaTypes {
    /// Finds them, or fetches them by npm. Blocks.
    pub fn locate() -> Result<Self> {
        let digest = Sha256::digest(LOCK);
        let first = digest.iter().take(KEY_BYTES);
        let key = first.fold(0_u64, |key, byte| (key << u8::BITS) | u64::from(*byte));
        let cached = Cached {
            place: "grafana-types",
            key: format!("{key:016x}"),
            what: "Grafana's types".into(),
            needed: &[COMPILER, TYPES],
        };
        Ok(Self { folder: cached.made_once(fetch)? })
    }

    /// Holds the text of a dashboard against the types. The error is the compiler's.
    pub fn check(&self, name: &str, dashboard: &str) -> Result<()> {
        let doing = || format!("preparing the check of {name}");
        let folder = tempfile::tempdir().doing(doing())?;
        let at = |file: &str| folder.path().join(file);
        symlink(self.folder.join("node_modules"), at("node_modules")).doing(doing())?;
        for file in ["dashboard.ts", "tsconfig.json"] {
            fs::copy(Path::new(SOURCES).join(file), at(file)).doing(doing())?;
        }
        let text = format!(
            "import type {{ DashboardFile }} from './dashboard';\n\
             export const dashboard: DashboardFile = {dashboard};\n"
        );
        fs::write(at("checked.ts"), text).doing(doing())?;
        let output = Command::new("node")
            .arg(self.folder.join(COMPILER))
            .args(["--project", "."])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .doing(format!("starting the TypeScript compiler for {name}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::malformed(
            format!("holding {name} against Grafana's types"),
            String::from_utf8_lossy(&output.stdout).trim(),
        ))
    }
}

fn fetch(folder: &Path) -> Result<()> {
    for file in ["package.json", "package-lock.json"] {
        let from = Path::new(SOURCES).join(file);
        fs::copy(&from, folder.join(file)).doing(format!("copying {}", from.display()))?;
    }
    let mut npm = Command::new("npm");
    // Exactly what the lock says; nothing of it is run.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    npm.current_dir(folder).stdout(Stdio::null());
    patience::run(&mut npm, "npm ci", FETCH_TIME_MAX)
}
