//! The cheapest client there is: bare hyper with a token, HTTP/1.1, nothing repeated.

use std::fs;
use std::path::Path;

use e2e::control_plane::{config_from, install_crypto_provider};
use e2e::error::Doing as _;
use e2e::{Error, Result};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use serde_json::Value;

/// A connection pool to the API server, and the credentials for it.
#[derive(Debug)]
pub struct Wire {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: String,
    authorization: HeaderValue,
}

impl Wire {
    /// As the user of the token in the kubeconfig.
    pub async fn new(kubeconfig: &Path) -> Result<Self> {
        install_crypto_provider();
        let config = config_from(kubeconfig).await?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        // Or one request in a hundred waits 40 ms for an acknowledgement that is put off.
        http.set_nodelay(true);
        let connector =
            config.rustls_https_connector_with_connector(http).doing("making a connector")?;
        let token = token_of(kubeconfig)?;
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|problem| Error::malformed("reading a token", problem))?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            server,
            authorization,
        })
    }

    /// Reads an answer in JSON.
    pub async fn get(&self, path: &str) -> Result<Bytes> {
        let answer = self.send(Method::GET, path, "application/json", Bytes::new()).await?;
        let doing = format!("reading {path}");
        let body = answer.into_body().collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|problem| Error::malformed(doing, problem))
    }

    /// Returns how many bytes came, and keeps none. Each piece is shown once.
    pub async fn read_and_drop(
        &self,
        path: &str,
        accept: &'static str,
        mut look: impl FnMut(&[u8]),
    ) -> Result<u64> {
        let mut answer = self.send(Method::GET, path, accept, Bytes::new()).await?;
        let mut bytes = 0;
        while let Some(frame) = answer.body_mut().frame().await {
            let frame = frame.map_err(|problem| Error::malformed(path, problem))?;
            if let Some(data) = frame.data_ref() {
                bytes += data.len() as u64;
                look(data);
            }
        }
        Ok(bytes)
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<()> {
        let body = Bytes::from(body.to_string());
        let answer = self.send(Method::POST, path, "application/json", body).await?;
        // The connection is free for the next one when the answer was read.
        let read = answer.into_body().collect().await;
        read.map(drop).map_err(|problem| Error::malformed(path, problem))
    }

    pub async fn merge_patch(&self, path: &str, body: &Value) -> Result<()> {
        let body = Bytes::from(body.to_string());
        let written = "application/merge-patch+json";
        let answer =
            self.send_written(Method::PATCH, path, "application/json", written, body).await?;
        let read = answer.into_body().collect().await;
        read.map(drop).map_err(|problem| Error::malformed(path, problem))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        self.send_written(method, path, accept, "application/json", body).await
    }

    async fn send_written(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        written: &'static str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        let doing = || format!("{method} {path}");
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{}{path}", self.server))
            .header(AUTHORIZATION, self.authorization.clone())
            .header(ACCEPT, accept)
            .header(CONTENT_TYPE, written)
            .body(Full::new(body))
            .map_err(|problem| Error::malformed(doing(), problem))?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|problem| Error::malformed(doing(), problem))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let said = answer.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
        Err(Error::malformed(doing(), format!("{status}: {said}")))
    }
}

fn token_of(kubeconfig: &Path) -> Result<String> {
    let doing = || format!("reading {}", kubeconfig.display());
    let text = fs::read_to_string(kubeconfig).doing(doing())?;
    let parsed: Value =
        serde_saphyr::from_str(&text).map_err(|problem| Error::malformed(doing(), problem))?;
    let token = parsed["users"][0]["user"]["token"].as_str();
    token.map(str::to_owned).ok_or_else(|| Error::malformed(doing(), "it has no token"))
}
