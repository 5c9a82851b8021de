//! Asks the API server what the cursor wants to know, and tells what comes.

use std::time::Duration;

use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::News;
use super::cursor::{Ask, Break, Cursor};
use super::frames::{Frame, Lines, Notice, Page, read};

/// The API server ends each watch after this long, and we go on from there …
const WATCH_SECONDS: u32 = 25;
/// … so one that is silent for longer is dead, whatever the connection says.
const SILENCE_MAX: Duration = Duration::from_secs(28);
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

type Told = Result<(), Deaf>;

impl<K, T, W> Follower<K, T, W>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send,
    T: Send,
    W: Fn(News<K>) -> T + Send + Sync,
{
    pub async fn run(self) {
        let resource = K::plural(&()).into_owned();
        let (mut cursor, mut was_absent) = (Cursor::new(), false);
        loop {
            let (ask, begins) = cursor.ask();
            debug!(resource, ?ask, "asking");
            let Ok(outcome) = self.attempt(&mut cursor, &ask, begins).await else { return };
            let Err((why, told)) = outcome else {
                was_absent = false;
                continue;
            };
            let news = match why {
                Break::Ended | Break::NoStreams => None,
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

    async fn tell(&self, news: News<K>) -> Told {
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
        if begins {
            self.tell(News::ListBegins).await?;
        }
        match ask {
            Ask::Page { .. } => self.take_page(cursor, reply).await,
            Ask::Stream | Ask::Watch { .. } => self.take_frames(cursor, reply).await,
        }
    }

    async fn send(&self, ask: &Ask) -> Result<Response<Body>, (Break, String)> {
        let failed = |why: String| (Break::Failed, why);
        let path = K::url_path(&(), self.namespace);
        let request = Request::get(format!("{path}?{}", query(ask)))
            .body(Body::empty())
            .map_err(|error| failed(error.to_string()))?;
        let reply = match timeout(SILENCE_MAX, self.client.send(request)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed(format!("no answer within {SILENCE_MAX:?}"))),
        };
        let status = reply.status();
        if status.is_success() {
            return Ok(reply);
        }
        let notice: Notice = match timeout(SILENCE_MAX, reply.into_body().collect()).await {
            Ok(Ok(body)) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
            Ok(Err(_)) | Err(_) => Notice::default(),
        };
        let why = match (ask, status) {
            (_, StatusCode::GONE) => Break::TooOld,
            (Ask::Stream, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) => {
                Break::NoStreams
            }
            (Ask::Stream | Ask::Page { .. }, StatusCode::NOT_FOUND) => Break::NotServed,
            _ => Break::Failed,
        };
        Err((why, format!("{status}: {}", notice.message)))
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
        let page = match Page::read(&body) {
            Ok(page) => page,
            Err(error) => return failed(format!("no list: {error}")),
        };
        for raw in page.items() {
            self.tell(read(raw).map_or_else(News::Unreadable, seen)).await?;
        }
        if cursor.page_ended(page.version().to_owned(), page.token().map(str::to_owned)) {
            self.tell(News::ListEnds).await?;
        }
        Ok(Ok(()))
    }

    async fn take_frames(
        &self,
        cursor: &mut Cursor,
        reply: Response<Body>,
    ) -> Result<Result<(), (Break, String)>, Deaf> {
        let mut chunks = reply.into_body().into_data_stream();
        let mut lines = Lines::default();
        loop {
            let chunk = match timeout(SILENCE_MAX, chunks.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return Ok(Err((Break::Failed, error.to_string()))),
                Ok(None) => return Ok(Err((Break::Ended, String::new()))),
                Err(_) => return Ok(Err((Break::Failed, format!("silent for {SILENCE_MAX:?}")))),
            };
            if let Err(error) = lines.feed(&chunk) {
                return Ok(Err((Break::Failed, error.to_string())));
            }
            while let Some(line) = lines.next() {
                match self.take_frame(cursor, line).await? {
                    Step::Next => {}
                    Step::Listed => return Ok(Ok(())),
                    Step::Broke(why, told) => return Ok(Err((why, told))),
                }
            }
        }
    }

    async fn take_frame(&self, cursor: &mut Cursor, line: &[u8]) -> Result<Step, Deaf> {
        let frame: Frame<'_> = match serde_json::from_slice(line) {
            Ok(frame) => frame,
            Err(error) => return Ok(Step::Broke(Break::Failed, format!("no event: {error}"))),
        };
        let is_gone = match frame.kind {
            "ADDED" | "MODIFIED" => false,
            "DELETED" => true,
            "BOOKMARK" => return self.take_bookmark(cursor, &Notice::read(frame.object)).await,
            _ => {
                let notice = Notice::read(frame.object);
                let why = if notice.code == 410 { Break::TooOld } else { Break::Failed };
                return Ok(Step::Broke(why, format!("{}: {}", notice.code, notice.message)));
            }
        };
        let (news, version) = match read::<K>(frame.object) {
            Ok(object) => {
                let version = object.meta().resource_version.clone();
                (if is_gone { News::Gone(Box::new(object)) } else { seen(object) }, version)
            }
            Err(left) => {
                let version = left.metadata.resource_version.clone();
                (if is_gone { News::UnreadableGone(left) } else { News::Unreadable(left) }, version)
            }
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
    /// Everything there is has come: a watch goes on from there.
    Listed,
    Broke(Break, String),
}

fn seen<K>(object: K) -> News<K> {
    News::Seen(Box::new(object))
}

fn query(ask: &Ask) -> String {
    const WATCH: &str = "watch=true&allowWatchBookmarks=true";
    match ask {
        // No resourceVersion: as of now, not as of some cache.
        Ask::Stream => format!(
            "{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&\
             timeoutSeconds={STREAM_SECONDS}"
        ),
        Ask::Page { token: None } => format!("limit={PAGE_OBJECTS}"),
        Ask::Page { token: Some(token) } => format!("limit={PAGE_OBJECTS}&continue={token}"),
        Ask::Watch { from } => {
            format!("{WATCH}&timeoutSeconds={WATCH_SECONDS}&resourceVersion={from}")
        }
    }
}
