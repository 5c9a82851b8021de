//! Every version of objects of some kinds, as watches show them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchEvent, WatchParams,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::{Doing as _, Error, Result};

/// The API server ends a watch after this, and the recorder begins the next where it ended.
const WATCH_SECONDS: u32 = 290;

/// Plural of the kind, namespace, name.
pub type Key = (String, String, String);

/// One version of one object.
#[derive(Debug, Clone)]
pub struct Version {
    pub resource_version: u64,
    /// The object is gone as of this version.
    pub deleted: bool,
    pub object: Value,
    pub seen: Instant,
}

/// Records in the background from the moment it was started.
#[derive(Debug)]
pub struct Versions {
    recorded: Arc<Mutex<Recorded>>,
    changed: watch::Receiver<()>,
    // Dropped with the recorder, and the watches with it.
    _watches: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Recorded {
    histories: BTreeMap<Key, Vec<Version>>,
    /// Once set, versions are missing.
    problem: Option<String>,
}

impl Versions {
    /// Lists the objects of these kinds and records what follows those lists without a gap.
    pub async fn start(client: &Client, kinds: &[ApiResource]) -> Result<Self> {
        let recorded = Arc::new(Mutex::new(Recorded::default()));
        let (tell, changed) = watch::channel(());
        let mut watches = JoinSet::new();
        for kind in kinds {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
            let doing = format!("listing {} to record", kind.plural);
            let list = api.list(&ListParams::default()).await.doing(doing)?;
            let from = list.metadata.resource_version.clone().unwrap_or_default();
            for object in list.items {
                add(&recorded, &kind.plural, &object, false)?;
            }
            let (recorded, tell) = (Arc::clone(&recorded), tell.clone());
            watches.spawn(record(api, kind.plural.clone(), from, recorded, tell));
        }
        Ok(Self { recorded, changed, _watches: watches })
    }

    /// Waits until an object is as `done` says; `None` = it is not there. Returns it as it is then.
    pub async fn until(
        &self,
        key: &Key,
        awaited: &str,
        patience: Duration,
        mut done: impl FnMut(Option<&Value>) -> bool,
    ) -> Result<Value> {
        let mut changed = self.changed.clone();
        let waiting = async {
            loop {
                changed.mark_unchanged();
                let now = self.now(key)?;
                if done(now.as_ref()) {
                    return Ok(now.unwrap_or_default());
                }
                if changed.changed().await.is_err() {
                    return Err(Error::malformed("recording objects", "the recorder has stopped"));
                }
            }
        };
        timeout(patience, waiting).await.unwrap_or_else(|_| {
            Err(Error::TimedOut {
                awaited: format!("{}/{} in {} to be {awaited}", key.0, key.2, key.1),
                seconds: patience.as_secs(),
                seen: describe(&self.history(key)),
            })
        })
    }

    /// Every version of an object, oldest first.
    pub fn history(&self, key: &Key) -> Vec<Version> {
        self.lock().histories.get(key).cloned().unwrap_or_default()
    }

    /// Every version of every object of a kind, oldest first for each.
    pub fn histories(&self, plural: &str) -> Vec<Vec<Version>> {
        let recorded = self.lock();
        let of_kind = recorded.histories.iter().filter(|(key, _)| key.0 == plural);
        of_kind.map(|(_, history)| history.clone()).collect()
    }

    /// Forgets an object that is not asked for any more.
    pub fn forget(&self, key: &Key) {
        self.lock().histories.remove(key);
    }

