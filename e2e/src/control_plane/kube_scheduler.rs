//! The real kube-scheduler, to compare with.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::process::Command;

use super::servers::{flag, free_port, until_ready};
use super::{ControlPlane, Supervised};
use crate::error::{Doing as _, Error, Result, ensure};

const PROGRAM: &str = "kube-scheduler";
const CONFIGURATION: &str = "configuration.json";

/// It says so, at this verbosity, when it knows all there is.
const KNOWS_ALL: &str = "Handlers synced";
const VERBOSITY: &str = "3";
/// The scores of every Node, and for which one volumes are reserved, without the rest of `--v=10`, which is every
/// byte of every request.
const CHOICES_TOO: &str = "schedule_one=10,binder=4";

/// More than a test can ask for: the client's own limits would only slow it down.
const QUERIES_PER_SECOND: u32 = 10_000;

/// A running kube-scheduler. It ends when this is dropped.
#[derive(Debug)]
pub struct KubeScheduler {
    server: Supervised,
    url: Option<String>,
}

impl KubeScheduler {
    /// Where it writes what it thinks.
    pub fn log_path(&self) -> PathBuf {
        self.server.log_path()
    }

    /// Every metric that it serves now, as text, if it serves any.
    pub async fn metrics(&self) -> Result<String> {
        let doing = "reading the metrics of kube-scheduler";
        let url = self.url.as_deref().ok_or_else(|| Error::malformed(doing, "it serves none"))?;
        let uri = url.parse().map_err(|problem| Error::malformed(doing, problem))?;
        let mut config = Config::new(uri);
        // It has made its certificate itself, a moment ago.
        config.accept_invalid_certs = true;
        let client = Client::try_from(config).doing(doing)?;
        let request = http::Request::get("/metrics").body(Vec::new());
        let request = request.map_err(|problem| Error::malformed(doing, problem))?;
        client.request_text(request).await.doing(doing)
    }

    pub fn process_id(&self) -> Option<u32> {
        self.server.process_id()
    }

    pub fn has_ended(&self) -> bool {
        self.server.has_ended()
    }

    pub fn stopped_unexpectedly(&self) -> Error {
        self.server.stopped_unexpectedly()
    }
}

impl ControlPlane {
    /// Starts kube-scheduler with every right, and with its defaults, except that it looks at all Nodes and
    /// does not wait for claims to be bound. Returns when it knows what there is.
    pub async fn start_kube_scheduler(&self) -> Result<KubeScheduler> {
        self.start_kube_scheduler_at(None).await
    }

    /// The same; its metrics can be read by anybody.
    pub async fn start_serving_kube_scheduler(&self) -> Result<KubeScheduler> {
        self.start_kube_scheduler_at(Some(free_port()?)).await
    }

    async fn start_kube_scheduler_at(&self, port: Option<u16>) -> Result<KubeScheduler> {
        let configuration = self.kube_scheduler_configuration(&json!({
            "percentageOfNodesToScore": 100,
            "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "VolumeBindingArgs",
                "bindTimeoutSeconds": 0,
            }}]}],
        }));
        let says = [flag("--v", VERBOSITY), flag("--vmodule", CHOICES_TOO)];
        let server = self.spawn_kube_scheduler(&configuration, port, &says)?;
        until_ready(&server, async |server| server.log().contains(KNOWS_ALL)).await?;
        let url = port.map(|port| format!("https://127.0.0.1:{port}"));
        Ok(KubeScheduler { server, url })
    }

    /// Starts kube-scheduler as it is fastest: with its defaults, without limits on its client, and almost
    /// silent. Returns at once.
    pub fn start_kube_scheduler_at_its_best(&self) -> Result<KubeScheduler> {
        let configuration = self.kube_scheduler_configuration(&json!({}));
        let server = self.spawn_kube_scheduler(&configuration, None, &[flag("--v", "0")])?;
        Ok(KubeScheduler { server, url: None })
    }

    fn spawn_kube_scheduler(
        &self,
        configuration: &str,
        port: Option<u16>,
        says: &[OsString],
    ) -> Result<Supervised> {
        let program = self.binaries.path(PROGRAM);
        if !program.is_file() {
            return Err(Error::NoProgram(format!(
                "The comparison needs {PROGRAM}: put it into the folder that KUBEBUILDER_ASSETS \
                 names, or unset the variable to have it built with Go.",
            )));
        }
        let mut server = Supervised::prepare(PROGRAM, &program, |folder| {
            let own = [
                flag("--config", folder.join(CONFIGURATION)),
                // 0: it does not serve.
                flag("--secure-port", port.unwrap_or_default().to_string()),
                flag("--bind-address", "127.0.0.1"),
                flag("--cert-dir", folder.join("certificates")),
                flag("--authorization-always-allow-paths", "/metrics"),
            ];
            own.into_iter().chain(says.iter().cloned()).collect()
        })?;
        let path = server.folder().join(CONFIGURATION);
        fs::write(&path, configuration).doing(format!("writing {}", path.display()))?;
        server.start()?;
        Ok(server)
    }

    /// Has kube-scheduler write down its whole configuration as it is by default.
    pub async fn write_kube_scheduler_defaults(&self, to: &Path) -> Result<()> {
        let outcome = Command::new(self.binaries.path(PROGRAM))
            .arg(flag("--kubeconfig", self.admin_kubeconfig()))
            .arg(flag("--write-config-to", to))
            .arg(flag("--secure-port", "0"))
            .output()
            .await
            .doing(format!("having {PROGRAM} write {}", to.display()))?;
        ensure(outcome.status.success(), || {
            format!("{PROGRAM} ended with {}", String::from_utf8_lossy(&outcome.stderr))
        })
    }

    /// In JSON, which is YAML too; with these fields besides.
    fn kube_scheduler_configuration(&self, fields: &Value) -> String {
        let mut configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": self.admin_kubeconfig(),
                "qps": QUERIES_PER_SECOND,
                "burst": QUERIES_PER_SECOND,
            },
            "leaderElection": { "leaderElect": false },
        });
        for (name, value) in fields.as_object().into_iter().flatten() {
            configuration[name] = value.clone();
        }
        configuration.to_string()
    }
}
