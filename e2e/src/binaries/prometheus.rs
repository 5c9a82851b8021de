//! Prometheus and promtool, out of Debian's package. It is unpacked and not installed: no service, no
//! user, nothing that outlives the cache.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::cache::{Cached, missing};
use super::patience;
use super::say;
use crate::error::{Doing as _, Error, Result};

const NEEDED: [&str; 2] = ["prometheus", "promtool"];
const PACKAGE: &str = "prometheus";
const VARIABLE: &str = "CORRIDOR_PROMETHEUS";
/// The package has 60 MB; a hung mirror must not wait for ever.
const FETCH_TIME_MAX: Duration = Duration::from_mins(10);
/// Of one connection that says nothing.
const APT_FLAGS: [&str; 4] = ["-qq", "-oAcquire::Retries=2", "-oAcquire::http::Timeout=30", "-y"];

/// A folder that holds both.
#[derive(Debug, Clone)]
pub struct PrometheusPrograms {
    folder: PathBuf,
}

impl PrometheusPrograms {
    /// Finds them in the folder that `CORRIDOR_PROMETHEUS` names, or in the cache, or fetches them. Blocks.
    pub fn locate() -> Result<Self> {
        if let Some(folder) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            return Self::from_folder(PathBuf::from(folder));
        }
        let release = debian_release()?;
        let cached = Cached {
            place: "prometheus",
            key: format!("debian-{release}"),
            what: format!("Prometheus of Debian {release}"),
            needed: &NEEDED,
        };
        Ok(Self { folder: cached.made_once(fetch)? })
    }

    pub fn server(&self) -> PathBuf {
        self.folder.join("prometheus")
    }

    pub fn promtool(&self) -> PathBuf {
        self.folder.join("promtool")
    }

    fn from_folder(folder: PathBuf) -> Result<Self> {
        let missing = missing(&folder, &NEEDED);
        if missing.is_empty() {
            return Ok(Self { folder });
        }
        Err(Error::NoProgram(format!(
            "{VARIABLE} names {}, which lacks {}. Put the missing programs there, or unset the \
             variable to have them fetched by apt-get.",
            folder.display(),
            missing.join(", "),
        )))
    }
}

fn debian_release() -> Result<String> {
    let path = "/etc/os-release";
    let text = fs::read_to_string(path).unwrap_or_default();
    let codename = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    codename.map(|name| name.trim_matches('"').to_owned()).ok_or_else(|| {
        Error::NoProgram(format!(
            "The tests need prometheus and promtool. They come from Debian's package, and {path} \
             does not name a release of Debian: set {VARIABLE} to a folder that holds them.",
        ))
    })
}

fn fetch(folder: &Path) -> Result<()> {
    if download(folder).is_err() {
        say("no list of packages, or an old one; fetching it");
        apt(folder, &["update"])?;
        download(folder)?;
    }
    let packed = packed(folder)?;
    let unpacked = folder.join("unpacked");
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(&packed).arg(&unpacked);
    patience::run(&mut unpack, "dpkg-deb --extract", FETCH_TIME_MAX)?;
    for program in NEEDED {
        let (from, to) = (unpacked.join("usr/bin").join(program), folder.join(program));
        fs::rename(&from, &to).doing(format!("moving {}", from.display()))?;
    }
    fs::remove_dir_all(&unpacked).doing(format!("removing {}", unpacked.display()))?;
    fs::remove_file(&packed).doing(format!("removing {}", packed.display()))
}

fn download(folder: &Path) -> Result<()> {
    apt(folder, &["download", PACKAGE])
}

fn apt(folder: &Path, arguments: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    // As root it would drop its rights, and then could not write into this folder.
    apt.arg("-oAPT::Sandbox::User=root").args(APT_FLAGS).args(arguments);
    apt.env("DEBIAN_FRONTEND", "noninteractive").current_dir(folder).stdout(Stdio::null());
    patience::run(&mut apt, &format!("apt-get {}", arguments.join(" ")), FETCH_TIME_MAX)
}

fn packed(folder: &Path) -> Result<PathBuf> {
    let doing = || format!("looking for the package in {}", folder.display());
    for entry in fs::read_dir(folder).doing(doing())? {
        let path = entry.doing(doing())?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            return Ok(path);
        }
    }
    Err(Error::malformed(doing(), "apt-get says that it was fetched, and it is not there"))
}
