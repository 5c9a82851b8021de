//! Kills a server of the control plane and starts it again where it was.

use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use kube::{Client, Config};
use serde_json::json;

use super::{ControlPlane, servers};
use crate::error::{Doing as _, Error, Result};
use crate::supervised::{Signal, Supervised};

const END_TIME_MAX: Duration = Duration::from_secs(30);

/// What a server needs to come back as it was.
#[derive(Debug)]
pub(super) struct Restarts {
    port: u16,
    etcd_url: String,
    /// Of the servers at the start: what they left goes on to be used.
    files: Option<[PathBuf; 2]>,
    /// The dead: their folders go with them.
    retired: Vec<Supervised>,
}

impl Restarts {
    pub fn new(port: u16, etcd_url: String) -> Self {
        Self { port, etcd_url, files: None, retired: vec![] }
    }
}

impl ControlPlane {
    /// Where the API server and etcd keep their files.
    fn files(&mut self) -> [PathBuf; 2] {
        let now = [self.api_server.folder().to_owned(), self.etcd.folder().to_owned()];
        self.restarts.files.get_or_insert(now).clone()
    }

    /// SIGKILL, and a new one at the same address, with the same certificates and data.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.restart_api_server_after(Duration::ZERO).await
    }

    /// The same, away for this long.
    pub async fn restart_api_server_after(&mut self, away: Duration) -> Result<()> {
        let [files, _] = self.files();
        kill(&mut self.api_server).await?;
        tokio::time::sleep(away).await;
        let Restarts { port, etcd_url, .. } = &self.restarts;
        let again =
            servers::api_server_again(&self.binaries, &files, *port, etcd_url, &self.admin).await?;
        self.restarts.retired.push(std::mem::replace(&mut self.api_server, again));
        Ok(())
    }

    /// etcd forgets what was before `revision`, as it does every few minutes by itself.
    pub async fn compact_etcd(&self, revision: &str) -> Result<()> {
        let doing = "compacting etcd";
        let url = self.restarts.etcd_url.parse();
        let url = url.map_err(|problem| Error::malformed(doing, problem))?;
        let etcd = Client::try_from(Config::new(url)).doing(doing)?;
        let body = json!({ "revision": revision, "physical": true }).to_string();
        let request = Request::post("/v3/kv/compaction").body(body.into_bytes());
        let request = request.map_err(|problem| Error::malformed(doing, problem))?;
        etcd.request_text(request).await.map(drop).doing(doing)
    }

    pub async fn restart_etcd(&mut self) -> Result<()> {
        let [_, files] = self.files();
        kill(&mut self.etcd).await?;
        let again = servers::etcd_again(&self.binaries, &files, &self.restarts.etcd_url).await?;
        self.restarts.retired.push(std::mem::replace(&mut self.etcd, again));
        Ok(())
    }
}

async fn kill(server: &mut Supervised) -> Result<()> {
    server.signal(Signal::Kill)?;
    server.exit_code(END_TIME_MAX).await.map(drop)
}
