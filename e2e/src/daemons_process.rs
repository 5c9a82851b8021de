//! The simulated daemons (corrd, memqosd, attestd) as a process of their own.
//!
//! They are talked to in plain JSON, by the names of their contract: a slip in the product's own
//! client must not hide itself by being made on both sides.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::control_plane::install_crypto_provider;
use crate::control_plane::servers::{STARTS_MAX, free_port, lost_the_port, until_ready};
use crate::error::{Doing as _, Error, Result};
use crate::scheduler_process::plain_client;
use crate::supervised::{Signal, Supervised};

const NAME: &str = "daemons";

/// SIGKILL needs no time of the process itself.
const EXIT_TIME_MAX: Duration = Duration::from_secs(20);

/// Running daemons. Their end, however it comes, leaves nothing behind.
pub struct DaemonsProcess {
    process: Supervised,
    /// Never started: a folder that outlives a killed process and goes with the test process.
    state: Supervised,
    binary: PathBuf,
    extra: Vec<String>,
    port: u16,
    client: Client,
}

impl DaemonsProcess {
    /// Starts them with an empty state and returns when they answer.
    pub async fn start(binary: &Path, extra: &[String]) -> Result<Self> {
        install_crypto_provider();
        for _ in 1..STARTS_MAX {
            match Self::try_start(binary, extra).await {
                Err(problem) if lost_the_port(&problem) => {}
                outcome => return outcome,
            }
        }
        Self::try_start(binary, extra).await
    }

    async fn try_start(binary: &Path, extra: &[String]) -> Result<Self> {
        let state = Supervised::prepare("daemons-state", Path::new("/bin/true"), |_| vec![])?;
        let port = free_port()?;
        let client = plain_client(&format!("http://127.0.0.1:{port}"))?;
        let process = spawn(binary, state.folder(), port, extra)?;
        let this =
            Self { process, state, binary: binary.into(), extra: extra.to_vec(), port, client };
        this.until_answering().await?;
        Ok(this)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The configuration with which a scheduler believes their tickets. Written at their start.
    pub fn trusted_keys(&self) -> PathBuf {
        self.state.folder().join("trusted-keys.yaml")
    }

    /// Kills them (SIGKILL); their state stays on disk.
    pub async fn kill9(&mut self) -> Result<()> {
        self.process.signal(Signal::Kill)?;
        self.process.exit_code(EXIT_TIME_MAX).await.map(drop)
    }

    /// Starts killed ones again, with the same state and on the same port.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process = spawn(&self.binary, self.state.folder(), self.port, &self.extra)?;
        self.until_answering().await
    }

    async fn until_answering(&self) -> Result<()> {
        until_ready(&self.process, async |_| self.devices().await.is_ok()).await
    }

    /// What corrd has allocated to owners that begin so.
    pub async fn corridors(&self, owner_prefix: &str) -> Result<Vec<Value>> {
        self.list("/v1/corridors", "corridors", owner_prefix).await
    }

    /// What memqosd has allocated to owners that begin so.
    pub async fn bundles(&self, owner_prefix: &str) -> Result<Vec<Value>> {
        self.list("/v1/ffm", "bundles", owner_prefix).await
    }

    async fn list(&self, path: &str, member: &str, owner_prefix: &str) -> Result<Vec<Value>> {
        // A prefix is made of UIDs and '/', which need no escape in a query.
        let target = format!("{path}?owner_prefix={owner_prefix}");
        let answer = self.call(Method::GET, &target, &Value::Null, &[]).await?;
        match answer[member].as_array() {
            Some(listed) => Ok(listed.clone()),
            None => Err(Error::malformed(format!("listing {target}"), answer)),
        }
    }

    pub async fn devices(&self) -> Result<Value> {
        self.call(Method::GET, "/v1/devices", &Value::Null, &[]).await
    }

    /// Allocates a path as another client would: for another owner than this cluster's.
    pub async fn allocate_for(&self, owner: &str, key: &str) -> Result<Value> {
        let wish = json!({ "owner": owner, "lanes": 1, "lambda_nm": [1310], "min_gbps": 1 });
        self.call(Method::POST, "/v1/corridors", &wish, &[("Idempotency-Key", key)]).await
    }

