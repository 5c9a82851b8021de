//! Watches: each resource is listed, then followed, and listed again when that breaks.
//!
//! [`cursor`] says what to ask next (no I/O), [`told`] reads answers object by object, whether they are written in
//! JSON ([`frames`]) or protobuf ([`binary`]), [`follow`] asks; [`page`] asks for a list beside all that.

mod binary;
mod cursor;
mod follow;
mod frames;
#[cfg(test)]
mod golden_tests;
mod page;
mod told;

use std::marker::PhantomData;

use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

pub(crate) use frames::Unreadable;
pub(crate) use page::{Page, Unanswered};

use crate::wire::{
    Wire, WireBudget, WireBundle, WireCorridor, WireLease, WireNamespace, WireNode, WirePod,
    WirePolicy, WireReplicaSet, WireReplicationController, WireService, WireStatefulSet,
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

/// With what is read, and where.
pub(crate) struct Reading {
    pub client: Client,
    /// None: where it is started.
    pub on: Option<Handle>,
}

/// Starts every watch. They end when the returned set is dropped.
pub(crate) fn start<T>(reading: &Reading, sender: &Sender<T>) -> JoinSet<()>
where
    T: From<WatchNews> + Send + 'static,
{
    let mut watches = JoinSet::new();
    everywhere(&mut watches, reading, sender, WatchNews::Pod);
    everywhere(&mut watches, reading, sender, WatchNews::Node);
    everywhere(&mut watches, reading, sender, WatchNews::Corridor);
    everywhere(&mut watches, reading, sender, WatchNews::Bundle);
    everywhere(&mut watches, reading, sender, WatchNews::Policy);
    everywhere(&mut watches, reading, sender, WatchNews::Namespace);
    everywhere(&mut watches, reading, sender, WatchNews::Budget);
    everywhere(&mut watches, reading, sender, WatchNews::Service);
    everywhere(&mut watches, reading, sender, WatchNews::ReplicationController);
    everywhere(&mut watches, reading, sender, WatchNews::ReplicaSet);
    everywhere(&mut watches, reading, sender, WatchNews::StatefulSet);
    // A field selector names one object, and there are a handful of Leases: all of them.
    let namespace = Some(crds::SYSTEM_NAMESPACE);
    within(&mut watches, reading, sender, namespace, WatchNews::Lease);
    watches
}

/// Follows a resource in the whole cluster.
fn everywhere<K, T>(
    watches: &mut JoinSet<()>,
    reading: &Reading,
    sender: &Sender<T>,
    wrap: fn(News<K>) -> WatchNews,
) where
    K: Wire,
    T: From<WatchNews> + Send + 'static,
{
    within(watches, reading, sender, None, wrap);
}

fn within<K, T>(
    watches: &mut JoinSet<()>,
    reading: &Reading,
    sender: &Sender<T>,
    namespace: Option<&'static str>,
    wrap: fn(News<K>) -> WatchNews,
) where
    K: Wire,
    T: From<WatchNews> + Send + 'static,
{
    let follower = Follower {
        client: reading.client.clone(),
        namespace,
        sender: sender.clone(),
        wrap: move |news| wrap(news).into(),
        kind: PhantomData,
    };
    match &reading.on {
        Some(handle) => watches.spawn_on(follower.run(), handle),
        None => watches.spawn(follower.run()),
    };
}
