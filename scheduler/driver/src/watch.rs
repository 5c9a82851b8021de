//! Watches: each resource is listed, then followed, and listed again when that breaks.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::wire::{WireCorridor, WireLease, WireNode, WirePod};

/// News of one resource.
#[derive(Debug)]
pub(crate) enum News<K> {
    ListBegins,
    Seen(Box<K>),
    Gone(Box<K>),
    ListEnds,
    /// The resource is not served: its CRD is not installed.
    Absent,
    Failed,
}

#[derive(Debug)]
pub(crate) enum WatchNews {
    Pod(News<WirePod>),
    Node(News<WireNode>),
    Corridor(News<WireCorridor>),
    Lease(News<WireLease>),
}

/// Starts every watch. They end when the returned set is dropped.
pub(crate) fn start<T>(client: &Client, sender: &Sender<T>) -> JoinSet<()>
where
    T: From<WatchNews> + Send + 'static,
{
    let everywhere = watcher::Config::default;
    // Only one backend so far; the others' Leases concern nobody yet.
    let corrd = format!("metadata.name={}", crds::backend_lease::CORRD);
    let leases = Api::namespaced(client.clone(), crds::SYSTEM_NAMESPACE);
    let mut watches = JoinSet::new();
    watches.spawn(follow(Api::all(client.clone()), everywhere(), sender.clone(), |news| {
        WatchNews::Pod(news).into()
    }));
    watches.spawn(follow(Api::all(client.clone()), everywhere(), sender.clone(), |news| {
        WatchNews::Node(news).into()
    }));
    watches.spawn(follow(Api::all(client.clone()), everywhere(), sender.clone(), |news| {
        WatchNews::Corridor(news).into()
    }));
    watches.spawn(follow(leases, everywhere().fields(&corrd), sender.clone(), |news| {
        WatchNews::Lease(news).into()
    }));
    watches
}

/// Follows one resource for as long as somebody listens.
async fn follow<K, T>(
    api: Api<K>,
    config: watcher::Config,
    sender: Sender<T>,
    wrap: impl Fn(News<K>) -> T,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let resource = K::plural(&()).into_owned();
    let mut was_absent = false;
    let stream = watcher(api, config).backoff(Pauses::default()).into_stream();
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        let news = match event {
            Ok(Event::Init) => News::ListBegins,
            Ok(Event::InitApply(object) | Event::Apply(object)) => News::Seen(Box::new(object)),
            Ok(Event::Delete(object)) => News::Gone(Box::new(object)),
            Ok(Event::InitDone) => {
                was_absent = false;
                News::ListEnds
            }
            Err(error) if is_not_served(&error) => {
                if !std::mem::replace(&mut was_absent, true) {
                    info!(resource, "not installed; Pods that refer to it will wait");
                }
                News::Absent
            }
            Err(error) => {
                warn!(resource, %error, "watch failed; starting it again");
                News::Failed
            }
        };
        if sender.send(wrap(news)).await.is_err() {
            return;
        }
    }
}

fn is_not_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        return false;
    };
    status.code == 404
}

/// A CRD that is installed, or an API server that is back, is noticed within this time.
const PAUSE_MAX: Duration = Duration::from_secs(3);
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// Pauses between tries, doubling.
#[derive(Debug)]
struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: PAUSE_FIRST }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(PAUSE_MAX);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        *self = Self::default();
    }
}