    /// What attestd signs for a device, as its controller would ask for it.
    pub async fn ticket_for(&self, device: &str, subject: &str, tenant: &str) -> Result<String> {
        let nonce = format!("nonce-of-a-test-{subject}");
        let wish = json!({
            "device_id": device, "nonce": nonce, "subject": subject, "tenant": tenant,
        });
        let answer = self.call(Method::POST, "/v1/attest/verify", &wish, &[]).await?;
        let ticket = answer["ticket"].as_str().map(str::to_owned);
        ticket.ok_or_else(|| Error::malformed("asking for a ticket", answer))
    }

    /// Forces readings of a path; `{}` gives it back to physics.
    pub async fn force_corridor(&self, id: &str, readings: Value) -> Result<()> {
        self.admin(Method::PUT, &format!("/admin/corridors/{id}"), readings).await
    }

    /// Forces readings of a bundle; `{}` gives it back to physics.
    pub async fn force_bundle(&self, handle: &str, readings: Value) -> Result<()> {
        self.admin(Method::PUT, &format!("/admin/ffm/{handle}"), readings).await
    }

    /// Changes what a device reports; what is absent stays.
    pub async fn change_device(&self, id: &str, change: Value) -> Result<()> {
        self.admin(Method::PUT, &format!("/admin/devices/{id}"), change).await
    }

    /// The next `count` calls of a route go wrong.
    pub async fn order_fault(&self, kind: &str, route: &str, count: u32) -> Result<()> {
        let order = json!({ "kind": kind, "route": route, "count": count });
        self.admin(Method::POST, "/admin/faults", order).await
    }

    /// The next `count` calls of a route are carried out so much later.
    pub async fn order_delay(&self, route: &str, count: u32, delay: Duration) -> Result<()> {
        let order = json!({
            "kind": "slow",
            "route": route,
            "count": count,
            "delay_ms": u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        });
        self.admin(Method::POST, "/admin/faults", order).await
    }

    pub async fn clear_faults(&self) -> Result<()> {
        self.admin(Method::DELETE, "/admin/faults", Value::Null).await
    }

    /// A restart that loses all but durable bundles; ids begin again.
    pub async fn lose_state(&self) -> Result<()> {
        self.admin(Method::POST, "/admin/restart", json!({ "keep_state": false })).await
    }

    async fn admin(&self, method: Method, target: &str, body: Value) -> Result<()> {
        self.call(method, target, &body, &[]).await.map(drop)
    }

    async fn call(
        &self,
        method: Method,
        target: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Result<Value> {
        let doing = format!("{method} {target} of the daemons with {body}");
        let mut request = Request::builder().method(method).uri(target);
        let mut bytes = Vec::new();
        if !body.is_null() {
            request = request.header("Content-Type", "application/json");
            bytes = body.to_string().into_bytes();
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request =
            request.body(bytes).map_err(|problem| Error::malformed(doing.clone(), problem))?;
        let answer = self.client.request_text(request).await.doing(doing.clone())?;
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&answer).doing(doing)
    }
}

impl fmt::Debug for DaemonsProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A client has nothing to show.
        f.debug_struct("DaemonsProcess")
            .field("process", &self.process)
            .field("state", &self.state)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Drop for DaemonsProcess {
    fn drop(&mut self) {
        // The test harness shows this when the test fails, and hides it otherwise.
        eprintln!("--- the log of the daemons ends with:\n{}\n---", self.process.log_tail());
    }
}

fn spawn(binary: &Path, state: &Path, port: u16, extra: &[String]) -> Result<Supervised> {
    let mut process = Supervised::prepare(NAME, binary, |_| {
        let mut arguments: Vec<OsString> = vec!["daemons".into(), "--state-dir".into()];
        arguments.push(state.into());
        arguments.extend(["--http".into(), format!("127.0.0.1:{port}").into()]);
        arguments.push("--enable-admin".into());
        arguments.extend(extra.iter().map(OsString::from));
        arguments
    })?;
    process.start()?;
    Ok(process)
}
