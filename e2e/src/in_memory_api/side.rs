//! One of the two servers, and all that it has said in a sequence.

use std::fmt;

use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::call::{Call, Reply, body_for, filled};
use super::normal::Normal;
use crate::error::{Doing as _, Error, Result};

pub struct Side {
    client: Client,
    pub replies: Vec<Reply>,
    normal: Normal,
}

impl Side {
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone(), replies: Vec::new(), normal: Normal::default() }
    }

    /// Makes a call and remembers the reply.
    pub async fn make(&mut self, call: &Call) -> Result<()> {
        let reply = self.ask(call).await?;
        self.replies.push(reply);
        Ok(())
    }

    /// The last reply, as the other server should have given it.
    pub fn last(&mut self) -> Value {
        match self.replies.last() {
            Some(reply) => self.normal.reply(reply),
            None => Value::Null,
        }
    }

    pub async fn ask(&self, call: &Call) -> Result<Reply> {
        let path = filled(&call.path, &self.replies);
        let doing = || format!("{} {path}", call.method);
        let body = body_for(call, &self.replies);
        let request = Request::builder()
            .method(call.method)
            .uri(&path)
            .header("content-type", call.content_type)
            .header("accept", "application/json")
            .body(Body::from(body))
            .map_err(|problem| Error::malformed(doing(), problem))?;
        let response = self.client.send(request).await.doing(doing())?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.doing(doing())?;
        Ok(Reply { code, body: parsed(&bytes, call.is_watch()) })
    }
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").field("replies", &self.replies.len()).finish_non_exhaustive()
    }
}

/// A watch is a line for each event.
fn parsed(bytes: &[u8], is_watch: bool) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let whole = || serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
    if !is_watch {
        return whole();
    }
    let events: std::result::Result<Vec<Value>, _> =
        text.lines().map(serde_json::from_str).collect();
    match events {
        Ok(events) if events.iter().all(|event| event.get("object").is_some()) => {
            json!({ "events": events.into_iter().filter(|it| !is_reminder(it)).collect::<Vec<_>>() })
        }
        _ => whole(),
    }
}

/// A bookmark that only says how far the watch has come; each server chooses its own moments.
fn is_reminder(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event.pointer("/object/metadata/annotations").is_none()
}
