//! Watches: each resource is listed, then followed, and listed again when that breaks.

use std::time::Duration;

use futures::StreamExt;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::wire::{
    WireBudget, WireBundle, WireCorridor, WireLease, WireNamespace, WireNode, WirePod, WirePolicy,
    WireReplicaSet, WireReplicationController, WireService, WireStatefulSet,
};

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
    Bundle(News<WireBundle>),
    Policy(News<WirePolicy>),
    Namespace(News<WireNamespace>),
    Lease(News<WireLease>),
    Budget(News<WireBudget>),
    Service(News<WireService>),
    ReplicationController(News<WireReplicationController>),
    ReplicaSet(News<WireReplicaSet>),
    StatefulSet(News<WireStatefulSet>),
}

/// Starts every watch. They end when the returned set is dropped.
pub(crate) fn start<T>(client: &Client, sender: &Sender<T>) -> JoinSet<()>
where
    T: From<WatchNews> + Send + 'static,
{
    let mut watches = JoinSet::new();
    everywhere(&mut watches, client, sender, WatchNews::Pod);
    everywhere(&mut watches, client, sender, WatchNews::Node);
    everywhere(&mut watches, client, sender, WatchNews::Corridor);
    everywhere(&mut watches, client, sender, WatchNews::Bundle);
    everywhere(&mut watches, client, sender, WatchNews::Policy);
    everywhere(&mut watches, client, sender, WatchNews::Namespace);
    everywhere(&mut watches, client, sender, WatchNews::Budget);
    everywhere(&mut watches, client, sender, WatchNews::Service);
    everywhere(&mut watches, client, sender, WatchNews::ReplicationController);
    everywhere(&mut watches, client, sender, WatchNews::ReplicaSet);
    everywhere(&mut watches, client, sender, WatchNews::StatefulSet);
    // A field selector names one object, and there are a handful of Leases: all of them.
    let leases = Api::namespaced(client.clone(), crds::SYSTEM_NAMESPACE);
    watches.spawn(follow(leases, sender.clone(), |news| WatchNews::Lease(news).into()));
    watches
}

/// Follows a resource in the whole cluster.
fn everywhere<K, T>(
    watches: &mut JoinSet<()>,
    client: &Client,
    sender: &Sender<T>,
    wrap: fn(News<K>) -> WatchNews,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    T: From<WatchNews> + Send + 'static,
{
    let api = Api::all(client.clone());
    watches.spawn(follow(api, sender.clone(), move |news| wrap(news).into()));
}

/// Follows one resource for as long as somebody listens.
async fn follow<K, T>(api: Api<K>, sender: Sender<T>, wrap: impl Fn(News<K>) -> T)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let resource = K::plural(&()).into_owned();
    let mut was_absent = false;
    let mut pause = PAUSE_FIRST;
    let config = watcher::Config::default().timeout(WATCH_SECONDS_MAX);
    let mut stream = std::pin::pin!(watcher(api, config));
    while let Some(event) = stream.next().await {
        // A list that begins is no success yet: only what it brings shortens the pauses again.
        if matches!(event, Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_))) {
            (pause, was_absent) = (PAUSE_FIRST, false);
        }
        let failed = event.is_err();
        let news = match event {
            Ok(Event::Init) => News::ListBegins,
            Ok(Event::InitApply(object) | Event::Apply(object)) => News::Seen(Box::new(object)),
            Ok(Event::Delete(object)) => News::Gone(Box::new(object)),
            Ok(Event::InitDone) => News::ListEnds,
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
        if failed {
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Only a list can tell: a watch that cannot be started goes on from where it was.
fn is_not_served(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

/// A CRD that is installed, or an API server that is back, is noticed within this time.
const PAUSE_MAX: Duration = Duration::from_secs(3);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The API server ends each watch after this long, and we go on from there: one that has fallen
/// silent is noticed soon after.
const WATCH_SECONDS_MAX: u32 = 25;
