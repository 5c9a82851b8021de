//! Leads one write to a clear outcome: the calls behind [`crate::settling`].

use std::time::Duration;

use http::{Method, Request};
use hyper_util::client::legacy::Error as ClientError;
use kube::Client;
use kube::core::Status;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::event::shortened;
use super::{CALL_TIMEOUT, JSON, request};
use crate::election::is_not_leading;
use crate::settling::{Next, Outcome, Patience, ReadReply, Refused, Settling, WriteReply};
use crate::wire::Wire;

/// The message of `config/admission/leader-fence.yaml` begins so, somewhere behind the API server's own.
const STALE_LEADER: &str = "stale leader ";

/// A webhook may answer with any length. What is kept of it stays in the engine, and fits into an Event.
const REFUSAL_BYTES_MAX: usize = 512;

/// A write, and how to see whether it has taken effect.
pub(super) trait Write {
    fn write(&mut self) -> impl Future<Output = WriteReply> + Send;

    fn read(&mut self) -> impl Future<Output = ReadReply> + Send;

    /// A call got no clear answer; none was sent if there is no message.
    fn unclear(&mut self, message: Option<&str>) -> impl Future<Output = ()> + Send;
}

/// Writes and reads until the outcome is clear.
pub(super) async fn settle(it: &mut impl Write, patience: Patience) -> Outcome {
    let mut settling = Settling::new(patience);
    let mut next = Next::Write { after: Duration::ZERO };
    loop {
        next = match next {
            Next::Settled(outcome) => return outcome,
            Next::Write { after } => {
                if !after.is_zero() {
                    sleep(after).await;
                }
                let reply = it.write().await;
                match &reply {
                    WriteReply::Unsent => it.unclear(None).await,
                    WriteReply::Failed { message, .. } | WriteReply::Unclear { message, .. } => {
                        it.unclear(Some(message)).await;
                    }
                    _ => {}
                }
                settling.after_write(reply)
            }
            Next::Read { after } => {
                sleep(after).await;
                settling.after_read(&it.read().await)
            }
        }
    }
}

/// Sends a write once.
pub(super) async fn write(
    client: &Client,
    request: Result<Request<Vec<u8>>, http::Error>,
) -> WriteReply {
    send(client, request).await.err().unwrap_or(WriteReply::Done)
}

/// The same, with the object as the write left it.
pub(super) async fn write_and_read<K: Wire>(
    client: &Client,
    request: Result<Request<Vec<u8>>, http::Error>,
) -> (WriteReply, Option<K>) {
    match send(client, request).await {
        Ok(text) => (WriteReply::Done, serde_json::from_str(&text).ok()),
        Err(reply) => (reply, None),
    }
}

async fn send(
    client: &Client,
    request: Result<Request<Vec<u8>>, http::Error>,
) -> Result<String, WriteReply> {
    let request = request.map_err(|error| {
        WriteReply::Refused(Refused { message: error.to_string(), is_conflict: false })
    })?;
    match timeout(CALL_TIMEOUT, client.request_text(request)).await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(kube::Error::Api(status))) => Err(answered(*status)),
        Ok(Err(error)) if is_not_leading(&error) => Err(WriteReply::TermEnded),
        Ok(Err(error)) if is_unsent(&error) => Err(WriteReply::Unsent),
        Ok(Err(error)) => {
            Err(WriteReply::Unclear { message: error.to_string(), retry_after: None })
        }
        Err(_) => {
            let message = format!("no answer within {} s", CALL_TIMEOUT.as_secs());
            Err(WriteReply::Unclear { message, retry_after: None })
        }
    }
}

/// What the API server's own words mean. A code of a proxy before it has no reason of Kubernetes'.
fn answered(status: Status) -> WriteReply {
    let Status { code, reason, message, details, .. } = status;
    let is_stale = code == 422 && message.contains(STALE_LEADER);
    let message = shortened(&message, REFUSAL_BYTES_MAX);
    let seconds = details.map_or(0, |details| details.retry_after_seconds);
    let retry_after = Some(Duration::from_secs(seconds.into()));
    match code {
        429 => WriteReply::Failed { message, retry_after },
        500 if reason == "InternalError" => WriteReply::Failed { message, retry_after },
        408 | 500.. => WriteReply::Unclear { message, retry_after },
        422 if is_stale => WriteReply::StaleLeader { message },
        _ => WriteReply::Refused(Refused { message, is_conflict: code == 409 }),
    }
}

/// Whether there was no connection to send a call over.
fn is_unsent(error: &kube::Error) -> bool {
    let kube::Error::Service(cause) = error else { return false };
    cause.downcast_ref::<ClientError>().is_some_and(ClientError::is_connect)
}

/// Reads the object of this UID. A GET without resourceVersion is a quorum read.
pub(super) async fn read_object<K: Wire>(
    client: &Client,
    path: &str,
    uid: &str,
    is_as_written: impl FnOnce(&K) -> bool,
) -> (ReadReply, Option<K>) {
    let Ok(request) = request(Method::GET, path, JSON, &Value::Null) else {
        return (ReadReply::Gone, None);
    };
    let request = request.map(|_| Vec::new());
    match timeout(CALL_TIMEOUT, client.request::<K>(request)).await {
        Ok(Ok(object)) if object.meta().uid.as_deref() != Some(uid) => (ReadReply::Gone, None),
        Ok(Ok(object)) if is_as_written(&object) => (ReadReply::AsWritten, Some(object)),
        Ok(Ok(object)) => (ReadReply::Otherwise, Some(object)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => (ReadReply::Gone, None),
        Ok(Err(_)) | Err(_) => (ReadReply::Unclear, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_are_cut_and_what_they_mean_is_not() {
        let status = |code: u16, message: String| {
            answered(Status { code, message, ..Status::failure("", "Invalid") })
        };
        let long = "x".repeat(100_000);
        let reply = status(403, long.clone());
        let WriteReply::Refused(Refused { message, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!(message.len(), REFUSAL_BYTES_MAX);
        let reply = status(422, format!("{long}{STALE_LEADER}a/1"));
        assert!(matches!(reply, WriteReply::StaleLeader { .. }), "{reply:?}");
    }
}
