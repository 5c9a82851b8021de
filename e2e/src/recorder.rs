//! Every version of every Pod, as a watch shows them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::error::{Doing as _, Error, Result};
use crate::objects::pods::PodState as _;

/// The API server ends a watch after this, and the recorder begins the next where it ended.
const WATCH_SECONDS: u32 = 290;
/// An API server that is away for longer does not come back.
const AWAY_TIME_MAX: Duration = Duration::from_mins(1);
const AWAY_POLL_EVERY: Duration = Duration::from_millis(100);

/// One version of one Pod.
#[derive(Debug, Clone)]
pub struct PodVersion {
    pub resource_version: u64,
    /// The Pod is gone as of this version.
    pub deleted: bool,
    pub pod: Pod,
    /// When it reached us.
    pub seen: Instant,
}

/// Records in the background from the moment it was started.
#[derive(Debug)]
pub struct Recorder {
    pods: Api<Pod>,
    recorded: Arc<Mutex<Recorded>>,
    changed: watch::Receiver<()>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Recorded {
    versions: Vec<PodVersion>,
    /// Once set, versions are missing.
    problem: Option<Error>,
}

impl Recorder {
    /// Lists every Pod and records what follows that list without a gap.
    pub async fn start(client: &Client) -> Result<Self> {
        let pods: Api<Pod> = Api::all(client.clone());
        let list = pods.list(&ListParams::default()).await.doing("listing Pods to record")?;
        let from = list.metadata.resource_version.clone().unwrap_or_default();
        let versions = list
            .items
            .into_iter()
            .map(|pod| PodVersion::new(pod, false))
            .collect::<Result<Vec<_>>>()?;
        let recorded = Arc::new(Mutex::new(Recorded { versions, problem: None }));
        let (tell, changed) = watch::channel(());
        let task = tokio::spawn(record(pods.clone(), from, Arc::clone(&recorded), tell));
        Ok(Self { pods, recorded, changed, task })
    }

    /// Waits until `done` is true of what was recorded so far.
    pub async fn until(
        &self,
        awaited: &str,
        patience: Duration,
        mut done: impl FnMut(&[PodVersion]) -> bool,
    ) -> Result<()> {
        let mut changed = self.changed.clone();
        let waiting = async {
            loop {
                changed.mark_unchanged();
                if self.look(&mut done)? {
                    return Ok(());
                }
                if changed.changed().await.is_err() {
                    return Err(Error::malformed("recording Pods", "the recorder has stopped"));
                }
            }
        };
        let seconds = patience.as_secs();
        timeout(patience, waiting).await.unwrap_or_else(|_| {
            let seen = format!("{} versions of Pods", self.look_at(<[PodVersion]>::len));
            Err(Error::TimedOut { awaited: awaited.to_owned(), seconds, seen })
        })
    }

    /// Waits until everything there is by now has been recorded, and returns the record.
    pub async fn finish(self, patience: Duration) -> Result<Vec<PodVersion>> {
        let list = self.pods.list(&ListParams::default()).await.doing("listing recorded Pods")?;
        let newest = list
            .items
            .into_iter()
            .map(|pod| PodVersion::new(pod, false).map(|version| version.resource_version))
            .collect::<Result<Vec<_>>>()?;
        let newest = newest.into_iter().max().unwrap_or(0);
        self.until("the record to be complete", patience, |versions| {
            versions.iter().any(|version| version.resource_version >= newest) || newest == 0
        })
        .await?;
        Ok(self.look_at(<[PodVersion]>::to_vec))
    }

    fn look(&self, done: &mut impl FnMut(&[PodVersion]) -> bool) -> Result<bool> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.problem.take() {
            Some(problem) => Err(problem),
            None => Ok(done(&recorded.versions)),
        }
    }

    fn look_at<T>(&self, read: impl FnOnce(&[PodVersion]) -> T) -> T {
        read(&self.recorded.lock().unwrap_or_else(PoisonError::into_inner).versions)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PodVersion {
    fn new(pod: Pod, deleted: bool) -> Result<Self> {
        let text = pod.resource_version().unwrap_or_default();
        let resource_version = text.parse().map_err(|_| {
            Error::malformed(format!("reading a version of Pod {}", pod.name_any()), text)
        })?;
        Ok(Self { resource_version, deleted, pod, seen: Instant::now() })
    }
}

/// The versions of one Pod, oldest first.
pub fn versions_of<'a>(versions: &'a [PodVersion], uid: &str) -> Vec<&'a PodVersion> {
    versions.iter().filter(|version| version.pod.uid_str() == uid).collect()
}

/// How many different Pods have been seen bound.
pub fn bound_count(versions: &[PodVersion]) -> usize {
    let bound = versions.iter().filter(|version| version.pod.node().is_some());
    bound.map(|version| version.pod.uid_str()).collect::<std::collections::HashSet<_>>().len()
}

async fn record(
    pods: Api<Pod>,
    mut from: String,
    recorded: Arc<Mutex<Recorded>>,
    tell: watch::Sender<()>,
) {
    let (mut working, mut was_away) = (Instant::now(), false);
    loop {
        let before = from.clone();
        let outcome = record_one_watch(&pods, &mut from, &recorded, &tell).await;
        if outcome.is_ok() || from != before {
            working = Instant::now();
        }
        match outcome {
            Ok(()) => was_away = false,
            // A server that is being restarted: the next watch goes on where this one ended.
            Err(Error::Kube { .. }) if working.elapsed() < AWAY_TIME_MAX => {
                was_away = true;
                sleep(AWAY_POLL_EVERY).await;
            }
            // It is back, and its memory of what was before is gone: what there is now counts from here.
            Err(_) if was_away && relist(&pods, &mut from, &recorded, &tell).await.is_ok() => {
                was_away = false;
            }
            Err(problem) => {
                recorded.lock().unwrap_or_else(PoisonError::into_inner).problem = Some(problem);
                // The receiver is dropped with the recorder.
                let _ = tell.send(());
                return;
            }
        }
    }
}

async fn relist(
    pods: &Api<Pod>,
    from: &mut String,
    recorded: &Mutex<Recorded>,
    tell: &watch::Sender<()>,
) -> Result<()> {
    let list = pods.list(&ListParams::default()).await.doing("listing Pods to record")?;
    *from = list.metadata.resource_version.clone().unwrap_or_default();
    let versions = list.items.into_iter().map(|pod| PodVersion::new(pod, false));
    let versions = versions.collect::<Result<Vec<_>>>()?;
    recorded.lock().unwrap_or_else(PoisonError::into_inner).versions.extend(versions);
    // The receiver is dropped with the recorder.
    let _ = tell.send(());
    Ok(())
}

async fn record_one_watch(
    pods: &Api<Pod>,
    from: &mut String,
    recorded: &Mutex<Recorded>,
    tell: &watch::Sender<()>,
) -> Result<()> {
    let doing = "watching Pods to record";
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = pods.watch(&params, from).await.doing(doing)?;
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        let (pod, deleted) = match event.doing(doing)? {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
            WatchEvent::Deleted(pod) => (pod, true),
            WatchEvent::Bookmark(bookmark) => {
                *from = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => return Err(Error::malformed(doing, status)),
        };
        let version = PodVersion::new(pod, deleted)?;
        *from = version.resource_version.to_string();
        recorded.lock().unwrap_or_else(PoisonError::into_inner).versions.push(version);
        // The receiver is dropped with the recorder.
        let _ = tell.send(());
    }
    Ok(())
}
