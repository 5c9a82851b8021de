//! Watches: each resource is listed, then followed, and listed again when that breaks.
//!
//! [`cursor`] decides what to request next (no I/O), [`response`] decodes responses object by object, in JSON
//! ([`frames`]) or protobuf ([`binary`]), [`follow`] sends the requests; [`page`] requests a list beside the watch.
//!
//! One change on its way to the engine:
//!
//! ```text
//!   bytes ─▶ Frame<K> ──▶ WatchEvent<K> ──▶ AnyWatchEvent ──▶ Input::Watch ──▶ engine::Event
//!            decoded      with list and     of any watched     of the driver's   translated, if it
//!            piece        error boundaries  kind               one loop          changes anything
//! ```

mod binary;
mod cursor;
mod follow;
mod frames;
#[cfg(test)]
mod golden_tests;
mod page;
mod response;

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
use crate::kinds::{self, AnyWatchEvent};
use crate::wire::Wire;
use follow::Follower;

/// A change in the watch of one resource.
#[derive(Debug)]
pub(crate) enum WatchEvent<K> {
    ListBegins,
    Seen(Box<K>),
    Gone(Box<K>),
    /// The object exists, and cannot be read.
    Unreadable(Box<Unreadable>),
    UnreadableGone(Box<Unreadable>),
    ListEnds,
    /// The resource is not served: its CRD is not installed.
    Absent,
    Failed,
}

/// The client and the runtime for lists and watches.
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

    /// Starts the watch of one kind.
    pub fn follow<K, T>(
        &mut self,
        reading: &Reading,
        sender: &Sender<T>,
        wrap: fn(WatchEvent<K>) -> AnyWatchEvent,
    ) where
        K: Wire,
        T: From<AnyWatchEvent> + Send + 'static,
    {
        let follower = Follower {
            client: reading.client.clone(),
            sender: sender.clone(),
            wrap: move |event| wrap(event).into(),
            kind: PhantomData,
        };
        self.spawn(reading.on.as_ref(), K::plural(&()).into_owned(), follower.run());
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
    T: From<AnyWatchEvent> + Send + 'static,
{
    let mut watches = Watches { tasks: JoinSet::new(), resources: HashMap::new() };
    let beats = health.clone();
    watches.spawn(reading.on.as_ref(), "every resource".to_owned(), async move {
        beats.pulse.keep_beating().await;
    });
    kinds::follow_all(&mut watches, reading, sender);
    watches
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
