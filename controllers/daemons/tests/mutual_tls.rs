//! The client and a daemon that both want to see a certificate. Whatever is wrong with either, nothing
//! is asked or answered, and the error says what is wrong with whose.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::sync::Arc;
use std::time::Duration;

use daemons::DaemonError;
use daemons::client::{Endpoint, Identity, Patience};
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

const HOST: &str = "localhost";

/// When a certificate is good.
#[derive(Clone, Copy)]
enum Validity {
    Now,
    Past,
    Future,
}

/// Signs certificates for both sides.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Certificate and key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        Self::named("the authority")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    fn issue(&self, name: &str, validity: Validity) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        match validity {
            Validity::Now => {}
            Validity::Past => params.not_after = date_time_ymd(2020, 1, 1),
            Validity::Future => params.not_before = date_time_ymd(2999, 1, 1),
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    /// One that trusts whom this authority vouches for.
    fn identity(&self, pair: Pair) -> Identity {
        Identity { ca: self.pem(), certificate: pair.certificate.into(), key: pair.key.into() }
    }

    /// A good one.
    fn ours(&self) -> Identity {
        self.identity(self.issue("corridor-operator", Validity::Now))
    }

    /// What a daemon with this certificate is set up with: it answers only those for whom this
    /// authority vouches.
    fn acceptor(&self, pair: &Pair, versions: &[&'static SupportedProtocolVersion]) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.pem()).unwrap()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_client_cert_verifier(verifier.unwrap())
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A daemon that knows no corridor.
struct Daemon {
    url: String,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    /// The certificates of those it has answered.
    answered: Arc<Mutex<Vec<CertificateDer<'static>>>>,
}

impl Daemon {
    async fn start(authority: &Authority) -> Self {
        Self::start_with(authority, &authority.issue(HOST, Validity::Now)).await
    }

    async fn start_with(authority: &Authority, pair: &Pair) -> Self {
        Self::serve(authority.acceptor(pair, &[&rustls::version::TLS13])).await
    }

    async fn serve(acceptor: TlsAcceptor) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{HOST}:{}", listener.local_addr().unwrap().port());
        let acceptor = Arc::new(Mutex::new(acceptor));
        let answered = Arc::default();
        let (shared, log) = (Arc::clone(&acceptor), Arc::clone(&answered));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = shared.lock().clone();
                tokio::spawn(answer(stream, acceptor, Arc::clone(&log)));
            }
        });
        Self { url, acceptor, answered }
    }

    /// From the next connection on.
    fn rotate(&self, authority: &Authority) {
        let pair = authority.issue(HOST, Validity::Now);
        *self.acceptor.lock() = authority.acceptor(&pair, &[&rustls::version::TLS13]);
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    answered: Arc<Mutex<Vec<CertificateDer<'static>>>>,
) {
    // A client that fails the handshake is not answered.
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    let mut request = vec![0; 4096];
    if stream.read(&mut request).await.is_err() {
        return;
    }
    answered.lock().push(shown);
    let body = r#"{"corridors":[]}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let reply = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn endpoint(url: &str, identity: &Identity) -> Endpoint {
    let patience = Patience { call: Duration::from_secs(5), ..Patience::default() };
    Endpoint::with_identity(url, patience, Some(identity)).unwrap()
}

async fn list(endpoint: &Endpoint) -> Result<usize, DaemonError> {
    endpoint.as_corrd().list("cluster/").await.map(|corridors| corridors.len())
}

/// Nothing was answered, and the error has these words.
async fn assert_refused(daemon: &Daemon, identity: &Identity, words: &str) {
    let error = list(&endpoint(&daemon.url, identity)).await.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    assert!(daemon.answered.lock().is_empty(), "it was answered all the same");
}

#[tokio::test]
async fn both_sides_show_a_certificate_of_the_same_authority() {
    let ours = Authority::new();
    let daemon = Daemon::start(&ours).await;
    assert_eq!(list(&endpoint(&daemon.url, &ours.ours())).await.unwrap(), 0);
    assert_eq!(daemon.answered.lock().len(), 1);
}

