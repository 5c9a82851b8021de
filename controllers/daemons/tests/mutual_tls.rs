//! The client and a daemon that both want to see a certificate.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::sync::Arc;
use std::time::Duration;

use daemons::DaemonError;
use daemons::client::{Endpoint, Identity, Patience};
use daemons::corrd::Corrd;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

/// Signs certificates for both sides.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    /// Certificate and key, in PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    fn identity(&self, trusts: &Self) -> Identity {
        let (certificate, key) = self.issue("corridor-operator");
        Identity { ca: trusts.pem(), certificate: certificate.into(), key: key.into() }
    }
}

/// A daemon that knows no corridor, for whoever `authority` vouches for.
async fn serve(authority: &Authority) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority.pem()).unwrap()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let (certificate, key) = authority.issue("localhost");
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that fails the handshake is not answered.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = vec![0; 4096];
                let _ = stream.read(&mut request).await;
                let body = r#"{"corridors":[]}"#;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let reply = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(reply.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    format!("https://localhost:{port}")
}

async fn list(url: &str, identity: &Identity) -> Result<usize, DaemonError> {
    let patience = Patience { call: Duration::from_secs(3), ..Patience::default() };
    let endpoint = Endpoint::with_identity(url, patience, Some(identity)).unwrap();
    endpoint.list("cluster/").await.map(|corridors| corridors.len())
}

#[tokio::test]
async fn both_sides_show_a_certificate_of_the_same_authority() {
    let ours = Authority::new();
    let url = serve(&ours).await;
    assert_eq!(list(&url, &ours.identity(&ours)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_stranger_is_refused_on_either_side() {
    let (ours, strangers) = (Authority::new(), Authority::new());
    let url = serve(&ours).await;
    let not_known_to_it = list(&url, &strangers.identity(&ours)).await.unwrap_err();
    assert!(matches!(not_known_to_it, DaemonError::Connect { .. } | DaemonError::Exchange { .. }));
    let not_known_to_us = list(&url, &ours.identity(&strangers)).await.unwrap_err();
    assert!(not_known_to_us.to_string().contains("certificate"), "{not_known_to_us}");
}

#[test]
fn certificates_without_https_are_a_mistake() {
    let ours = Authority::new();
    let identity = ours.identity(&ours);
    let refused =
        Endpoint::with_identity("http://localhost:1", Patience::default(), Some(&identity));
    assert!(refused.unwrap_err().to_string().contains("https://"));
}
