//! Whom we trust over `https`, and how we prove who we are.

use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::AddressError;

/// PEM texts for mutual TLS: only daemons whose certificate `ca` signed are believed, and they see
/// our certificate.
#[derive(Clone)]
pub struct Identity {
    pub ca: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the key.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// What `https` is checked with; plain `http` never looks at it.
pub(super) fn config(
    is_https: bool,
    identity: Option<&Identity>,
) -> Result<ClientConfig, AddressError> {
    let unusable = |why: String| AddressError::Certificates { why };
    let provider = rustls::crypto::ring::default_provider();
    // Nothing older, which would show the client certificate in the clear.
    let builder = ClientConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| unusable(error.to_string()))?;
    match identity {
        Some(identity) => {
            let (roots, chain, key) = identity.read().map_err(unusable)?;
            let mut config = builder
                .with_root_certificates(roots)
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable(format!("certificate and key: {error}")))?;
            // A session that is resumed shows no certificate, not even one that has expired since.
            config.resumption = Resumption::disabled();
            Ok(config)
        }
        None if is_https => Ok(builder
            .with_native_roots()
            .map_err(|error| unusable(error.to_string()))?
            .with_no_client_auth()),
        // No certificate is ever looked at: do not fail where the system has none.
        None => Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()),
    }
}

type Read = (RootCertStore, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Identity {
    fn read(&self) -> Result<Read, String> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("the CA file", &self.ca)? {
            roots.add(certificate).map_err(|error| format!("the CA file: {error}"))?;
        }
        let chain = certificates("the certificate file", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("the key file: {error}"))?;
        Ok((roots, chain, key))
    }
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{what}: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("{what} holds no certificate in PEM form"));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_nothing_are_named() {
        let nothing = Identity { ca: b"x".into(), certificate: vec![], key: vec![] };
        let error = config(true, Some(&nothing)).unwrap_err().to_string();
        assert!(error.contains("the CA file holds no certificate"), "{error}");
    }

    #[test]
    fn plain_http_needs_no_certificates() {
        config(false, None).unwrap();
    }
}
