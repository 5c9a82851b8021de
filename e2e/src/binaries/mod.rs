//! Finds the programs of others that the tests run, or builds or fetches them: each once, into a cache
//! folder outside `target/`, named after every version that decides what comes out.
//!
//! The programs of the control plane are built from the Go module in `control-plane/`, unless
//! `KUBEBUILDER_ASSETS` names a folder that holds them. With `CORRIDOR_E2E_KUBERNETES=oldest` they are those of the
//! oldest release that is supported, from `control-plane-oldest/`.

mod cache;
mod go_module;
mod grafana_types;
mod helm;
mod patience;
mod prometheus;
mod prometheus_operator;

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::cache::{Cached, missing};
use self::go_module::{GoModule, required_version};
use crate::error::{Error, Result};

pub use self::grafana_types::GrafanaTypes;
pub use self::helm::Helm;
pub use self::prometheus::PrometheusPrograms;
pub use self::prometheus_operator::monitoring_crds;

/// What a control plane of tests needs. The build adds kube-scheduler, for comparisons.
const NEEDED: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];

const GO_MOD: &str = include_str!("../../control-plane/go.mod");
const MODULE: GoModule =
    GoModule::at(concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane"), BUILD_TIME_MAX);
const OLDEST_GO_MOD: &str = include_str!("../../control-plane-oldest/go.mod");
const OLDEST_MODULE: GoModule =
    GoModule::at(concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane-oldest"), BUILD_TIME_MAX);

/// Chooses the release of Kubernetes for a run of the tests.
const RELEASE_VARIABLE: &str = "CORRIDOR_E2E_KUBERNETES";

const KUBERNETES_MODULE: &str = "k8s.io/kubernetes";
const ETCD_MODULE: &str = "go.etcd.io/etcd/server/v3";

/// A cold build took 5 minutes on two busy cores; a hung download must not wait for ever.
const BUILD_TIME_MAX: Duration = Duration::from_mins(40);

/// The releases of Kubernetes that the tests can run on: both ends of what is supported (docs/install.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    Newest,
    Oldest,
}

impl Release {
    fn chosen(value: Option<&str>) -> Result<Self> {
        match value {
            None | Some("" | "newest") => Ok(Self::Newest),
            Some("oldest") => Ok(Self::Oldest),
            Some(other) => Err(Error::NoProgram(format!(
                "{RELEASE_VARIABLE} is {other:?}; it may be newest, which it is without the variable, or oldest."
            ))),
        }
    }

    fn go_mod(self) -> &'static str {
        match self {
            Self::Newest => GO_MOD,
            Self::Oldest => OLDEST_GO_MOD,
        }
    }

    fn module(self) -> GoModule {
        match self {
            Self::Newest => MODULE,
            Self::Oldest => OLDEST_MODULE,
        }
    }
}

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
            None => Self::from_cache(Release::chosen(env::var(RELEASE_VARIABLE).ok().as_deref())?),
        }
    }

    pub fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    fn from_assets(folder: PathBuf) -> Result<Self> {
        let missing = missing(&folder, &NEEDED);
        if missing.is_empty() {
            return Ok(Self { folder });
        }
        Err(Error::NoProgram(format!(
            "KUBEBUILDER_ASSETS names {}, which lacks {}. Put the missing programs there, or unset \
             the variable to have them built with Go.",
            folder.display(),
            missing.join(", "),
        )))
    }

    fn from_cache(release: Release) -> Result<Self> {
        let kubernetes = required_version(release.go_mod(), KUBERNETES_MODULE)?;
        let etcd = required_version(GO_MOD, ETCD_MODULE)?;
        let go = MODULE.go_version("etcd, kube-apiserver and kubectl", "KUBEBUILDER_ASSETS")?;
        let cached = Cached {
            place: "control-plane",
            key: format!("k8s-{kubernetes}_etcd-{etcd}_{go}"),
            what: format!("the control plane (Kubernetes {kubernetes}, etcd {etcd})"),
            needed: &NEEDED,
        };
        let folder = cached.made_once(|folder| build(release, &kubernetes, folder))?;
        Ok(Self { folder })
    }
}

fn build(release: Release, kubernetes: &str, folder: &Path) -> Result<()> {
    let stamp = format!("-s -w -X k8s.io/component-base/version.gitVersion={kubernetes}");
    let commands = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]
        .map(|command| format!("{KUBERNETES_MODULE}/cmd/{command}"));
    // A trailing slash makes `go build` name each output after its command.
    let mut into_folder = folder.as_os_str().to_owned();
    into_folder.push("/");
    release.module().build(&stamp, into_folder, &commands)?;
    // One etcd for all of them: it knows nothing of Kubernetes.
    MODULE.build("-s -w", folder.join("etcd").into_os_string(), &[ETCD_MODULE.to_owned()])
}

/// Straight to standard error: the test harness hides what `eprintln!` writes until a test fails.
pub fn say(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "[e2e] {line}");
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn a_release_is_chosen_by_its_name() {
        assert_eq!(Release::chosen(None).unwrap(), Release::Newest);
        assert_eq!(Release::chosen(Some("oldest")).unwrap(), Release::Oldest);
        let refusal = Release::chosen(Some("1.2")).unwrap_err().to_string();
        assert!(refusal.contains("may be newest"), "{refusal}");
        let minor = |release: Release| {
            let version = required_version(release.go_mod(), KUBERNETES_MODULE).unwrap();
            version.split('.').nth(1).unwrap().parse::<u32>().unwrap()
        };
        assert_eq!((minor(Release::Oldest), minor(Release::Newest)), (33, 36), "docs/install.md");
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
