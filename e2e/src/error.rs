//! What can go wrong while a control plane is set up or a scenario runs.

use std::fmt::{self, Display};
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(thiserror::Error)]
pub enum Error {
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },

    #[error("{doing}: {source}")]
    Kube { doing: String, source: Box<kube::Error> },

    #[error("{doing}: {problem}")]
    Malformed { doing: String, problem: String },

    /// A program of others is neither there nor can it be had.
    #[error("{0}")]
    NoProgram(String),

    #[error("{program} stopped although it should run. Its log ends with:\n{log_tail}")]
    ServerStopped { program: String, log_tail: String },

    #[error("`{command}` failed ({status}): {stderr}")]
    Command { command: String, status: String, stderr: String },

    #[error("waited {seconds} s for {awaited}, in vain: {seen}")]
    TimedOut { awaited: String, seconds: u64, seen: String },

    /// Of a proxy on purpose: the call was carried out, and its answer is dropped.
    #[error("the reply was lost on purpose")]
    ReplyLost,

    /// A scenario saw something that must not happen.
    #[error("{0}")]
    Violated(String),
}

/// The same words: `unwrap` in a test shows this form, and it is read by people.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Error {
    pub fn malformed(doing: impl Into<String>, problem: impl Display) -> Self {
        Self::Malformed { doing: doing.into(), problem: problem.to_string() }
    }

    /// The HTTP code of an answer of the API server, if this is one.
    pub fn api_code(&self) -> Option<u16> {
        match self {
            Self::Kube { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Says what was being done when something failed.
pub trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T>;
}

impl<T> Doing<T> for Result<T, io::Error> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Io { doing: what.into(), source })
    }
}

impl<T> Doing<T> for Result<T, kube::Error> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Kube { doing: what.into(), source: Box::new(source) })
    }
}

impl<T> Doing<T> for Result<T, serde_json::Error> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|problem| Error::malformed(what, problem))
    }
}

/// Fails a scenario with a sentence when `holds` is false.
pub fn ensure(holds: bool, violated: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Violated(violated())) }
}
