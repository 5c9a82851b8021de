//! Runs passes: watches a kind, wakes objects, one pass at a time for each, and backs off.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::{Api, Resource, ResourceExt};
use prometheus::IntCounter;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::error;

use crate::board::{Pending, Wakes};
use crate::context::{Context, chance};
use crate::kubernetes::Object;
use crate::line::{Again, Line};
use crate::watch::{self, News};

/// Passes of one kind that run at once. Each waits for few calls, so this is no limit on speed,
/// but one on what a slow daemon can pile up.
const PASSES_MAX: usize = 256;
/// Those of one namespace: its webhooks may make each of them take its whole time-out, and the others must not wait for
/// that.
const PASSES_OF_NAMESPACE_MAX: usize = 32;
/// When an object whose namespace has that many is looked at again.
const PUT_OFF: Duration = Duration::from_millis(200);
/// One list of a thousand objects fits without holding up the watch.
const NEWS_MAX: usize = 1024;
/// Nothing is due: look again after this long, whatever happens.
const IDLE_MAX: Duration = Duration::from_mins(1);

/// What a kind brings to the harness.
pub(crate) trait Controller: Send + Sync + 'static {
    type Object: Object;
    /// What is remembered of an object between passes. Lost at a restart, so only what may be.
    type Memory: Default + Send + 'static;

    fn wakes(context: &Context) -> &Wakes;

    /// One pass: observe, plan, apply at most one operation, write the status.
    fn pass(
        context: Arc<Context>,
        object: Arc<Self::Object>,
        memory: Self::Memory,
        turn: Turn,
    ) -> impl Future<Output = Pass<Self>> + Send
    where
        Self: Sized;

    /// Whether news about this one object call for a pass at all. Called between passes only.
    fn needs_pass(_context: &Context, _object: &Self::Object, _memory: &mut Self::Memory) -> bool {
        true
    }

    /// The set of objects changed and is known completely. They come in no order.
    fn all_known(_context: &Context, _objects: &mut dyn Iterator<Item = &Arc<Self::Object>>) {}

    /// An object that was not there before.
    fn met(_context: &Context, _object: &Self::Object) {}

    /// An object is gone for good, and not because its whole kind is: called before [`Self::gone`].
    fn vanished(_context: &Context, _object: &Self::Object) {}

    /// An object is gone for good.
    fn gone(_context: &Context, _object: &Self::Object) {}

    /// Whether `new` asks for something else than `old`, so that old failures do not count.
    fn is_new_wish(old: &Self::Object, new: &Self::Object) -> bool {
        let (old, new) = (old.meta(), new.meta());
        old.uid != new.uid
            || old.generation != new.generation
            || old.annotations != new.annotations
            || old.deletion_timestamp != new.deletion_timestamp
    }
}

/// What a pass is given besides its object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Whether what failed before may be tried again.
    pub may_retry: bool,
    /// In 0..1.
    pub chance: f64,
}

pub(crate) struct Pass<C: Controller> {
    /// The object as the last write left it.
    pub object: Option<C::Object>,
    pub memory: C::Memory,
    pub again: Again,
}

type Key = (String, String);
/// Whose pass it was (name and UID), and how it ended.
type Ended<C> = (Key, String, Pass<C>);

struct Held<C: Controller> {
    object: Arc<C::Object>,
    /// Away while a pass is running.
    memory: Option<C::Memory>,
    shown: Shown,
}

/// What the watch showed of an object while a pass was running.
#[derive(Debug, Default, PartialEq, Eq)]
enum Shown {
    #[default]
    Nothing,
    /// This version: it may be the one that the pass itself writes.
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

    /// Whether it is more than the pass itself has written.
    fn is_news<K: Object>(&self, written: Option<&K>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Version(shown) => written.is_none_or(|it| it.resource_version() != *shown),
            Self::Several => true,
        }
    }
}

struct Harness<C: Controller> {
    context: Arc<Context>,
    /// Looked into for every sample of every object: in order this would be most of what that costs.
    objects: HashMap<Key, Held<C>>,
    by_uid: HashMap<String, Key>,
    /// Seen so far in a list that is under way.
    listed: BTreeSet<Key>,
    line: Line<Key>,
    passes: JoinSet<Ended<C>>,
    running: HashMap<Id, Key>,
    /// How many those are, by namespace.
    running_of: HashMap<String, usize>,
    begun: IntCounter,
    is_synced: bool,
}