    fn now(&self, key: &Key) -> Result<Option<Value>> {
        let recorded = self.lock();
        if let Some(problem) = &recorded.problem {
            return Err(Error::malformed("recording objects", problem));
        }
        let last = recorded.histories.get(key).and_then(|history| history.last());
        Ok(last.filter(|version| !version.deleted).map(|version| version.object.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kind with this plural.
pub fn kind(plural: &str) -> ApiResource {
    let (group, version, kind) = match plural {
        "pods" => ("", "v1", "Pod"),
        "persistentvolumes" => ("", "v1", "PersistentVolume"),
        "persistentvolumeclaims" => ("", "v1", "PersistentVolumeClaim"),
        "corridors" => ("corridoros.io", "v1alpha1", "Corridor"),
        "memorybundles" => ("corridoros.io", "v1alpha1", "MemoryBundle"),
        "attestationpolicies" => ("corridoros.io", "v1alpha1", "AttestationPolicy"),
        _ => unreachable!("nobody asks for {plural}"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// What each version changed, for people: one line for each.
pub fn describe(history: &[Version]) -> String {
    let mut text = format!("{} versions", history.len());
    let Some(first) = history.first() else { return text };
    let mut before = &first.object;
    for version in &history[1..] {
        let mut changes = Vec::new();
        differences("", before, &version.object, &mut changes);
        let end = if version.deleted { "gone: " } else { "" };
        let after = version.seen.duration_since(first.seen).as_millis();
        let _ = write!(text, "\n  after {after} ms: {end}{}", changes.join(", "));
        before = &version.object;
    }
    text
}

/// The places at which two objects differ, with what is there now. What changes with every version
/// is left out.
pub fn differences(place: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    /// As much of a value as tells which one it is.
    const SHOWN_MAX: usize = 60;
    let is_of_every_version =
        matches!(place, "metadata.managedFields" | "metadata.resourceVersion");
    if before == after || is_of_every_version {
        return;
    }
    let (Some(old), Some(new)) = (by_type(before), by_type(after)) else {
        let shown: String = after.to_string().chars().take(SHOWN_MAX).collect();
        found.push(format!("{place}={shown}"));
        return;
    };
    for (name, value) in &new {
        let inner = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        differences(&inner, old.get(name).unwrap_or(&Value::Null), value, found);
    }
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    found.extend(removed.map(|name| format!("{place}.{name} removed")));
}

/// Members by name; conditions by type.
fn by_type(value: &Value) -> Option<BTreeMap<String, Value>> {
    match value {
        Value::Object(members) => {
            Some(members.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Value::Array(items) if items.iter().all(|item| item["type"].is_string()) => {
            let typed = |item: &Value| item["type"].as_str().unwrap_or_default().to_owned();
            (!items.is_empty())
                .then(|| items.iter().map(|item| (typed(item), item.clone())).collect())
        }
        _ => None,
    }
}

async fn record(
    api: Api<DynamicObject>,
    plural: String,
    mut from: String,
    recorded: Arc<Mutex<Recorded>>,
    tell: watch::Sender<()>,
) {
    loop {
        if let Err(problem) = record_one_watch(&api, &plural, &mut from, &recorded, &tell).await {
            let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.problem = Some(problem.to_string());
            // The receiver is dropped with the recorder.
            let _ = tell.send(());
            return;
        }
    }
}

async fn record_one_watch(
    api: &Api<DynamicObject>,
    plural: &str,
    from: &mut String,
    recorded: &Mutex<Recorded>,
    tell: &watch::Sender<()>,
) -> Result<()> {
    let doing = || format!("watching {plural} to record");
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = api.watch(&params, from).await.doing(doing())?;
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        let (object, deleted) = match event.doing(doing())? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                *from = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => return Err(Error::malformed(doing(), status)),
        };
        *from = add(recorded, plural, &object, deleted)?.to_string();
        // The receiver is dropped with the recorder.
        let _ = tell.send(());
    }
    Ok(())
}

fn add(
    recorded: &Mutex<Recorded>,
    plural: &str,
    object: &DynamicObject,
    deleted: bool,
) -> Result<u64> {
    let doing = || format!("reading a version of {plural}/{}", object.name_any());
    let text = object.resource_version().unwrap_or_default();
    let resource_version = text.parse().map_err(|_| Error::malformed(doing(), text))?;
    let key = (plural.to_owned(), object.namespace().unwrap_or_default(), object.name_any());
    let value = serde_json::to_value(object).doing(doing())?;
    let version = Version { resource_version, deleted, object: value, seen: Instant::now() };
    let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
    recorded.histories.entry(key).or_default().push(version);
    Ok(resource_version)
}
