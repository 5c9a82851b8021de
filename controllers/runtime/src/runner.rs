//! Runs the controller of one kind: watches it, wakes its objects, reconciles each one at a time, and backs off.

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt as _;
use prometheus::IntCounter;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::error;

use crate::api::{ApiClient, Object};
use crate::controller::{Attempt, Controller, Outcome};
use crate::triggers::{Pending, Triggers};
use crate::watch::{self, EVENTS_MAX, WatchEvent};
use crate::work_queue::{Backoff, Requeue, WorkQueue, jitter};

/// Concurrent reconciles of one kind. Each makes few calls, so this bounds what a slow daemon piles up, not the speed.
const RECONCILES_MAX: usize = 256;
/// Those of one namespace: webhooks of a namespace can make each of its writes take the whole time-out, and other
/// namespaces must not wait for that.
const RECONCILES_OF_NAMESPACE_MAX: usize = 32;
/// The delay of an object whose namespace is at that limit.
const POSTPONE: Duration = Duration::from_millis(200);
/// The longest wait while nothing is due.
const IDLE_MAX: Duration = Duration::from_mins(1);

type Key = (String, String);
/// Name and UID of the object, and how its reconcile ended.
type Ended<C> = (Key, String, Outcome<C>);

struct Entry<C: Controller> {
    object: Arc<C::Object>,
    /// `None` while a reconcile has it.
    memory: Option<C::Memory>,
    shown: Shown,
}

/// What the watch showed of an object while its reconcile was running.
#[derive(Debug, Default, PartialEq, Eq)]
enum Shown {
    #[default]
    Nothing,
    /// One version, which may be the one that the reconcile itself writes.
    Version(Option<String>),
    Several,
}

impl Shown {
    fn add(&mut self, version: Option<String>) {
        *self = match self {
            Self::Nothing => Self::Version(version),
            Self::Version(_) | Self::Several => Self::Several,
        };
    }

    /// Whether that is more than what the reconcile itself has written.
    fn is_new<K: Object>(&self, written: Option<&K>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Version(shown) => written.is_none_or(|it| it.resource_version() != *shown),
            Self::Several => true,
        }
    }
}

struct Runner<C: Controller> {
    context: Arc<C::Context>,
    /// Looked up for every sample of every object, so hashed rather than ordered.
    objects: HashMap<Key, Entry<C>>,
    by_uid: HashMap<String, Key>,
    /// Objects so far in a list that is under way.
    listed: BTreeSet<Key>,
    queue: WorkQueue<Key>,
    reconciles: JoinSet<Ended<C>>,
    running: HashMap<Id, Key>,
    /// Their number, by namespace.
    running_in: HashMap<String, usize>,
    started: IntCounter,
    is_synced: bool,
}

