//! Follows one kind: a list, then what changes, and a list again when that breaks.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::work_queue::{Backoff, jitter};

/// The API server ends each watch after this long and the next one goes on from there: sooner than the client takes a
/// quiet connection for a dead one.
const WATCH_SECONDS_MAX: u32 = 25;
/// A CRD that is installed, or an API server that is back, is noticed within this time. Few kinds are watched, so the
/// cost is small.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1) };
/// A list of a thousand objects fits without blocking the watch.
pub(crate) const EVENTS_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) enum WatchEvent<K> {
    ListStarted,
    Listed(K),
    ListDone,
    Applied(K),
    Deleted(K),
    /// The CRD of the kind is not installed.
    NotInstalled,
}

/// Sends events until the receiver is dropped. Delays grow while the API server fails.
pub(crate) async fn follow<K>(api: Api<K>, sender: Sender<WatchEvent<K>>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let resource = K::plural(&()).into_owned();
    let config = watcher::Config::default().timeout(WATCH_SECONDS_MAX);
    let mut stream = std::pin::pin!(watcher(api.clone(), config.clone()));
    let (mut was_not_installed, mut failures) = (false, 0);
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(Event::Init) => WatchEvent::ListStarted,
            Ok(Event::InitApply(object)) => WatchEvent::Listed(object),
            Ok(Event::InitDone) => {
                (was_not_installed, failures) = (false, 0);
                WatchEvent::ListDone
            }
            Ok(Event::Apply(object)) => {
                failures = 0;
                WatchEvent::Applied(object)
            }
            Ok(Event::Delete(object)) => {
                failures = 0;
                WatchEvent::Deleted(object)
            }
            Err(error) => {
                let broken = Broken::of(&error);
                match broken {
                    Broken::TooOld => info!(resource, %error, "listing it again"),
                    Broken::NotServed if was_not_installed => {}
                    Broken::NotServed => info!(resource, "not installed; nothing to control"),
                    Broken::Failed => warn!(resource, %error, "watch failed; starting it again"),
                }
                was_not_installed = broken == Broken::NotServed;
                if was_not_installed && sender.send(WatchEvent::NotInstalled).await.is_err() {
                    return;
                }
                // A version that is too old, or of a CRD that is gone, is of no use: the next watch begins with a list.
                if broken != Broken::Failed {
                    stream.set(watcher(api.clone(), config.clone()));
                }
                if broken != Broken::TooOld || failures > 0 {
                    sleep(BACKOFF.delay(failures, jitter())).await;
                }
                failures = failures.saturating_add(1);
                continue;
            }
        };
        if sender.send(event).await.is_err() {
            return;
        }
    }
}

/// Why a list or a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// 410: the known version is too old, and everything is listed again.
    TooOld,
    /// 404: its CRD is not installed.
    NotServed,
    Failed,
}

impl Broken {
    fn of(error: &watcher::Error) -> Self {
        let code = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status) => status.code,
            _ => return Self::Failed,
        };
        match code {
            410 => Self::TooOld,
            404 => Self::NotServed,
            _ => Self::Failed,
        }
    }
}
