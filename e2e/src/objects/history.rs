//! Every version of the custom resources of one namespace, as a watch shows them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::custom::{CustomKind, as_value};
use crate::error::{Doing as _, Error, Result};

/// Longer than any test that keeps a history.
const WATCH_SECONDS: u32 = 290;

/// Records in the background from the moment it was started.
#[derive(Debug)]
pub struct History {
    versions: Arc<Mutex<Vec<(Instant, Value)>>>,
    problem: Arc<Mutex<Option<Error>>>,
    changed: watch::Receiver<()>,
    task: JoinHandle<()>,
}

impl History {
    /// Records every version of a kind's objects in a namespace from now on.
    pub async fn start(client: &Client, kind: CustomKind, namespace: &str) -> Result<Self> {
        let api = kind.objects_in(client, namespace);
        let list = api.list(&ListParams::default()).await.doing("listing objects to record")?;
        let from = list.metadata.resource_version.clone().unwrap_or_default();
        let first = list.items.iter().map(|it| Ok((Instant::now(), as_value(it)?)));
        let versions = Arc::new(Mutex::new(first.collect::<Result<Vec<_>>>()?));
        let problem = Arc::new(Mutex::new(None));
        let (tell, changed) = watch::channel(());
        let task = {
            let (versions, problem) = (versions.clone(), problem.clone());
            tokio::spawn(async move {
                let ended = record(&api, &from, &versions, &tell).await;
                let why = ended.err().unwrap_or_else(|| {
                    Error::malformed("recording objects", "the watch ended before the test")
                });
                *problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                // The receiver is dropped with the history.
                let _ = tell.send(());
            })
        };
        Ok(Self { versions, problem, changed, task })
    }

    /// The versions of one object so far, oldest first.
    pub fn of(&self, uid: &str) -> Vec<Value> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = versions.iter().filter(|(_, version)| version["metadata"]["uid"] == uid);
        of_it.map(|(_, version)| version.clone()).collect()
    }

    /// When the first version of an object came in of which `is` is true.
    pub fn first_seen(&self, uid: &str, is: impl Fn(&Value) -> bool) -> Option<Instant> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_it = versions.iter().filter(|(_, version)| version["metadata"]["uid"] == uid);
        of_it.find(|(_, version)| is(version)).map(|(at, _)| *at)
    }

    /// The phases that one object went through, each change once.
    pub fn phases(&self, uid: &str) -> Vec<String> {
        let phase =
            |version: &Value| version["status"]["phase"].as_str().unwrap_or_default().to_owned();
        let mut phases: Vec<String> = self.of(uid).iter().map(phase).collect();
        phases.dedup();
        phases
    }

    /// Waits until `done` is true of the versions of one object.
    pub async fn until(
        &self,
        uid: &str,
        awaited: &str,
        patience: Duration,
        done: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let mut changed = self.changed.clone();
        let waiting = async {
            loop {
                changed.mark_unchanged();
                if let Some(problem) =
                    self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
                {
                    return Err(problem);
                }
                let versions = self.of(uid);
                if done(&versions) {
                    return Ok(versions);
                }
                if changed.changed().await.is_err() {
                    return Err(Error::malformed("recording objects", "the record has ended"));
                }
            }
        };
        timeout(patience, waiting).await.unwrap_or_else(|_| {
            let last = self.of(uid).pop().unwrap_or_default();
            let seen = format!("phases {:?}; the last version is {last}", self.phases(uid));
            let seconds = patience.as_secs();
            Err(Error::TimedOut { awaited: awaited.to_owned(), seconds, seen })
        })
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn record(
    api: &Api<DynamicObject>,
    from: &str,
    versions: &Mutex<Vec<(Instant, Value)>>,
    tell: &watch::Sender<()>,
) -> Result<()> {
    let doing = "watching objects to record";
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = api.watch(&params, from).await.doing(doing)?;
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        match event.doing(doing)? {
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => {
                let version = as_value(&object)?;
                let arrived = (Instant::now(), version);
                versions.lock().unwrap_or_else(PoisonError::into_inner).push(arrived);
                // The receiver is dropped with the history.
                let _ = tell.send(());
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(Error::malformed(doing, status)),
        }
    }
    Ok(())
}
