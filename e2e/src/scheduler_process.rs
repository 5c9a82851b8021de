//! The scheduler under test, as a process of its own.

use std::env;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use http::Uri;
use http_body_util::BodyExt as _;
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::binaries::say;
use crate::control_plane::install_crypto_provider;
use crate::control_plane::servers::{STARTS_MAX, free_port, is_ready, lost_the_port, until_ready};
use crate::error::{Doing as _, Error, Result};
use crate::supervised::{Signal, Supervised};

const PACKAGE: &str = "corridor-scheduler";

/// In-flight binds must be answered before it ends; each has a shorter time-out of its own.
const EXIT_TIME_MAX: Duration = Duration::from_mins(1);

/// An HTTP server under test that says nothing for so long is stuck.
const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// A running scheduler. Its end, however it comes, leaves nothing behind.
#[derive(Debug)]
pub struct SchedulerProcess {
    process: Supervised,
    url: String,
    /// Its log is not worth showing: it was killed on purpose, one of many.
    is_quiet: bool,
}

impl SchedulerProcess {
    /// Runs [`scheduler_binary`] and waits until it is ready.
    pub async fn start(kubeconfig: &Path, extra: &[&str]) -> Result<Self> {
        Self::start_binary(&scheduler_binary().await?, kubeconfig, extra).await
    }

    /// Runs a binary and waits until it is ready.
    pub async fn start_binary(binary: &Path, kubeconfig: &Path, extra: &[&str]) -> Result<Self> {
        install_crypto_provider();
        for _ in 1..STARTS_MAX {
            match Self::try_start(binary, kubeconfig, extra).await {
                Err(problem) if lost_the_port(&problem) => {}
                outcome => return outcome,
            }
        }
        Self::try_start(binary, kubeconfig, extra).await
    }

    async fn try_start(binary: &Path, kubeconfig: &Path, extra: &[&str]) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut process = Supervised::prepare(PACKAGE, binary, |_| {
            let mut arguments: Vec<OsString> = vec!["run".into(), "--kubeconfig".into()];
            arguments.push(kubeconfig.into());
            // One replica needs no election, and starts sooner without. One that looks on has none.
            let says = |name: &str| extra.iter().any(|flag| flag.starts_with(name));
            if !says("--leader-elect") && !says("--shadow") {
                arguments.push("--leader-elect=false".into());
            }
            arguments.extend(["--http".into(), (&address).into()]);
            arguments.extend(extra.iter().map(OsString::from));
            arguments
        })?;
        process.start()?;
        let url = format!("http://{address}");
        let client = plain_client(&url)?;
        until_ready(&process, async |_| is_ready(&client).await).await?;
        Ok(Self { process, url, is_quiet: false })
    }

    /// Every metric that it serves now, as text.
    pub async fn metrics(&self) -> Result<String> {
        self.get("/metrics").await
    }

    /// What it answers there, as text.
    pub async fn get(&self, path: &str) -> Result<String> {
        let doing = format!("reading {}{path}", self.url);
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|problem| Error::malformed(doing.clone(), problem))?;
        plain_client(&self.url)?.request_text(request).await.doing(doing)
    }

    /// What it answers there, byte by byte.
    pub async fn download(&self, path: &str) -> Result<Vec<u8>> {
        let doing = format!("downloading {}{path}", self.url);
        let request = http::Request::get(path)
            .body(kube::client::Body::empty())
            .map_err(|problem| Error::malformed(doing.clone(), problem))?;
        let answer = plain_client(&self.url)?.send(request).await.doing(doing.clone())?;
        let status = answer.status();
        let body = answer.into_body().collect().await.doing(doing.clone())?.to_bytes().to_vec();
        if status.is_success() {
            return Ok(body);
        }
        Err(Error::malformed(doing, format!("{status}: {}", String::from_utf8_lossy(&body))))
    }

    /// Where it answers HTTP.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it answers HTTPS: the system chose the port, and the log names it.
    pub fn https_address(&self) -> Result<SocketAddr> {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut addresses = lines.filter_map(|line| line["https"].as_str()?.parse().ok());
        addresses.next().ok_or_else(|| Error::malformed("looking for the address of HTTPS", log))
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.process_id()
    }

    /// Everything it has written so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// From now on its end shows nothing of its log.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    pub fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    /// Waits until it ends by itself, and returns its exit code.
    pub async fn exit_code(&mut self) -> Result<i32> {
        self.process.exit_code(EXIT_TIME_MAX).await
    }

    /// Ends it without a chance to do anything more, and returns when it is dead.
    pub async fn kill9(mut self) -> Result<()> {
        self.kill9_in_place().await
    }

    /// The same for one that cannot be given away. Another may take its place.
    pub(crate) async fn kill9_in_place(&mut self) -> Result<()> {
        self.process.signal(Signal::Kill)?;
        self.process.exit_code(EXIT_TIME_MAX).await.map(drop)
    }

    /// The same for one of many, whose log would only hide what matters.
    pub async fn kill9_quietly(mut self) -> Result<()> {
        self.is_quiet = true;
        self.kill9().await
    }

    /// Asks it to end (SIGTERM) and returns its exit code.
    pub async fn terminate(mut self) -> Result<i32> {
        self.process.signal(Signal::Terminate)?;
        self.process.exit_code(EXIT_TIME_MAX).await
    }
}

