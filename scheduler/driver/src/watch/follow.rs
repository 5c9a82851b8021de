//! Asks the API server what the cursor wants to know, and tells what comes.

use futures::StreamExt;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::News;
use super::cursor::{Ask, Break, Cursor};
use super::frames::{JsonPage, Notice, read};
use super::page::{SILENCE_MAX, asked};
use super::told::{Answer, Read, Told};
use crate::wire::Wire;

/// The API server ends each watch after this long, and we go on from there; one that is silent for longer
/// ([`SILENCE_MAX`]) is dead, whatever the connection says.
const WATCH_SECONDS: u32 = 25;
/// Everything there is may take a while to come.
const STREAM_SECONDS: u32 = 300;
/// Objects in a page: a few megabytes.
const PAGE_OBJECTS: u32 = 500;

/// Follows one resource for as long as somebody listens.
pub(super) struct Follower<K, T, W> {
    pub client: Client,
    pub namespace: Option<&'static str>,
    pub sender: Sender<T>,
    pub wrap: W,
    pub kind: std::marker::PhantomData<fn() -> K>,
}

/// Nobody listens any more.
struct Deaf;

type Heard = Result<(), Deaf>;

impl<K, T, W> Follower<K, T, W>
where
    K: Wire,
    T: Send,
    W: Fn(News<K>) -> T + Send + Sync,
{
    pub async fn run(self) {
        let resource = K::plural(&()).into_owned();
        let (mut cursor, mut was_absent) = (Cursor::new(K::FROM_PROTOBUF.is_some()), false);
        loop {
            let (ask, begins) = cursor.ask();
            debug!(resource, ?ask, "asking");
            let Ok(outcome) = self.attempt(&mut cursor, &ask, begins).await else { return };
            let Err((why, told)) = outcome else {
                was_absent = false;
                continue;
            };
            let news = match why {
                Break::Ended | Break::NoStreams | Break::NoProtobuf => None,
                Break::NotServed => {
                    if !std::mem::replace(&mut was_absent, true) {
                        info!(resource, "not installed; Pods that refer to it will wait");
                    }
                    Some(News::Absent)
                }
                Break::TooOld => {
                    info!(resource, why = told, "what was known is too old; listing it again");
                    Some(News::Failed)
                }
                Break::Failed => {
                    warn!(resource, why = told, "watch failed; starting it again");
                    Some(News::Failed)
                }
            };
            if let Some(news) = news
                && self.tell(news).await.is_err()
            {
                return;
            }
            sleep(cursor.broke(why)).await;
        }
    }

    async fn tell(&self, news: News<K>) -> Heard {
        self.sender.send((self.wrap)(news)).await.map_err(|_| Deaf)
    }

    /// One question and its answer. The outer error: nobody listens.
    async fn attempt(
        &self,
        cursor: &mut Cursor,
        ask: &Ask,
        begins: bool,
    ) -> Result<Result<(), (Break, String)>, Deaf> {
        let reply = match self.send(ask).await {
            Ok(reply) => reply,
            Err(broke) => return Ok(Err(broke)),
        };
        let answer = Answer::to(ask, reply.headers());
        if answer.is_none() && *ask == Ask::List {
            return Ok(Err((Break::NoProtobuf, String::new())));
        }
        if begins {
            self.tell(News::ListBegins).await?;
        }
        match answer {
            Some(answer) => self.take_pieces(cursor, reply, answer).await,
            None => self.take_page(cursor, reply).await,
        }
    }

    async fn send(&self, ask: &Ask) -> Result<Response<Body>, (Break, String)> {
        let path = format!("{}?{}", K::url_path(&(), self.namespace), query(ask, K::LISTED));
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
    ) -> Result<Result<(), (Break, String)>, Deaf> {
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
            self.tell(seen(read(raw))).await?;
        }
        self.end_page(cursor, page.version().to_owned(), page.token().map(str::to_owned)).await?;
        Ok(Ok(()))
    }

    async fn end_page(&self, cursor: &mut Cursor, version: String, token: Option<String>) -> Heard {
        if cursor.page_ended(version, token) {
            self.tell(News::ListEnds).await?;
        }
        Ok(())
    }

    async fn take_pieces(
        &self,
        cursor: &mut Cursor,
        reply: Response<Body>,
        mut answer: Answer<K>,
    ) -> Result<Result<(), (Break, String)>, Deaf> {
        let mut chunks = reply.into_body().into_data_stream();
        loop {
            let chunk = match timeout(SILENCE_MAX, chunks.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return Ok(Err((Break::Failed, error.to_string()))),
                Ok(None) => return Ok(Err((Break::Ended, String::new()))),
                Err(_) => return Ok(Err((Break::Failed, format!("silent for {SILENCE_MAX:?}")))),
            };
            if let Err(error) = answer.feed(&chunk) {
                return Ok(Err((Break::Failed, error.to_string())));
            }
            while let Some(piece) = answer.next() {
                match self.take_piece(cursor, piece).await? {
                    Step::Next => {}
                    Step::Listed => return Ok(Ok(())),
                    Step::Broke(why, told) => return Ok(Err((why, told))),
                }
            }
        }
    }

    async fn take_piece(
        &self,
        cursor: &mut Cursor,
        piece: Result<Told<K>, String>,
    ) -> Result<Step, Deaf> {
        let (news, version) = match piece {
            Ok(Told::Seen(object)) => {
                let version = version(&object);
                (seen(object), version)
            }
            Ok(Told::Gone(object)) => {
                let version = version(&object);
                (gone(object), version)
            }
            Ok(Told::Bookmark(notice)) => return self.take_bookmark(cursor, &notice).await,
            Ok(Told::ListEnds { version, token }) => {
                self.end_page(cursor, version, token).await?;
                return Ok(Step::Listed);
            }
            Ok(Told::Error(notice)) => {
                let why = if notice.code == 410 { Break::TooOld } else { Break::Failed };
                return Ok(Step::Broke(why, format!("{}: {}", notice.code, notice.message)));
            }
            Err(why) => return Ok(Step::Broke(Break::Failed, why)),
        };
        self.tell(news).await?;
        cursor.brought(version.as_deref());
        Ok(Step::Next)
    }

    async fn take_bookmark(&self, cursor: &mut Cursor, notice: &Notice) -> Result<Step, Deaf> {
        cursor.brought(notice.version());
        match notice.version() {
            Some(version) if notice.ends_initial_events() => {
                cursor.listed(version.to_owned());
                self.tell(News::ListEnds).await?;
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

fn seen<K>(object: Read<K>) -> News<K> {
    object.map_or_else(News::Unreadable, |object| News::Seen(Box::new(object)))
}

fn gone<K>(object: Read<K>) -> News<K> {
    object.map_or_else(News::UnreadableGone, |object| News::Gone(Box::new(object)))
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