/// Runs one kind's controller until it is dropped.
pub(crate) async fn run<C: Controller>(context: Arc<Context>, _controller: C) {
    let (sender, mut news) = mpsc::channel(NEWS_MAX);
    let mut watching = JoinSet::new();
    watching.spawn(watch::follow(Api::<C::Object>::all(context.client.clone()), sender));
    let settings = &context.settings;
    let mut harness = Harness::<C> {
        context: context.clone(),
        objects: HashMap::new(),
        by_uid: HashMap::new(),
        listed: BTreeSet::new(),
        line: Line::new(settings.backoff_first, settings.backoff_max),
        passes: JoinSet::new(),
        running: HashMap::new(),
        running_of: HashMap::new(),
        begun: context.metrics.reconciles(&C::Object::kind(&())),
        is_synced: false,
    };
    loop {
        harness.start_due();
        let wait = harness.wait();
        tokio::select! {
            news = news.recv() => match news {
                Some(news) => harness.hear(news),
                // Its watch has ended, and it would never see anything again: the caller says so, and ends too.
                None => return,
            },
            pending = C::wakes(&context).next() => harness.wake(&pending),
            Some(ended) = harness.passes.join_next_with_id() => harness.ended(ended),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

impl<C: Controller> Harness<C> {
    fn wait(&self) -> Duration {
        if self.passes.len() >= PASSES_MAX {
            return IDLE_MAX;
        }
        let due = self.line.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        due.unwrap_or(IDLE_MAX).min(IDLE_MAX)
    }

    fn start_due(&mut self) {
        while self.passes.len() < PASSES_MAX {
            let now = Instant::now();
            let Some((key, may_retry)) = self.line.take(now) else { return };
            let of_namespace = self.running_of.get(&key.0).copied().unwrap_or_default();
            if of_namespace >= PASSES_OF_NAMESPACE_MAX {
                self.line.put_off(&key, now + PUT_OFF);
                continue;
            }
            let Some(held) = self.objects.get_mut(&key) else {
                self.line.forget(&key);
                continue;
            };
            let (object, memory) = (held.object.clone(), held.memory.take().unwrap_or_default());
            let uid = object.uid().unwrap_or_default();
            let turn = Turn { may_retry, chance: chance() };
            let (context, name) = (self.context.clone(), key.clone());
            let task = self
                .passes
                .spawn(async move { (name, uid, C::pass(context, object, memory, turn).await) });
            *self.running_of.entry(key.0.clone()).or_default() += 1;
            self.running.insert(task.id(), key);
            self.begun.inc();
        }
    }

    fn ended(&mut self, ended: Result<(Id, Ended<C>), JoinError>) {
        let now = Instant::now();
        match ended {
            Ok((id, (key, uid, pass))) => {
                self.stopped(id);
                let mut has_news = false;
                if let Some(held) = self.objects.get_mut(&key)
                    && held.object.uid().as_deref() == Some(uid.as_str())
                {
                    held.memory = Some(pass.memory);
                    has_news = std::mem::take(&mut held.shown).is_news(pass.object.as_ref());
                    if let Some(object) = pass.object
                        && is_newer(&object, &held.object)
                    {
                        held.object = Arc::new(object);
                    }
                }
                self.line.finish(&key, now, &pass.again, chance());
                if has_news {
                    self.line.wake(&key, now);
                }
            }
            Err(failure) => {
                // One bad object never takes the others down.
                let Some(key) = self.stopped(failure.id()) else { return };
                error!(object = ?key, %failure, "a pass panicked");
                self.line.finish(&key, now, &Again::Failed, chance());
            }
        }
    }

    /// A pass runs no more. Whose it was.
    fn stopped(&mut self, id: Id) -> Option<Key> {
        let key = self.running.remove(&id)?;
        if let Some(running) = self.running_of.get_mut(&key.0) {
            *running -= 1;
            if *running == 0 {
                self.running_of.remove(&key.0);
            }
        }
        Some(key)
    }

    fn wake(&mut self, pending: &Pending) {
        let now = Instant::now();
        if pending.all {
            for key in self.objects.keys() {
                self.line.wake(key, now);
            }
        }
        if !pending.namespaces.is_empty() {
            let concerned = |(namespace, _): &&Key| pending.namespaces.contains(namespace);
            for key in self.objects.keys().filter(concerned) {
                self.line.wake(key, now);
            }
        }
        for key in pending.uids.iter().filter_map(|uid| self.by_uid.get(uid)) {
            let held = self.objects.get_mut(key);
            // While a pass is under way nobody knows what it will find.
            let is_calm = held.is_some_and(|held| match &mut held.memory {
                Some(memory) => !C::needs_pass(&self.context, &held.object, memory),
                None => false,
            });
            if !is_calm {
                self.line.wake(key, now);
            }
        }
    }

    fn hear(&mut self, news: News<C::Object>) {
        match news {
            News::ListBegins => self.listed.clear(),
            News::Listed(object) => {
                let key = key(&object);
                // A list is the truth, also when versions went back because a backup was restored.
                if let Some(held) = self.objects.get_mut(&key)
                    && held.object.uid() == object.uid()
                    && is_newer(&*held.object, &object)
                {
                    held.object = Arc::new(object.clone());
                    self.line.wake_anew(&key, Instant::now());
                }
                self.listed.insert(key);
                self.seen(object);
            }
            News::Seen(object) => self.seen(object),
            News::Gone(object) => self.gone(&key(&object), object.uid().as_deref()),
            News::ListEnds => {
                let listed = std::mem::take(&mut self.listed);
                let missing: Vec<Key> =
                    self.objects.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                for key in missing {
                    self.gone(&key, None);
                }
                self.is_synced = true;
            }
            News::Absent => {
                for key in self.objects.keys().cloned().collect::<Vec<_>>() {
                    self.forget(&key);
                }
                self.is_synced = true;
            }
        }
        if self.is_synced {
            C::all_known(&self.context, &mut self.objects.values().map(|held| &held.object));
        }
    }

    fn seen(&mut self, object: C::Object) {
        let (key, now) = (key(&object), Instant::now());
        let uid = object.uid().unwrap_or_default();
        match self.objects.get_mut(&key) {
            Some(held) if held.object.uid().as_deref() == Some(uid.as_str()) => {
                // Our own writes come back: what they say is known already, and waking for them
                // would be a loop.
                if !is_newer(&object, &held.object) {
                    return;
                }
                let new_wish = C::is_new_wish(&held.object, &object);
                let version = object.resource_version();
                held.object = Arc::new(object);
                if new_wish {
                    self.line.wake_anew(&key, now);
                } else if self.running.values().any(|running| *running == key) {
                    // Its own write may come back before the pass has ended: then it is known.
                    held.shown.add(version);
                } else {
                    self.line.wake(&key, now);
                }
            }
            former => {
                // A successor under the same name: nothing of the former one counts.
                if former.is_some() {
                    self.gone(&key, None);
                }
                C::met(&self.context, &object);
                self.by_uid.insert(uid, key.clone());
                let held = Held { object: Arc::new(object), memory: None, shown: Shown::Nothing };
                self.objects.insert(key.clone(), held);
                self.line.wake_anew(&key, now);
            }
        }
    }

    /// `uid`: only if it is still that one.
    fn gone(&mut self, key: &Key, uid: Option<&str>) {
        let Some(held) = self.objects.get(key) else { return };
        let held_uid = held.object.uid().unwrap_or_default();
        if uid.is_some_and(|uid| uid != held_uid) {
            return;
        }
        C::vanished(&self.context, &held.object);
        self.forget(key);
    }

    fn forget(&mut self, key: &Key) {
        let Some(held) = self.objects.get(key) else { return };
        let held_uid = held.object.uid().unwrap_or_default();
        C::gone(&self.context, &held.object);
        self.by_uid.remove(&held_uid);
        self.objects.remove(key);
        // A pass that is still running keeps its place in the line, so that a successor under the
        // same name does not get a second one beside it.
        if !self.running.values().any(|running| running == key) {
            self.line.forget(key);
        }
    }
}

fn key<K: Object>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Versions of one resource are numbers that grow.
fn is_newer<K: Object>(new: &K, old: &K) -> bool {
    let version = |object: &K| object.resource_version().and_then(|it| it.parse::<u64>().ok());
    match (version(new), version(old)) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}
