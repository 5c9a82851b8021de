//! Sends the requests that the cursor asks for, and emits a watch event for each change.

use futures::StreamExt;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::WatchEvent;
use super::cursor::{Ask, Break, Cursor};
use super::frames::{JsonPage, StatusOrBookmark, read};
use super::page::{SILENCE_MAX, asked};
use super::response::{Frame, Read, ResponseDecoder};
use crate::wire::Wire;

/// The API server ends each watch after this long, and we go on from there; one that is silent for longer
/// ([`SILENCE_MAX`]) is dead, whatever the connection says.
const WATCH_SECONDS: u32 = 25;
/// Everything there is may take a while to come.
const STREAM_SECONDS: u32 = 300;
/// Objects in a page: a few megabytes.
const PAGE_OBJECTS: u32 = 500;

/// Follows one resource until the receiver is closed.
pub(super) struct Follower<K, T, W> {
    pub client: Client,
    pub sender: Sender<T>,
    pub wrap: W,
    pub kind: std::marker::PhantomData<fn() -> K>,
}

/// The receiver of the events is closed.
struct ReceiverClosed;

type Emitted = Result<(), ReceiverClosed>;

impl<K, T, W> Follower<K, T, W>
where
    K: Wire,
    T: Send,
    W: Fn(WatchEvent<K>) -> T + Send + Sync,
{
    pub async fn run(self) {
        let resource = K::plural(&()).into_owned();
        let (mut cursor, mut was_absent) = (Cursor::new(K::FROM_PROTOBUF.is_some()), false);
        loop {
            let (ask, begins) = cursor.ask();
            debug!(resource, ?ask, "asking");
            let Ok(outcome) = self.attempt(&mut cursor, &ask, begins).await else { return };
            let Err((why, message)) = outcome else {
                was_absent = false;
                continue;
            };
            let event = match why {
                Break::Ended | Break::NoStreams | Break::NoProtobuf => None,
                Break::NotServed => {
                    if !std::mem::replace(&mut was_absent, true) {
                        info!(resource, "not installed; Pods that refer to it will wait");
                    }
                    Some(WatchEvent::Absent)
                }
                Break::TooOld => {
                    info!(resource, why = message, "what was known is too old; listing it again");
                    Some(WatchEvent::Failed)
                }
                Break::Failed => {
                    warn!(resource, why = message, "watch failed; starting it again");
                    Some(WatchEvent::Failed)
                }
            };
            if let Some(event) = event
                && self.emit(event).await.is_err()
            {
                return;
            }
            sleep(cursor.broke(why)).await;
        }
    }

    async fn emit(&self, event: WatchEvent<K>) -> Emitted {
        self.sender.send((self.wrap)(event)).await.map_err(|_| ReceiverClosed)
    }

    /// One request and its response. The outer error: the receiver is closed.
    async fn attempt(
        &self,
        cursor: &mut Cursor,
        ask: &Ask,
        begins: bool,
    ) -> Result<Result<(), (Break, String)>, ReceiverClosed> {
        let reply = match self.send(ask).await {
            Ok(reply) => reply,
            Err(broke) => return Ok(Err(broke)),
        };
        let decoder = ResponseDecoder::to(ask, reply.headers());
        if decoder.is_none() && *ask == Ask::List {
            return Ok(Err((Break::NoProtobuf, String::new())));
        }
        if begins {
            self.emit(WatchEvent::ListBegins).await?;
        }
        match decoder {
            Some(decoder) => self.take_pieces(cursor, reply, decoder).await,
            None => self.take_page(cursor, reply).await,
        }
    }

    async fn send(&self, ask: &Ask) -> Result<Response<Body>, (Break, String)> {
        let path = format!("{}?{}", K::url_path(&(), K::NAMESPACE), query(ask, K::LISTED));
        asked::<K>(&self.client, &path).await.map_err(|unanswered| {
            let why = match (ask, unanswered.status) {
                (_, Some(StatusCode::GONE)) => Break::TooOld,
                (Ask::Stream, Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)) => {
                    Break::NoStreams
                }
                // Also of a watch: its CRD was deleted.
                (_, Some(StatusCode::NOT_FOUND)) => Break::NotServed,
                _ => Break::Failed,
            };
            (why, unanswered.to_string())
        })
    }

    async fn take_page(
        &self,
        cursor: &mut Cursor,
        reply: Response<Body>,
    ) -> Result<Result<(), (Break, String)>, ReceiverClosed> {
        let failed = |why: String| Ok(Err((Break::Failed, why)));
        // Between two chunks, silence is bounded by the client itself.
        let body = match reply.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return failed(error.to_string()),
        };
        let page = match JsonPage::read(&body) {
            Ok(page) => page,
            Err(error) => return failed(format!("no list: {error}")),
        };
        for raw in page.items() {
            self.emit(seen(read(raw))).await?;
        }
        self.end_page(cursor, page.version().to_owned(), page.token().map(str::to_owned)).await?;
        Ok(Ok(()))
    }

    async fn end_page(
        &self,
        cursor: &mut Cursor,
        version: String,
        token: Option<String>,
    ) -> Emitted {
        if cursor.page_ended(version, token) {
            self.emit(WatchEvent::ListEnds).await?;
        }
        Ok(())
    }

    async fn take_pieces(
        &self,
        cursor: &mut Cursor,
        reply: Response<Body>,
        mut decoder: ResponseDecoder<K>,
    ) -> Result<Result<(), (Break, String)>, ReceiverClosed> {
        let mut chunks = reply.into_body().into_data_stream();
        loop {
            let chunk = match timeout(SILENCE_MAX, chunks.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return Ok(Err((Break::Failed, error.to_string()))),
                Ok(None) => return Ok(Err((Break::Ended, String::new()))),
                Err(_) => return Ok(Err((Break::Failed, format!("silent for {SILENCE_MAX:?}")))),
            };
            if let Err(error) = decoder.feed(&chunk) {
                return Ok(Err((Break::Failed, error.to_string())));
            }
            while let Some(piece) = decoder.next() {
                match self.take_piece(cursor, piece).await? {
                    Step::Next => {}
                    Step::Listed => return Ok(Ok(())),
                    Step::Broke(why, message) => return Ok(Err((why, message))),
                }
            }
        }
    }

    async fn take_piece(
        &self,
        cursor: &mut Cursor,
        piece: Result<Frame<K>, String>,
    ) -> Result<Step, ReceiverClosed> {
        let (event, version) = match piece {
            Ok(Frame::Seen(object)) => {
                let version = version(&object);
                (seen(object), version)
            }
            Ok(Frame::Gone(object)) => {
                let version = version(&object);
                (gone(object), version)
            }
            Ok(Frame::Bookmark(notice)) => return self.take_bookmark(cursor, &notice).await,
            Ok(Frame::ListEnds { version, token }) => {
                self.end_page(cursor, version, token).await?;
                return Ok(Step::Listed);
            }
            Ok(Frame::Error(notice)) => {
                let why = if notice.code == 410 { Break::TooOld } else { Break::Failed };
                return Ok(Step::Broke(why, format!("{}: {}", notice.code, notice.message)));
            }
            Err(why) => return Ok(Step::Broke(Break::Failed, why)),
        };
        self.emit(event).await?;
        cursor.brought(version.as_deref());
        Ok(Step::Next)
    }

    async fn take_bookmark(
        &self,
        cursor: &mut Cursor,
        notice: &StatusOrBookmark,
    ) -> Result<Step, ReceiverClosed> {
        cursor.brought(notice.version());
        match notice.version() {
            Some(version) if notice.ends_initial_events() => {
                cursor.listed(version.to_owned());
                self.emit(WatchEvent::ListEnds).await?;
                Ok(Step::Listed)
            }
            _ => Ok(Step::Next),
        }
    }
}

