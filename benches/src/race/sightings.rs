//! What the race itself sees: when each Pod was bound, and when the Event about it came.
//!
//! One watch on Pods with a Node and one on Events, the same for every contestant. Only a few fields are
//! decoded: the race runs on the same cores as what it measures.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use e2e::error::Doing as _;
use e2e::{Error, Result};
use futures::StreamExt as _;
use http::Request;
use kube::Client;
use kube::api::WatchEvent;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::api::version_now;

/// Longer than any round.
const WATCH_SECONDS: u32 = 3600;

/// Where a Pod was bound to, and when we saw it.
#[derive(Debug, Clone)]
pub struct Bound {
    pub node: String,
    pub at: Instant,
}

/// Everything seen so far, by the names of Pods.
#[derive(Debug, Default)]
pub struct Seen {
    pub bound: HashMap<String, Bound>,
    /// Events with the reason `Scheduled`.
    pub events: HashMap<String, Instant>,
    /// Pods whose Node changed: this must never happen.
    pub moved: Vec<String>,
    problem: Option<String>,
}

impl Seen {
    /// How many Pods were bound, and when the first and the last.
    pub fn bound_span(&self) -> Span {
        Span::over(self.bound.values().map(|bound| bound.at))
    }

    /// The same of the Events about them.
    pub fn events_span(&self) -> Span {
        Span::over(self.events.values().copied())
    }
}

/// Many moments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    pub count: usize,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
}

impl Span {
    fn over(moments: impl Iterator<Item = Instant>) -> Self {
        moments.fold(Self::default(), |span, at| Self {
            count: span.count + 1,
            first: Some(span.first.map_or(at, |first| first.min(at))),
            last: Some(span.last.map_or(at, |last| last.max(at))),
        })
    }
}

/// Watches in the background until it is dropped.
#[derive(Debug)]
pub struct Sightings {
    seen: Arc<Mutex<Seen>>,
    // Dropped with it, and the watches with them.
    _watches: JoinSet<()>,
}

impl Sightings {
    /// Everything that happens from now on to Pods of the namespace whose names begin so.
    pub async fn start(client: &Client, namespace: &str, prefix: &'static str) -> Result<Self> {
        let from = version_now(client).await?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut watches = JoinSet::new();
        let follower = Follower { client: client.clone(), seen: Arc::clone(&seen), prefix };
        let also = follower.clone();
        let (pods, events) = (
            format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName!="),
            format!("/api/v1/namespaces/{namespace}/events?fieldSelector=reason=Scheduled"),
        );
        let begin = from.clone();
        watches.spawn(async move { follower.follow::<SlimPod>(&pods, begin, note_pod).await });
        watches.spawn(async move { also.follow::<SlimEvent>(&events, from, note_event).await });
        Ok(Self { seen, _watches: watches })
    }

    pub fn look<T>(&self, read: impl FnOnce(&Seen) -> T) -> Result<T> {
        let seen = lock(&self.seen);
        match &seen.problem {
            Some(problem) => Err(Error::malformed("watching the race", problem)),
            None => Ok(read(&seen)),
        }
    }
}

#[derive(Clone)]
struct Follower {
    client: Client,
    seen: Arc<Mutex<Seen>>,
    prefix: &'static str,
}

impl Follower {
    async fn follow<T>(self, what: &str, mut from: String, note: fn(&mut Seen, &str, T))
    where
        T: Clone + DeserializeOwned + Versioned + Send + 'static,
    {
        loop {
            if let Err(problem) = self.follow_once(what, &mut from, note).await {
                lock(&self.seen).problem = Some(problem.to_string());
                return;
            }
            // The API server ends watches that cannot keep up for a moment; the next goes on where this
            // one ended, and nothing is missed.
        }
    }

    async fn follow_once<T>(
        &self,
        what: &str,
        from: &mut String,
        note: fn(&mut Seen, &str, T),
    ) -> Result<()>
    where
        T: Clone + DeserializeOwned + Versioned + Send + 'static,
    {
        let doing = || format!("watching {what}");
        let path = format!(
            "{what}&watch=true&allowWatchBookmarks=true&resourceVersion={from}\
             &timeoutSeconds={WATCH_SECONDS}"
        );
        let request =
            Request::get(path).body(Vec::new()).map_err(|it| Error::malformed(doing(), it))?;
        let stream = self.client.request_events::<T>(request).await.doing(doing())?;
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event.doing(doing())? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    object.version().clone_into(from);
                    note(&mut lock(&self.seen), self.prefix, object);
                }
                WatchEvent::Deleted(object) => object.version().clone_into(from),
                WatchEvent::Bookmark(mark) => *from = mark.metadata.resource_version,
                WatchEvent::Error(status) => return Err(Error::malformed(doing(), status)),
            }
        }
        Ok(())
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note_pod(seen: &mut Seen, prefix: &str, pod: SlimPod) {
    let at = Instant::now();
    let SlimPod { metadata: Metadata { name, .. }, spec: SlimSpec { node_name } } = pod;
    if !name.starts_with(prefix) {
        return;
    }
    match seen.bound.get(&name) {
        None => drop(seen.bound.insert(name, Bound { node: node_name, at })),
        Some(before) if before.node != node_name => seen.moved.push(name),
        Some(_) => {}
    }
}

fn note_event(seen: &mut Seen, prefix: &str, event: SlimEvent) {
    let name = event.involved_object.name;
    if name.starts_with(prefix) {
        seen.events.entry(name).or_insert_with(Instant::now);
    }
}

trait Versioned {
    fn version(&self) -> &str;
}

impl Versioned for SlimPod {
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

impl Versioned for SlimEvent {
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

#[derive(Clone, Deserialize)]
struct SlimPod {
    metadata: Metadata,
    spec: SlimSpec,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    #[serde(default)]
    node_name: String,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimEvent {
    metadata: Metadata,
    involved_object: About,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

#[derive(Clone, Deserialize)]
struct About {
    #[serde(default)]
    name: String,
}