/// Runs the controller of one kind until the future is dropped, or until the watch of the kind ends. `reconciles` counts
/// the reconciles that were started.
pub async fn run<C: Controller>(
    context: Arc<C::Context>,
    api: ApiClient,
    backoff: Backoff,
    reconciles: IntCounter,
) {
    let (sender, mut events) = mpsc::channel(EVENTS_MAX);
    let mut watching = JoinSet::new();
    watching.spawn(watch::follow(api.all::<C::Object>(), sender));
    let owners = Arc::new(Triggers::default());
    for owned in C::owns() {
        watching.spawn((owned.wake_owners)(api.clone(), owners.clone()));
    }
    let mut runner = Runner::<C> {
        context: context.clone(),
        objects: HashMap::new(),
        by_uid: HashMap::new(),
        listed: BTreeSet::new(),
        queue: WorkQueue::new(backoff),
        reconciles: JoinSet::new(),
        running: HashMap::new(),
        running_in: HashMap::new(),
        started: reconciles,
        is_synced: false,
    };
    loop {
        runner.start_due();
        let wait = runner.wait();
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => runner.handle(event),
                // Without its watch the controller would see nothing any more. The caller ends the process.
                None => return,
            },
            pending = of_triggers(C::triggers(&context)) => runner.wake(&pending),
            pending = owners.next() => runner.wake(&pending),
            // Without one of its watches, too.
            Some(_) = watching.join_next() => return,
            Some(ended) = runner.reconciles.join_next_with_id() => runner.ended(ended),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn of_triggers(triggers: Option<&Triggers>) -> Pending {
    match triggers {
        Some(triggers) => triggers.next().await,
        None => pending().await,
    }
}

impl<C: Controller> Runner<C> {
    fn wait(&self) -> Duration {
        if self.reconciles.len() >= RECONCILES_MAX {
            return IDLE_MAX;
        }
        let due = self.queue.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        due.unwrap_or(IDLE_MAX).min(IDLE_MAX)
    }

    fn start_due(&mut self) {
        while self.reconciles.len() < RECONCILES_MAX {
            let now = Instant::now();
            let Some((key, may_retry)) = self.queue.pop(now) else { return };
            let of_namespace = self.running_in.get(&key.0).copied().unwrap_or_default();
            if of_namespace >= RECONCILES_OF_NAMESPACE_MAX {
                self.queue.postpone(&key, now + POSTPONE);
                continue;
            }
            let Some(entry) = self.objects.get_mut(&key) else {
                self.queue.remove(&key);
                continue;
            };
            let (object, memory) = (entry.object.clone(), entry.memory.take().unwrap_or_default());
            let uid = object.uid().unwrap_or_default();
            let attempt = Attempt { may_retry, jitter: jitter() };
            let (context, name) = (self.context.clone(), key.clone());
            let task = self.reconciles.spawn(async move {
                (name, uid, C::reconcile(context, object, memory, attempt).await)
            });
            *self.running_in.entry(key.0.clone()).or_default() += 1;
            self.running.insert(task.id(), key);
            self.started.inc();
        }
    }

    fn ended(&mut self, ended: Result<(Id, Ended<C>), JoinError>) {
        let now = Instant::now();
        match ended {
            Ok((id, (key, uid, outcome))) => {
                self.stopped(id);
                let mut is_outdated = false;
                if let Some(entry) = self.objects.get_mut(&key)
                    && entry.object.uid().as_deref() == Some(uid.as_str())
                {
                    entry.memory = Some(outcome.memory);
                    is_outdated = std::mem::take(&mut entry.shown).is_new(outcome.object.as_ref());
                    if let Some(object) = outcome.object
                        && is_newer(&object, &entry.object)
                    {
                        entry.object = Arc::new(object);
                    }
                }
                self.queue.done(&key, now, &outcome.requeue, jitter());
                if is_outdated {
                    self.queue.wake(&key, now);
                }
            }
            Err(failure) => {
                // A panic costs one object, never the others.
                let Some(key) = self.stopped(failure.id()) else { return };
                error!(object = ?key, %failure, "a reconcile panicked");
                self.queue.done(&key, now, &Requeue::WithBackoff, jitter());
            }
        }
    }

    /// A reconcile no longer runs. Returns its object.
    fn stopped(&mut self, id: Id) -> Option<Key> {
        let key = self.running.remove(&id)?;
        if let Some(running) = self.running_in.get_mut(&key.0) {
            *running -= 1;
            if *running == 0 {
                self.running_in.remove(&key.0);
            }
        }
        Some(key)
    }

    fn wake(&mut self, pending: &Pending) {
        let now = Instant::now();
        if pending.all {
            for key in self.objects.keys() {
                self.queue.wake(key, now);
            }
        }
        if !pending.namespaces.is_empty() {
            let concerned = |(namespace, _): &&Key| pending.namespaces.contains(namespace);
            for key in self.objects.keys().filter(concerned) {
                self.queue.wake(key, now);
            }
        }
        for key in pending.uids.iter().filter_map(|uid| self.by_uid.get(uid)) {
            let entry = self.objects.get_mut(key);
            // What a running reconcile will find is not known yet.
            let is_steady = entry.is_some_and(|entry| match &mut entry.memory {
                Some(memory) => !C::needs_reconcile(&self.context, &entry.object, memory),
                None => false,
            });
            if !is_steady {
                self.queue.wake(key, now);
            }
        }
    }

    fn handle(&mut self, event: WatchEvent<C::Object>) {
        match event {
            WatchEvent::ListStarted => self.listed.clear(),
            WatchEvent::Listed(object) => {
                let key = key(&object);
                // A list is authoritative, also when versions went back because a backup was restored.
                if let Some(entry) = self.objects.get_mut(&key)
                    && entry.object.uid() == object.uid()
                    && is_newer(&*entry.object, &object)
                {
                    entry.object = Arc::new(object.clone());
                    self.queue.wake_and_reset(&key, Instant::now());
                }
                self.listed.insert(key);
                self.applied(object);
            }
            WatchEvent::Applied(object) => self.applied(object),
            WatchEvent::Deleted(object) => self.deleted(&key(&object), object.uid().as_deref()),
            WatchEvent::ListDone => {
                let listed = std::mem::take(&mut self.listed);
                let missing: Vec<Key> =
                    self.objects.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                for key in missing {
                    self.deleted(&key, None);
                }
                self.is_synced = true;
            }
            WatchEvent::NotInstalled => {
                for key in self.objects.keys().cloned().collect::<Vec<_>>() {
                    self.forget(&key);
                }
                self.is_synced = true;
            }
        }
        if self.is_synced {
            C::set_changed(&self.context, &mut self.objects.values().map(|entry| &entry.object));
        }
    }

    fn applied(&mut self, object: C::Object) {
        let (key, now) = (key(&object), Instant::now());
        let uid = object.uid().unwrap_or_default();
        match self.objects.get_mut(&key) {
            Some(entry) if entry.object.uid().as_deref() == Some(uid.as_str()) => {
                // The object's own writes come back by the watch. Waking for them would be a loop.
                if !is_newer(&object, &entry.object) {
                    return;
                }
                let spec_changed = C::spec_changed(&entry.object, &object);
                let version = object.resource_version();
                entry.object = Arc::new(object);
                if spec_changed {
                    self.queue.wake_and_reset(&key, now);
                } else if self.running.values().any(|running| *running == key) {
                    // This may be a write of the running reconcile, which is known when it ends.
                    entry.shown.add(version);
                } else {
                    self.queue.wake(&key, now);
                }
            }
            former => {
                // A successor under the same name shares nothing with the former object.
                if former.is_some() {
                    self.deleted(&key, None);
                }
                C::added(&self.context, &object);
                self.by_uid.insert(uid, key.clone());
                let entry = Entry { object: Arc::new(object), memory: None, shown: Shown::Nothing };
                self.objects.insert(key.clone(), entry);
                self.queue.wake_and_reset(&key, now);
            }
        }
    }

    /// `uid`: only if the object still has it.
    fn deleted(&mut self, key: &Key, uid: Option<&str>) {
        let Some(entry) = self.objects.get(key) else { return };
        let former_uid = entry.object.uid().unwrap_or_default();
        if uid.is_some_and(|uid| uid != former_uid) {
            return;
        }
        C::deleted(&self.context, &entry.object);
        self.forget(key);
    }

    fn forget(&mut self, key: &Key) {
        let Some(entry) = self.objects.get(key) else { return };
        let former_uid = entry.object.uid().unwrap_or_default();
        C::forget(&self.context, &entry.object);
        self.by_uid.remove(&former_uid);
        self.objects.remove(key);
        // A running reconcile keeps its place in the queue, so that a successor under the same name does not get a
        // second one beside it.
        if !self.running.values().any(|running| running == key) {
            self.queue.remove(key);
        }
    }
}

fn key<K: Object>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Resource versions of one kind are numbers that grow.
fn is_newer<K: Object>(new: &K, old: &K) -> bool {
    let version = |object: &K| object.resource_version().and_then(|it| it.parse::<u64>().ok());
    match (version(new), version(old)) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}
