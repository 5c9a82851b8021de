//! A validating webhook on loopback that allows everything, as slowly as a test wants.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Response;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::error::{Doing as _, Error, Result};

const HOST: &str = "127.0.0.1";

/// Runs until it is dropped. What the API server was told about it stays: see [`Webhook::remove`].
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    authority_pem: String,
    asked: Arc<AtomicUsize>,
    delay_ms: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl Webhook {
    /// Answers each review after `delay`.
    pub async fn start(delay: Duration) -> Result<Self> {
        let doing = "starting a webhook";
        let (server, authority_pem) = certificates()?;
        let acceptor = TlsAcceptor::from(Arc::new(server));
        let listener = TcpListener::bind((HOST, 0)).await.doing(doing)?;
        let address = listener.local_addr().doing(doing)?;
        let asked = Arc::new(AtomicUsize::new(0));
        let delay_ms = Arc::new(AtomicU64::new(0));
        let (counter, waits) = (asked.clone(), delay_ms.clone());
        let serving = tokio::spawn(async move {
            // They end with the webhook.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counter, waits) = (acceptor.clone(), counter.clone(), waits.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request: http::Request<Incoming>| {
                        counter.fetch_add(1, Ordering::Relaxed);
                        let delay = Duration::from_millis(waits.load(Ordering::Relaxed));
                        async move {
                            let body = request.into_body().collect().await;
                            sleep(delay).await;
                            Ok::<_, Infallible>(allow(body.ok().map(Collected::to_bytes)))
                        }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    // A client that goes away ends only its own connection.
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let webhook = Self { address, authority_pem, asked, delay_ms, serving };
        webhook.answer_after(delay);
        Ok(webhook)
    }

    /// From now on.
    pub fn answer_after(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay_ms.store(millis, Ordering::Relaxed);
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// The port is closed: the API server is refused the connection.
    pub fn die(&self) {
        self.serving.abort();
    }

    /// Has the API server ask it about every write to `resource` (`pods/binding`) in the namespace. A webhook that does
    /// not answer refuses.
    pub async fn install(
        &self,
        client: &Client,
        name: &str,
        namespace: &str,
        resource: &str,
    ) -> Result<()> {
        let doing = format!("installing the webhook {name}");
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{name}.test.corridoros.io"),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
                "clientConfig": {
                    "url": format!("https://{}/", self.address),
                    "caBundle": STANDARD.encode(&self.authority_pem),
                },
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": [resource],
                }],
            }],
        });
        let configuration: ValidatingWebhookConfiguration =
            serde_json::from_value(configuration).map_err(|it| Error::malformed(&doing, it))?;
        let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        webhooks.create(&PostParams::default(), &configuration).await.doing(doing).map(drop)
    }

    pub async fn remove(client: &Client, name: &str) -> Result<()> {
        let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let removed = webhooks.delete(name, &DeleteParams::default()).await;
        removed.doing(format!("removing the webhook {name}")).map(drop)
    }

    /// All that were ever installed.
    pub async fn remove_all(client: &Client) -> Result<()> {
        let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let (now, all) = (DeleteParams::default(), ListParams::default());
        let removed = webhooks.delete_collection(&now, &all).await;
        removed.doing("removing the webhooks of earlier tests").map(drop)
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The review, answered.
fn allow(review: Option<Bytes>) -> Response<Full<Bytes>> {
    let review: Value = serde_json::from_slice(&review.unwrap_or_default()).unwrap_or_default();
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    Response::new(Full::new(answer.to_string().into()))
}

/// For a server at [`HOST`], and the certificate of the authority that vouches for it.
fn certificates() -> Result<(ServerConfig, String)> {
    let failed = |problem: &dyn std::fmt::Display| {
        Error::malformed("making a certificate for a webhook", problem)
    };
    let mut params = CertificateParams::new(Vec::new()).map_err(|it| failed(&it))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().map_err(|it| failed(&it))?;
    let issuer = CertifiedIssuer::self_signed(params, key).map_err(|it| failed(&it))?;
    let key = KeyPair::generate().map_err(|it| failed(&it))?;
    let params = CertificateParams::new(vec![HOST.to_owned()]).map_err(|it| failed(&it))?;
    let certificate = params.signed_by(&key, &issuer).map_err(|it| failed(&it))?;
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes());
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key.map_err(|it| failed(&it))?)
        .map_err(|it| failed(&it))?;
    Ok((server, issuer.pem()))
}
