//! What the API server itself recorded: all Bindings, and every write of the scheduler's account.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::{Doing as _, Error, Result};

const CREATED: u16 = 201;
/// Also recorded when the client is gone before the answer.
const TIMED_OUT: u16 = 504;

/// The audit log of an API server that records Bindings with their bodies, and the scheduler's other writes
/// without.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// One answered request to bind a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub namespace: String,
    pub pod: String,
    /// As the Binding names it; empty when it names none.
    pub pod_uid: String,
    pub node: String,
    /// The HTTP code of the answer.
    pub code: u16,
}

/// A write by the scheduler's ServiceAccount, whatever became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditWrite {
    pub verb: String,
    /// `pods/status`.
    pub resource: String,
    pub name: String,
    pub code: u16,
}

/// The scheduler's user at the API server.
const SCHEDULER: &str = "system:serviceaccount:corridor-system:corridor-operator";

impl AuditLog {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Every answered Binding, in order, refused ones included. An answer can reach the client a
    /// moment before it is in here.
    pub fn bindings(&self) -> Result<Vec<Binding>> {
        Ok(self.entries()?.into_iter().filter(Entry::is_binding).map(Binding::from).collect())
    }

    /// Everything that the scheduler's account wrote, Bindings included.
    pub fn writes_of_scheduler(&self) -> Result<Vec<AuditWrite>> {
        let theirs = self.entries()?.into_iter().filter(|entry| entry.user.username == SCHEDULER);
        Ok(theirs.map(AuditWrite::from).collect())
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let doing = || format!("reading the audit log {}", self.path.display());
        // The file comes with the first entry.
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let log = fs::read_to_string(&self.path).doing(doing())?;
        // A line without its end is still being written.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|p| Error::malformed(doing(), p)))
            .collect()
    }

    /// Those that the API server answered with 201.
    pub fn successful_bindings(&self) -> Result<Vec<Binding>> {
        let mut bindings = self.bindings()?;
        bindings.retain(Binding::succeeded);
        Ok(bindings)
    }
}

impl Binding {
    pub fn succeeded(&self) -> bool {
        self.code == CREATED
    }

    /// The API server gave up waiting for its own work, which may have been done all the same.
    pub fn was_cancelled(&self) -> bool {
        self.code == TIMED_OUT
    }
}

impl From<Entry> for Binding {
    fn from(entry: Entry) -> Self {
        Self {
            namespace: entry.object_ref.namespace,
            pod: entry.object_ref.name,
            pod_uid: entry.request_object.metadata.uid,
            node: entry.request_object.target.name,
            code: entry.response_status.code,
        }
    }
}

impl From<Entry> for AuditWrite {
    fn from(entry: Entry) -> Self {
        let ObjectRef { name, resource, subresource, .. } = entry.object_ref;
        let resource =
            if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
        Self { verb: entry.verb, resource, name, code: entry.response_status.code }
    }
}

/// The few fields of an `audit.k8s.io/v1` Event that matter here.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    verb: String,
    user: User,
    object_ref: ObjectRef,
    request_object: RequestObject,
    response_status: ResponseStatus,
}

impl Entry {
    fn is_binding(&self) -> bool {
        let ObjectRef { resource, subresource, .. } = &self.object_ref;
        subresource == "binding" || resource == "bindings"
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RequestObject {
    metadata: Metadata,
    target: Target,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Target {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_half_written_line_is_left_for_the_next_reading() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let entry = r#"{"objectRef":{"resource":"pods","subresource":"binding","namespace":"team-a","name":"p"},"requestObject":{"metadata":{"uid":"u1"},"target":{"name":"node-1"}},"responseStatus":{"code":201}}"#;
        write!(file, "{entry}\n{}", &entry[..40]).unwrap();
        let expected = Binding {
            namespace: "team-a".into(),
            pod: "p".into(),
            pod_uid: "u1".into(),
            node: "node-1".into(),
            code: 201,
        };
        let log = AuditLog::at(file.path().to_owned());
        assert_eq!(log.successful_bindings().unwrap(), [expected]);
    }

    #[test]
    fn refused_bindings_do_not_count_as_successful() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let of = r#""objectRef":{"resource":"pods","subresource":"binding"}"#;
        writeln!(file, r#"{{{of},"responseStatus":{{"code":409}}}}"#).unwrap();
        writeln!(file, r#"{{"objectRef":{{"resource":"pods","subresource":"status"}}}}"#).unwrap();
        let log = AuditLog::at(file.path().to_owned());
        assert_eq!(log.bindings().unwrap().len(), 1);
        assert!(log.successful_bindings().unwrap().is_empty());
    }
}