impl Drop for SchedulerProcess {
    fn drop(&mut self) {
        if self.is_quiet {
            return;
        }
        // The test harness shows this when the test fails, and hides it otherwise.
        eprintln!("--- the log of {PACKAGE} ends with:\n{}\n---", self.process.log_tail());
    }
}

/// `CORRIDOR_SCHEDULER_BIN`, or a release build made once per test process.
pub async fn scheduler_binary() -> Result<PathBuf> {
    // A failure is kept too: every test would only meet it again.
    static BUILT: OnceCell<Result<PathBuf, String>> = OnceCell::const_new();
    if let Some(path) = env::var_os("CORRIDOR_SCHEDULER_BIN").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let built = BUILT.get_or_init(async || build_scheduler().await.map_err(|e| e.to_string()));
    built.await.clone().map_err(|problem| Error::malformed("building the scheduler", problem))
}

/// Cargo itself says where it put the binary.
async fn build_scheduler() -> Result<PathBuf> {
    say("making sure of a release build of corridor-scheduler");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let command = format!("cargo build --release --package {PACKAGE}");
    let mut build = Command::new(cargo);
    // Build scripts that look at what cargo tells this test about itself (ring's does) would take
    // every build from here for another one, and compile half of the world again.
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_the_running_test(name)) {
        build.env_remove(name);
    }
    let output = build
        .args(["build", "--release", "--package", PACKAGE])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .doing(format!("starting `{command}`"))?;
    if !output.status.success() {
        let status = output.status.to_string();
        return Err(Error::Command { command, status, stderr: "see its output above".into() });
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<CargoMessage>(line).ok())
        .find_map(|message| message.executable.filter(|path| path.ends_with(PACKAGE)))
        .ok_or_else(|| Error::malformed(command, "it names no executable"))
}

/// What cargo sets for the crate that it runs, as opposed to what people set for cargo.
fn is_of_the_running_test(name: &OsStr) -> bool {
    const OF_A_CRATE: [&str; 6] = [
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
        "CARGO_TARGET_TMPDIR",
    ];
    let name = name.to_string_lossy();
    OF_A_CRATE.iter().any(|prefix| name.starts_with(prefix))
}

/// The one field that matters of the messages that name an artifact.
#[derive(Deserialize)]
struct CargoMessage {
    executable: Option<PathBuf>,
}

/// Any HTTP server will do for the client of an API server, as long as nothing is retried.
pub(crate) fn plain_client(url: &str) -> Result<Client> {
    let uri: Uri =
        url.parse().map_err(|problem| Error::malformed(format!("parsing {url}"), problem))?;
    let mut config = Config::new(uri);
    config.default_retry = false;
    config.read_timeout = Some(READ_TIME_MAX);
    Client::try_from(config).doing(format!("making a client of {url}"))
}