enum Step {
    Next,
    /// All that was asked for has come: a watch, or the next page, goes on from there.
    Listed,
    Broke(Break, String),
}

fn version<K: Wire>(object: &Read<K>) -> Option<String> {
    let meta = match object {
        Ok(object) => object.meta(),
        Err(left) => &left.metadata,
    };
    meta.resource_version.clone()
}

fn seen<K>(object: Read<K>) -> WatchEvent<K> {
    object.map_or_else(WatchEvent::Unreadable, |object| WatchEvent::Seen(Box::new(object)))
}

fn gone<K>(object: Read<K>) -> WatchEvent<K> {
    object.map_or_else(WatchEvent::UnreadableGone, |object| WatchEvent::Gone(Box::new(object)))
}

fn query(ask: &Ask, listed: Option<&str>) -> String {
    const WATCH: &str = "watch=true&allowWatchBookmarks=true";
    let selected = listed.map(|fields| format!("&fieldSelector={fields}")).unwrap_or_default();
    match ask {
        // No resourceVersion, here and below: as of now, not as of some cache.
        Ask::List => selected,
        Ask::Stream => format!(
            "{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&\
             timeoutSeconds={STREAM_SECONDS}{selected}"
        ),
        Ask::Page { token: None } => format!("limit={PAGE_OBJECTS}{selected}"),
        Ask::Page { token: Some(token) } => {
            format!("limit={PAGE_OBJECTS}&continue={token}{selected}")
        }
        Ask::Watch { from } => {
            format!("{WATCH}&timeoutSeconds={WATCH_SECONDS}&resourceVersion={from}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{WireNode, WirePod};

    #[test]
    fn completed_pods_are_not_listed_and_a_watch_shows_how_one_completes() {
        let lists = [Ask::List, Ask::Stream, Ask::Page { token: None }];
        let watch = Ask::Watch { from: "7".to_owned() };
        for ask in &lists {
            let (pods, nodes) = (query(ask, WirePod::LISTED), query(ask, WireNode::LISTED));
            let selector = "&fieldSelector=status.phase%21%3DSucceeded,status.phase%21%3DFailed";
            assert!(pods.ends_with(selector), "{pods}");
            assert!(!nodes.contains("fieldSelector"), "{nodes}");
        }
        assert!(!query(&watch, WirePod::LISTED).contains("fieldSelector"));
    }
}
