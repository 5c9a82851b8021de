//! A client of the scheduler's HTTPS that shows what came over the wire: code, headers, certificate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::{Doing as _, Error, Result};

const HOST: &str = "localhost";
/// A call that takes longer is stuck.
const CALL_TIME_MAX: Duration = Duration::from_secs(20);

/// Signs certificates for the scheduler.
pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Certificate and key in PEM, and the certificate as it is shown.
pub struct Pair {
    pub certificate: String,
    pub key: String,
    pub shown: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
    /// What the server showed in the handshake.
    pub certificate: Vec<u8>,
}

/// Each call is a connection of its own, so that each sees the certificate of its time.
#[derive(Clone)]
pub struct HttpsClient {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl TestAuthority {
    pub fn new() -> Result<Self> {
        let failed = |problem| Error::malformed("making a certificate authority", problem);
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        Ok(Self { issuer })
    }

    /// A new pair for the host that [`HttpsClient`] asks for.
    pub fn issue(&self) -> Result<Pair> {
        let failed = |problem| Error::malformed("making a certificate", problem);
        let key = KeyPair::generate().map_err(failed)?;
        let params = CertificateParams::new(vec![HOST.to_owned()]).map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            shown: certificate.der().to_vec(),
        })
    }

    /// Its own certificate, for clients to trust.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A client that trusts this authority and no other.
    pub fn client(&self, address: SocketAddr) -> Result<HttpsClient> {
        let failed = |problem| Error::malformed("making an HTTPS client", problem);
        let roots = self.roots().map_err(failed)?;
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(HttpsClient { address, config: Arc::new(config) })
    }

    /// A server that accepts only clients with a certificate of this authority.
    pub fn mutual_server(&self) -> Result<ServerConfig> {
        let doing = "making a server with mutual TLS";
        let failed = |problem: &dyn std::fmt::Display| Error::malformed(doing, problem);
        let roots = Arc::new(self.roots().map_err(|problem| failed(&problem))?);
        let verifier = WebPkiClientVerifier::builder(roots).build();
        let pair = self.issue()?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes());
        ServerConfig::builder_with_protocol_versions(&[&rustls::version::TLS13])
            .with_client_cert_verifier(verifier.map_err(|problem| failed(&problem))?)
            .with_single_cert(
                vec![CertificateDer::from(pair.shown)],
                key.map_err(|problem| failed(&problem))?,
            )
            .map_err(|problem| failed(&problem))
    }

    fn roots(&self) -> Result<RootCertStore, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.issuer.der().to_vec()))?;
        Ok(roots)
    }
}

impl HttpsClient {
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        authorization: Option<&str>,
        body: &str,
    ) -> Result<Reply> {
        let doing = format!("{method} {path} over HTTPS");
        let exchange = self.exchange(method, path, authorization, body, &doing);
        match timeout(CALL_TIME_MAX, exchange).await {
            Ok(reply) => reply,
            Err(_) => Err(Error::malformed(doing, "no answer in time")),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        authorization: Option<&str>,
        body: &str,
        doing: &str,
    ) -> Result<Reply> {
        let failed = |problem: &dyn std::fmt::Display| Error::malformed(doing, problem);
        let stream = TcpStream::connect(self.address).await.doing(doing)?;
        let host = ServerName::try_from(HOST).map_err(|problem| failed(&problem))?;
        let stream = TlsConnector::from(self.config.clone()).connect(host, stream).await;
        let stream = stream.doing(doing)?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.map(|it| it.to_vec()).unwrap_or_default();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|problem| failed(&problem))?;
        // Ends when the sender is dropped.
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, HOST);
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        let request = request
            .body(Full::new(Bytes::from(body.to_owned())))
            .map_err(|problem| failed(&problem))?;
        let reply = sender.send_request(request).await.map_err(|problem| failed(&problem))?;
        let (head, body) = reply.into_parts();
        let body = body.collect().await.map_err(|problem| failed(&problem))?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Reply { status: head.status, headers: head.headers, body, certificate })
    }
}

impl std::fmt::Debug for TestAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestAuthority").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HttpsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpsClient").field("address", &self.address).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}
