//! Follows one kind: a list, then what changes, and a list again when that breaks.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::context::chance;
use crate::line;

/// The API server ends each watch after this long, and we go on from there: sooner than the client
/// takes a quiet connection for a dead one.
const WATCH_SECONDS_MAX: u32 = 25;
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// A CRD that is installed, or an API server that is back, is noticed within this time. There are three kinds, so that
/// costs nobody much.
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum News<K> {
    ListBegins,
    Listed(K),
    ListEnds,
    Seen(K),
    Gone(K),
    /// Its CRD is not installed.
    Absent,
}

/// Sends news for as long as somebody listens. Pauses grow while the API server fails.
pub(crate) async fn follow<K>(api: Api<K>, sender: Sender<News<K>>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let resource = K::plural(&()).into_owned();
    let config = watcher::Config::default().timeout(WATCH_SECONDS_MAX);
    let mut stream = std::pin::pin!(watcher(api.clone(), config.clone()));
    let (mut was_absent, mut failures) = (false, 0);
    while let Some(event) = stream.next().await {
        let news = match event {
            Ok(Event::Init) => News::ListBegins,
            Ok(Event::InitApply(object)) => News::Listed(object),
            Ok(Event::InitDone) => {
                (was_absent, failures) = (false, 0);
                News::ListEnds
            }
            Ok(Event::Apply(object)) => {
                failures = 0;
                News::Seen(object)
            }
            Ok(Event::Delete(object)) => {
                failures = 0;
                News::Gone(object)
            }
            Err(error) => {
                let broken = Broken::of(&error);
                match broken {
                    Broken::TooOld => info!(resource, %error, "listing it again"),
                    Broken::NotServed if was_absent => {}
                    Broken::NotServed => info!(resource, "not installed; nothing to control"),
                    Broken::Failed => warn!(resource, %error, "watch failed; starting it again"),
                }
                was_absent = broken == Broken::NotServed;
                if was_absent && sender.send(News::Absent).await.is_err() {
                    return;
                }
                // What is too old, or was of a CRD that is gone, is of no use: it begins with a list.
                if broken != Broken::Failed {
                    stream.set(watcher(api.clone(), config.clone()));
                }
                if broken != Broken::TooOld || failures > 0 {
                    sleep(line::pause(PAUSE_FIRST, PAUSE_MAX, failures, chance())).await;
                }
                failures = failures.saturating_add(1);
                continue;
            }
        };
        if sender.send(news).await.is_err() {
            return;
        }
    }
}

/// Why a list or a watch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// 410: what is known is too old, and everything is listed at once.
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
