//! The certificate that HTTPS is served with, and its successors.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::info;

use crate::rotation::{self, FileError, Files};

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("--tls-cert-file and --tls-private-key-file: {0}")]
    File(#[from] FileError),
    #[error("--tls-cert-file and --tls-private-key-file cannot be used: {0}")]
    Pair(String),
    #[error("cannot make a self-signed certificate: {0}; name one with --tls-cert-file")]
    SelfSigned(String),
}

/// What a new connection is shown.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

/// Reads the pair, and follows its files from then on. Without one, a certificate is made that lives
/// as long as the process.
pub fn config(
    files: Option<(PathBuf, PathBuf)>,
    address: SocketAddr,
) -> Result<Arc<ServerConfig>, CertificateError> {
    let Some((certificate, key)) = files else {
        let current = self_signed(address).map_err(CertificateError::SelfSigned)?;
        info!(
            "HTTPS is served with a self-signed certificate that nobody can check; name one with \
             --tls-cert-file and --tls-private-key-file"
        );
        return server_config(Arc::new(Current(RwLock::new(Arc::new(current)))));
    };
    let mut files = Files::new([certificate, key]);
    let pair = read_pair(&files.read_first()?).map_err(CertificateError::Pair)?;
    let current = Arc::new(Current(RwLock::new(Arc::new(pair))));
    let followed = current.clone();
    tokio::spawn(rotation::follow("the certificate of HTTPS", files, move |contents| {
        *followed.0.write() = Arc::new(read_pair(&contents)?);
        Ok(())
    }));
    server_config(current)
}

fn server_config(current: Arc<Current>) -> Result<Arc<ServerConfig>, CertificateError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| CertificateError::Pair(error.to_string()))?
        .with_no_client_auth()
        .with_cert_resolver(current);
    // A session that is resumed shows no certificate, not even one that has been replaced.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_pair([certificate, key]: &[Vec<u8>; 2]) -> Result<CertifiedKey, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate file is not in PEM form: {error}"))?;
    if chain.is_empty() {
        return Err("the certificate file holds no certificate in PEM form".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("the key file holds no private key in PEM form: {error}"))?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider)
        .map_err(|error| format!("certificate and key do not go together: {error}"))
}

fn self_signed(address: SocketAddr) -> Result<CertifiedKey, String> {
    let names = vec!["localhost".to_owned(), address.ip().to_string()];
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    read_pair(&[made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> [Vec<u8>; 2] {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        [made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes()]
    }

    #[test]
    fn a_pair_must_be_whole_and_go_together() {
        let ([certificate, key], [_, other_key]) = (pair(), pair());
        read_pair(&[certificate.clone(), key.clone()]).unwrap();
        let half = certificate[..certificate.len() / 2].to_vec();
        for (certificate, key, why) in [
            (certificate.clone(), other_key, "do not go together"),
            (certificate.clone(), vec![], "no private key"),
            (certificate, b"nonsense".to_vec(), "no private key"),
            (vec![], key.clone(), "no certificate"),
            (half, key, "certificate file"),
        ] {
            let error = read_pair(&[certificate, key]).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_certificate_can_be_made_for_any_address() {
        for address in ["127.0.0.1:1", "[::1]:1", "0.0.0.0:1"] {
            self_signed(address.parse().unwrap()).unwrap();
        }
    }
}
