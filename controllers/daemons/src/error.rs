//! What can go wrong between us and a daemon.

use std::time::Duration;

use futures::future::BoxFuture;
use thiserror::Error;

use crate::refusal::{Refusal, RefusalReason};

/// What every call of a client returns.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, DaemonError>>;

/// A call that did not succeed. `action` says what was tried, e.g. `allocate corridor`.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// No request was sent.
    #[error("{action}: cannot connect to {url}: {why}")]
    Connect { action: &'static str, url: String, why: String },
    /// The request may have been carried out: the connection broke before the reply.
    #[error("{action}: the connection to {url} broke: {why}")]
    Exchange { action: &'static str, url: String, why: String },
    /// The request may have been carried out: no reply in time.
    #[error("{action}: no answer from {url} in {after:?}")]
    Deadline { action: &'static str, url: String, after: Duration },
    /// The daemon said no, and why.
    #[error("{action}: refused ({status} {}): {}", refusal.reason.as_str(), refusal.message)]
    Refused { action: &'static str, status: u16, refusal: Refusal },
    /// The daemon failed; the request may have been carried out.
    #[error("{action}: the daemon failed with status {status}{}", because(why))]
    Failed { action: &'static str, status: u16, why: String },
    /// The reply makes no sense; the request may have been carried out.
    #[error("{action}: the daemon answered nonsense: {why}")]
    Decode { action: &'static str, why: String },
    /// The reply is larger than any honest one.
    #[error("{action}: the answer has more than {limit} bytes")]
    Overflow { action: &'static str, limit: usize },
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

impl DaemonError {
    /// Whether trying the same later makes sense. What is not retryable needs a changed request.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { refusal, .. } => refusal.reason.may_pass(),
            // A daemon that answers nonsense may be replaced by one that does not.
            _ => true,
        }
    }

    /// Whether the daemon may have done what was asked although this is an error.
    pub fn is_ambiguous(&self) -> bool {
        !matches!(self, Self::Connect { .. } | Self::Refused { .. })
    }

    /// Whether the daemon was there and understood: the failure says nothing about its health.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// The reason of a refusal.
    pub fn refusal(&self) -> Option<RefusalReason> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal.reason),
            _ => None,
        }
    }

    /// For metrics: which step failed.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "connect",
            Self::Exchange { .. } => "exchange",
            Self::Deadline { .. } => "deadline",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
            Self::Decode { .. } => "decode",
            Self::Overflow { .. } => "overflow",
        }
    }
}
