//! Who an allocation belongs to, and which wish it answers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Header that names the caller's owner tag on calls that change one allocation.
pub const OWNER_HEADER: &str = "corridor-owner";
/// Header that makes a POST repeatable.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// A Kubernetes UID has 36 characters; names of test clusters are allowed to be longer.
const PART_LENGTH_MAX: usize = 128;
/// 64 bits of the hash: two wishes of one object collide once in 10^9 changes of that object.
const HASH_HEX_LENGTH: usize = 16;

/// Owner tag of an allocation: the cluster and the custom resource it was made for.
///
/// On the wire `<UID of namespace kube-system>/<UID of the custom resource>`, so that two clusters
/// on one daemon never sweep each other's allocations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Owner {
    cluster_uid: String,
    object_uid: String,
}

impl Owner {
    pub fn new(
        cluster_uid: impl Into<String>,
        object_uid: impl Into<String>,
    ) -> Result<Self, MalformedIdentity> {
        let (cluster_uid, object_uid) = (cluster_uid.into(), object_uid.into());
        if !is_part(&cluster_uid) || !is_part(&object_uid) {
            return Err(MalformedIdentity::Owner(format!("{cluster_uid}/{object_uid}")));
        }
        Ok(Self { cluster_uid, object_uid })
    }

    pub fn cluster_uid(&self) -> &str {
        &self.cluster_uid
    }

    /// UID of the custom resource: the subject of its attestation ticket.
    pub fn object_uid(&self) -> &str {
        &self.object_uid
    }

    /// What every owner tag of one cluster begins with, for the lists of the daemons.
    pub fn cluster_prefix(cluster_uid: &str) -> String {
        format!("{cluster_uid}/")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster_uid, self.object_uid)
    }
}

impl FromStr for Owner {
    type Err = MalformedIdentity;

    fn from_str(text: &str) -> Result<Self, MalformedIdentity> {
        match text.split_once('/') {
            Some((cluster, object)) => Self::new(cluster, object),
            None => Err(MalformedIdentity::Owner(text.to_owned())),
        }
    }
}

/// Which wish of which custom resource a POST carries: `<UID>:<16 hex of a hash of the wish>`.
///
/// The same key always leads to the same allocation, so a POST whose reply was lost is repeated
/// without a leak.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IdempotencyKey {
    object_uid: String,
    hash: String,
}

impl IdempotencyKey {
    /// Hashes `wish`: exactly the fields whose change needs another allocation.
    pub(crate) fn of(owner: &Owner, wish: &impl Serialize) -> Self {
        // Structs of plain fields always serialize; an empty wish would still be a valid key.
        let text = serde_json::to_vec(wish).unwrap_or_default();
        let hash = hex(&Sha256::digest(&text));
        Self { object_uid: owner.object_uid.clone(), hash: hash[..HASH_HEX_LENGTH].to_owned() }
    }

    pub fn object_uid(&self) -> &str {
        &self.object_uid
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.object_uid, self.hash)
    }
}

impl FromStr for IdempotencyKey {
    type Err = MalformedIdentity;

    fn from_str(text: &str) -> Result<Self, MalformedIdentity> {
        let malformed = || MalformedIdentity::Key(text.to_owned());
        let (uid, hash) = text.split_once(':').ok_or_else(malformed)?;
        let is_hash = hash.len() == HASH_HEX_LENGTH
            && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !is_part(uid) || !is_hash {
            return Err(malformed());
        }
        Ok(Self { object_uid: uid.to_owned(), hash: hash.to_owned() })
    }
}

macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = MalformedIdentity;

            fn try_from(text: String) -> Result<Self, MalformedIdentity> {
                text.parse()
            }
        }
    )*};
}
as_text!(Owner, IdempotencyKey);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MalformedIdentity {
    #[error("owner {0:?} is not <cluster UID>/<object UID>")]
    Owner(String),
    #[error("idempotency key {0:?} is not <object UID>:<16 hex digits>")]
    Key(String),
}

/// Only characters that are safe in a header, a URL and a log line.
fn is_part(text: &str) -> bool {
    (1..=PART_LENGTH_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_reads_back_what_it_wrote() {
        let owner = Owner::new("cluster-1", "0b1c").unwrap();
        assert_eq!(owner.to_string(), "cluster-1/0b1c");
        assert_eq!(owner.to_string().parse::<Owner>(), Ok(owner));
    }

    #[test]
    fn text_that_could_break_a_header_or_a_path_is_no_identity() {
        for text in ["", "/", "a/", "/b", "a", "a/b/c", "a/b\r\nX: y", "a/../b", "a/é"] {
            assert!(text.parse::<Owner>().is_err(), "{text:?}");
        }
        for text in
            ["", "a:", "a:0123", "a:0123456789ABCDEF", "a:0123456789abcdeg", "a b:0123456789abcdef"]
        {
            assert!(text.parse::<IdempotencyKey>().is_err(), "{text:?}");
        }
        assert!("a:0123456789abcdef".parse::<IdempotencyKey>().is_ok());
    }
}
