//! Waiting for what a watch shows, instead of sleeping.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::objects::pods::PodState as _;

/// Generous: reached only when something is wrong.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// How many objects a failed wait describes.
const DESCRIBED_MAX: usize = 10;

/// Objects by `namespace/name`, or `name` for those without a namespace.
pub type Seen<K> = BTreeMap<String, K>;

/// Watches until `done` is true of everything there is, and returns that.
pub async fn until<K>(
    api: &Api<K>,
    awaited: &str,
    patience: Duration,
    done: impl FnMut(&Seen<K>) -> bool,
) -> Result<Seen<K>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let names = |seen: &Seen<K>| {
        format!(
            "there are {}: {:?}",
            seen.len(),
            seen.keys().take(DESCRIBED_MAX).collect::<Vec<_>>()
        )
    };
    until_described(api, awaited, patience, done, names).await
}

/// The same for Pods; a wait in vain says where they are and why they wait.
pub async fn until_pods(
    api: &Api<Pod>,
    awaited: &str,
    patience: Duration,
    done: impl FnMut(&Seen<Pod>) -> bool,
) -> Result<Seen<Pod>> {
    until_described(api, awaited, patience, done, describe_pods).await
}

pub(crate) async fn until_described<K>(
    api: &Api<K>,
    awaited: &str,
    patience: Duration,
    mut done: impl FnMut(&Seen<K>) -> bool,
    describe: impl Fn(&Seen<K>) -> String,
) -> Result<Seen<K>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut view = View { seen: Seen::new(), listing: None, problem: None };
    let stream = watcher::watcher(api.clone(), watcher::Config::default());
    let followed = timeout(patience, view.follow(stream, &mut done)).await;
    if followed.is_ok() {
        return Ok(view.seen);
    }
    let mut seen = describe(&view.seen);
    if let Some(problem) = &view.problem {
        let _ = write!(seen, "; the watch failed: {problem}");
    }
    Err(Error::TimedOut { awaited: awaited.to_owned(), seconds: patience.as_secs(), seen })
}

struct View<K> {
    seen: Seen<K>,
    /// What a running list has brought so far.
    listing: Option<Seen<K>>,
    problem: Option<watcher::Error>,
}

impl<K: Resource> View<K> {
    async fn follow(
        &mut self,
        stream: impl Stream<Item = Result<Event<K>, watcher::Error>>,
        done: &mut impl FnMut(&Seen<K>) -> bool,
    ) {
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                // The watcher lists or watches again by itself.
                Err(problem) => self.problem = Some(problem),
                Ok(event) => {
                    if self.apply(event) && done(&self.seen) {
                        return;
                    }
                }
            }
        }
    }

    /// Returns whether `seen` is whole.
    fn apply(&mut self, event: Event<K>) -> bool {
        match event {
            Event::Init => self.listing = Some(Seen::new()),
            Event::InitApply(object) => {
                self.listing.get_or_insert_default().insert(key(&object), object);
            }
            Event::InitDone => self.seen = self.listing.take().unwrap_or_default(),
            Event::Apply(object) => {
                self.seen.insert(key(&object), object);
            }
            Event::Delete(object) => {
                self.seen.remove(&key(&object));
            }
        }
        self.listing.is_none()
    }
}

fn key<K: Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

fn describe_pods(seen: &Seen<Pod>) -> String {
    let waiting: Vec<_> = seen.iter().filter(|(_, pod)| pod.node().is_none()).collect();
    let mut text = format!("{} Pods, {} without a node", seen.len(), waiting.len());
    for (name, pod) in waiting.into_iter().take(DESCRIBED_MAX) {
        let why = pod.waiting_message().unwrap_or("no condition says why");
        let _ = write!(text, "\n  {name}: {why}");
    }
    text
}
