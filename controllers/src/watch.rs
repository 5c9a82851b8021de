//! Follows one kind: a list, then what changes, and a list again when that breaks.

use std::fmt::Debug;

use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};

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
    let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
    let mut was_absent = false;
    while let Some(event) = stream.next().await {
        let news = match event {
            Ok(Event::Init) => News::ListBegins,
            Ok(Event::InitApply(object)) => News::Listed(object),
            Ok(Event::InitDone) => {
                was_absent = false;
                News::ListEnds
            }
            Ok(Event::Apply(object)) => News::Seen(object),
            Ok(Event::Delete(object)) => News::Gone(object),
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
                if status.code == 404 =>
            {
                if !std::mem::replace(&mut was_absent, true) {
                    info!(resource, "not installed; nothing to control");
                }
                News::Absent
            }
            Err(error) => {
                warn!(resource, %error, "watch failed; starting it again");
                continue;
            }
        };
        if sender.send(news).await.is_err() {
            return;
        }
    }
}

/// The API server ends each watch after this long, and we go on from there: sooner than the client
/// takes a quiet connection for a dead one.
const WATCH_SECONDS_MAX: u32 = 25;
