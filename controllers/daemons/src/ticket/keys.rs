//! The keys that tickets are signed and verified with.

use std::fmt;

use ml_dsa::MlDsa65;
use p256::ecdsa::signature::{Signer, Verifier};
use p256::pkcs8::{DecodePublicKey, EncodePublicKey, LineEnding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// How a ticket is signed. Names as registered for JOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
pub enum Algorithm {
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "ML-DSA-65")]
    MlDsa65,
}

impl Algorithm {
    /// Whether the signature withstands a quantum computer.
    pub fn is_post_quantum(self) -> bool {
        self == Self::MlDsa65
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Es256 => "ES256",
            Self::MlDsa65 => "ML-DSA-65",
        })
    }
}

/// A key to be trusted, as it stands in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustedKey {
    /// The key's name in tickets.
    pub kid: String,
    pub alg: Algorithm,
    /// In PEM, beginning with `-----BEGIN PUBLIC KEY-----`.
    pub public_key_pem: String,
}

/// Trusted keys, read and checked.
#[derive(Clone, Default)]
pub struct TrustedKeys {
    keys: Vec<VerifyingKey>,
}

#[derive(Clone)]
pub(super) struct VerifyingKey {
    kid: String,
    key: PublicKey,
}

#[derive(Clone)]
enum PublicKey {
    Es256(Box<p256::ecdsa::VerifyingKey>),
    MlDsa65(Box<ml_dsa::VerifyingKey<MlDsa65>>),
}

impl TrustedKeys {
    pub fn read(keys: &[TrustedKey]) -> Result<Self, KeyError> {
        let mut read = Self::default();
        for TrustedKey { kid, alg, public_key_pem } in keys {
            if read.find(kid).is_some() {
                return Err(KeyError::Twice(kid.clone()));
            }
            let unreadable =
                |why: String| KeyError::Unreadable { kid: kid.clone(), alg: *alg, why };
            let key = match alg {
                Algorithm::Es256 => p256::ecdsa::VerifyingKey::from_public_key_pem(public_key_pem)
                    .map(|key| PublicKey::Es256(Box::new(key)))
                    .map_err(|error| unreadable(error.to_string()))?,
                Algorithm::MlDsa65 => ml_dsa::VerifyingKey::from_public_key_pem(public_key_pem)
                    .map(|key| PublicKey::MlDsa65(Box::new(key)))
                    .map_err(|error| unreadable(error.to_string()))?,
            };
            read.keys.push(VerifyingKey { kid: kid.clone(), key });
        }
        Ok(read)
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn find(&self, kid: &str) -> Option<&VerifyingKey> {
        self.keys.iter().find(|key| key.kid == kid)
    }
}

impl fmt::Debug for TrustedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys.iter().map(|key| &key.kid)).finish()
    }
}

impl VerifyingKey {
    pub(super) fn algorithm(&self) -> Algorithm {
        match self.key {
            PublicKey::Es256(_) => Algorithm::Es256,
            PublicKey::MlDsa65(_) => Algorithm::MlDsa65,
        }
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.key {
            PublicKey::Es256(key) => p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            PublicKey::MlDsa65(key) => ml_dsa::Signature::try_from(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
        }
    }
}

/// A private key of a simulated attestd.
pub struct SigningKey {
    kid: String,
    key: PrivateKey,
}

enum PrivateKey {
    Es256(Box<p256::ecdsa::SigningKey>),
    MlDsa65(Box<ml_dsa::SigningKey<MlDsa65>>),
}

impl SigningKey {
    /// Derives a key from a seed, so that a simulation repeats itself. Anyone who knows the seed
    /// has the key: never for production.
    pub fn derive(algorithm: Algorithm, seed: u64) -> Result<Self, KeyError> {
        let kid = format!("simulated-{}-{seed:x}", algorithm.to_string().to_lowercase());
        let secret: [u8; 32] = Sha256::digest(kid.as_bytes()).into();
        let key = match algorithm {
            Algorithm::Es256 => p256::ecdsa::SigningKey::from_slice(&secret)
                .map(|key| PrivateKey::Es256(Box::new(key)))
                .map_err(|error| KeyError::Derive { why: error.to_string() })?,
            Algorithm::MlDsa65 => {
                PrivateKey::MlDsa65(Box::new(ml_dsa::SigningKey::from_seed(&secret.into())))
            }
        };
        Ok(Self { kid, key })
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub fn algorithm(&self) -> Algorithm {
        match self.key {
            PrivateKey::Es256(_) => Algorithm::Es256,
            PrivateKey::MlDsa65(_) => Algorithm::MlDsa65,
        }
    }

    /// The public half, for a configuration.
    pub fn trusted(&self) -> Result<TrustedKey, KeyError> {
        let pem = match &self.key {
            PrivateKey::Es256(key) => key.verifying_key().to_public_key_pem(LineEnding::LF),
            PrivateKey::MlDsa65(key) => {
                use ml_dsa::signature::Keypair;
                key.verifying_key().to_public_key_pem(LineEnding::LF)
            }
        };
        let public_key_pem = pem.map_err(|error| KeyError::Derive { why: error.to_string() })?;
        Ok(TrustedKey { kid: self.kid.clone(), alg: self.algorithm(), public_key_pem })
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.key {
            PrivateKey::Es256(key) => {
                let signature: p256::ecdsa::Signature = key.sign(message);
                signature.to_bytes().to_vec()
            }
            PrivateKey::MlDsa65(key) => key.sign(message).encode().to_vec(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("trusted key {kid:?}: publicKeyPem is not a {alg} public key: {why}")]
    Unreadable { kid: String, alg: Algorithm, why: String },
    #[error("trusted key {0:?} is listed twice")]
    Twice(String),
    #[error("a key cannot be derived: {why}")]
    Derive { why: String },
}
