//! Watches: each resource is listed, then followed, and listed again when that breaks.
//!
//! [`cursor`] says what to ask next (no I/O), [`frames`] reads answers object by object, [`follow`] asks.

mod cursor;
mod follow;
mod frames;

use std::marker::PhantomData;

use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

pub(crate) use frames::{Page, Unreadable, read};

use crate::wire::{
    WireBudget, WireBundle, WireCorridor, WireLease, WireNamespace, WireNode, WirePod, WirePolicy,
    WireReplicaSet, WireReplicationController, WireService, WireStatefulSet,
};
use follow::Follower;

/// News of one resource.
#[derive(Debug)]
pub(crate) enum News<K> {
    ListBegins,
    Seen(Box<K>),
    Gone(Box<K>),
    /// It is there, and cannot be read.
    Unreadable(Box<Unreadable>),
    UnreadableGone(Box<Unreadable>),
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
    let namespace = Some(crds::SYSTEM_NAMESPACE);
    within(&mut watches, client, sender, namespace, WatchNews::Lease);
    watches
}

/// Follows a resource in the whole cluster.
fn everywhere<K, T>(
    watches: &mut JoinSet<()>,
    client: &Client,
    sender: &Sender<T>,
    wrap: fn(News<K>) -> WatchNews,
) where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
    T: From<WatchNews> + Send + 'static,
{
    within(watches, client, sender, None, wrap);
}

fn within<K, T>(
    watches: &mut JoinSet<()>,
    client: &Client,
    sender: &Sender<T>,
    namespace: Option<&'static str>,
    wrap: fn(News<K>) -> WatchNews,
) where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
    T: From<WatchNews> + Send + 'static,
{
    let follower = Follower {
        client: client.clone(),
        namespace,
        sender: sender.clone(),
        wrap: move |news| wrap(news).into(),
        kind: PhantomData,
    };
    watches.spawn(follower.run());
}