#[tokio::test]
async fn a_stranger_is_refused_on_either_side() {
    let ours = Authority::new();
    // The second has the same name and another key, as when an authority was made anew.
    for strangers in [Authority::named("somebody else"), Authority::new()] {
        let daemon = Daemon::start(&ours).await;
        let not_known_to_it = ours.identity(strangers.issue("corridor-operator", Validity::Now));
        let words = "the daemon refuses our certificate: it does not trust who signed it";
        assert_refused(&daemon, &not_known_to_it, words).await;
        let not_known_to_us = strangers.identity(ours.issue("corridor-operator", Validity::Now));
        let words = "the daemon's certificate is not signed by an authority that we trust";
        assert_refused(&daemon, &not_known_to_us, words).await;
    }
}

#[tokio::test]
async fn a_certificate_out_of_its_time_is_refused_on_either_side() {
    let ours = Authority::new();
    for (validity, words) in [
        (Validity::Past, "the daemon's certificate has expired"),
        (Validity::Future, "the daemon's certificate is not valid yet"),
    ] {
        let daemon = Daemon::start_with(&ours, &ours.issue(HOST, validity)).await;
        assert_refused(&daemon, &ours.ours(), words).await;
    }
    let daemon = Daemon::start(&ours).await;
    for validity in [Validity::Past, Validity::Future] {
        let identity = ours.identity(ours.issue("corridor-operator", validity));
        let words = "the daemon refuses our certificate: it has expired or is not valid yet";
        assert_refused(&daemon, &identity, words).await;
    }
}

#[tokio::test]
async fn a_daemon_on_another_host_is_refused() {
    let ours = Authority::new();
    let pair = ours.issue("corrd.elsewhere.example", Validity::Now);
    let daemon = Daemon::start_with(&ours, &pair).await;
    let words = "the daemon's certificate is for another host";
    assert_refused(&daemon, &ours.ours(), words).await;
    assert_refused(&daemon, &ours.ours(), "corrd.elsewhere.example").await;
}

/// Without an identity the system's authorities count, and none of them knows this daemon; so here a
/// client of another make shows what a daemon does to those who show nothing.
#[tokio::test]
async fn whoever_shows_no_certificate_is_refused() {
    let ours = Authority::new();
    let daemon = Daemon::start(&ours).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&ours.pem()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = daemon.url.trim_start_matches("https://");
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(HOST.try_into().unwrap(), stream).await.unwrap();
    let error = stream.read(&mut [0; 16]).await.unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");
    assert!(daemon.answered.lock().is_empty());
}

#[tokio::test]
async fn nothing_older_than_tls_1_3_is_spoken() {
    let ours = Authority::new();
    let pair = ours.issue(HOST, Validity::Now);
    let daemon = Daemon::serve(ours.acceptor(&pair, &[&rustls::version::TLS12])).await;
    assert_refused(&daemon, &ours.ours(), "TLS 1.3").await;
}

#[tokio::test]
async fn a_new_identity_is_shown_from_the_next_connection_on() {
    let (first, second) = (Authority::new(), Authority::new());
    let daemon = Daemon::start(&first).await;
    let endpoint = endpoint(&daemon.url, &first.ours());
    list(&endpoint).await.unwrap();

    // Half of a new pair, or no authority: the old identity stays.
    let (pair, other) = (first.ours(), first.ours());
    let halves = Identity { key: other.key, ..pair.clone() };
    assert!(
        endpoint.set_identity(&halves).unwrap_err().to_string().contains("certificate and key")
    );
    let nobody = Identity { ca: b"nonsense".to_vec(), ..pair.clone() };
    assert!(endpoint.set_identity(&nobody).unwrap_err().to_string().contains("CA file"));
    list(&endpoint).await.unwrap();

    // The same authority, a new pair. Clones of the endpoint go along.
    let clone = endpoint.clone();
    endpoint.set_identity(&pair).unwrap();
    list(&clone).await.unwrap();
    let answered = daemon.answered.lock().clone();
    assert_eq!(answered[0], answered[1], "the old identity was to stay");
    assert_eq!(answered[2], CertificateDer::from_pem_slice(&pair.certificate).unwrap());

    // Another authority on both sides.
    daemon.rotate(&second);
    let error = list(&endpoint).await.unwrap_err().to_string();
    assert!(error.contains("not signed by an authority that we trust"), "{error}");
    endpoint.set_identity(&second.ours()).unwrap();
    list(&endpoint).await.unwrap();
}

#[test]
fn certificates_without_https_are_a_mistake() {
    let identity = Authority::new().ours();
    let refused =
        Endpoint::with_identity("http://localhost:1", Patience::default(), Some(&identity));
    assert!(refused.unwrap_err().to_string().contains("https://"));
}
