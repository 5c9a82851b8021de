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

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::task::{Id, JoinSet};

pub(crate) use frames::Unreadable;
pub(crate) use page::{Listing, Unanswered};

use crate::health::Health;
use crate::wire::{
    Wire, WireBudget, WireBundle, WireCorridor, WireDeviceClass, WireLease, WireNamespace,
    WireNode, WirePod, WirePolicy, WireReplicaSet, WireReplicationController, WireService,
    WireStatefulSet,
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
    DeviceClass(News<WireDeviceClass>),
}

/// With what is read, and where.
pub(crate) struct Reading {
    pub client: Client,
    /// None: where it is started.
    pub on: Option<Handle>,
}

/// A watch that has ended though it goes on for ever: what changes from now on is not seen.
#[derive(Debug, thiserror::Error)]
#[error("the watch of {resource} has ended: {why}")]
pub struct WatchEnded {
    resource: String,
    why: String,
}

/// Every watch. They end when this is dropped.
pub(crate) struct Watches {
    tasks: JoinSet<()>,
    resources: HashMap<Id, String>,
}

impl Watches {
    /// Ready when one has ended, by a panic or otherwise.
    pub async fn ended(&mut self) -> WatchEnded {
        let (id, why) = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => (Some(id), "it returned".to_owned()),
            Some(Err(error)) => (Some(error.id()), error.to_string()),
            None => (None, "none is left".to_owned()),
        };
        let resource = id.and_then(|id| self.resources.get(&id).cloned());
        WatchEnded { resource: resource.unwrap_or_else(|| "every resource".to_owned()), why }
    }

    /// Runs it where everything is read.
    fn spawn(
        &mut self,
        on: Option<&Handle>,
        resource: String,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = match on {
            Some(handle) => self.tasks.spawn_on(task, handle),
            None => self.tasks.spawn(task),
        };
        self.resources.insert(task.id(), resource);
    }
}

/// Starts every watch, and beats where they run.
pub(crate) fn start<T>(reading: &Reading, sender: &Sender<T>, health: &Arc<Health>) -> Watches
where
    T: From<WatchNews> + Send + 'static,
{
    let mut watches = Watches { tasks: JoinSet::new(), resources: HashMap::new() };
    let beats = health.clone();
    watches.spawn(reading.on.as_ref(), "every resource".to_owned(), async move {
        beats.pulse.keep_beating().await;
    });
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
    everywhere(&mut watches, reading, sender, WatchNews::DeviceClass);
    // A field selector names one object, and there are a handful of Leases: all of them.
    let namespace = Some(crds::SYSTEM_NAMESPACE);
    within(&mut watches, reading, sender, namespace, WatchNews::Lease);
    watches
}

/// Follows a resource in the whole cluster.
fn everywhere<K, T>(
    watches: &mut Watches,
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
    watches: &mut Watches,
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
    watches.spawn(reading.on.as_ref(), K::plural(&()).into_owned(), follower.run());
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ended_by(task: impl Future<Output = ()> + Send + 'static) -> String {
        let mut watches = Watches { tasks: JoinSet::new(), resources: HashMap::new() };
        watches.spawn(None, "nodes".to_owned(), std::future::pending());
        watches.spawn(None, "pods".to_owned(), task);
        watches.ended().await.to_string()
    }

    #[tokio::test]
    async fn a_watch_that_panicked_or_returned_is_named() {
        let panicked = ended_by(async { panic!("as said") }).await;
        assert!(panicked.starts_with("the watch of pods has ended: "), "{panicked}");
        assert!(panicked.contains("as said"), "{panicked}");
        assert_eq!(ended_by(async {}).await, "the watch of pods has ended: it returned");
    }
}
