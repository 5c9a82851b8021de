//! All objects, their past, and the log of writes, under one short lock.
//!
//! Objects are kept as the JSON text that clients get, plus what selectors ask for: lists and
//! watches copy bytes, and only writes parse. A write prepares its new state outside the lock and
//! commits if no other write was faster, as the real server does with etcd. Every accepted write takes the
//! next resourceVersion of one global count.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::catalog::{Catalog, ResourceType, Rules};
use crate::history::{Change, ChangeKind, History};
use crate::json::list;
use crate::refusal::Refusal;
use crate::stored::{Key, Stored, stored, unstored};

/// How many writes the log keeps: enough for a run of 30,000 Pods with four writes each.
pub const WRITE_LOG_MAX: usize = 131_072;
/// The real server forgets Events after an hour; here the oldest go when there are more than this.
const EVENT_OBJECTS_MAX: usize = 20_000;
/// Each lost race means that another write succeeded, so this is reached only by a live-lock.
const UPDATE_ATTEMPTS_MAX: usize = 1_000;
/// What the model may hold; etcd has such a limit too.
const STORED_BYTES_MAX: usize = 4 << 30;

/// One accepted write, for checkers in tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRecord {
    /// `create`, `update`, `patch`, `apply` or `delete`.
    pub verb: &'static str,
    /// With its group, as in `pods` or `leases.coordination.k8s.io`.
    pub resource: String,
    /// `status` or `binding`; empty for the object itself.
    pub subresource: &'static str,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Counts up by one with each write, so a gap would show a lost record.
    pub resource_version: u64,
}

/// How a write came about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Action {
    pub verb: &'static str,
    pub subresource: &'static str,
    pub dry_run: bool,
}

impl Action {
    pub fn new(verb: &'static str, dry_run: bool) -> Self {
        Self { verb, subresource: "", dry_run }
    }
}

/// What a write makes of an object.
pub(crate) enum Next {
    Put(Value),
    /// The last state of an object that goes.
    Remove(Value),
}

/// What became of an object.
pub(crate) struct Written {
    pub object: Arc<Stored>,
    /// Of an object that went: what the request made of it, under the last version that it had. Watches
    /// show the state before.
    pub last: Option<Stored>,
    pub removed: bool,
}

#[derive(Debug)]
pub(crate) struct Store {
    catalog: Arc<Catalog>,
    state: Mutex<State>,
    /// One for each shelf: tells watches that there is something new.
    bells: Vec<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    bytes: usize,
    shelves: Vec<Shelf>,
    log: VecDeque<WriteRecord>,
}

#[derive(Debug, Default)]
struct Shelf {
    objects: BTreeMap<Key, Arc<Stored>>,
    history: History,
    /// Order of arrival, kept only where old objects give way to new ones.
    arrivals: VecDeque<Key>,
}

impl Shelf {
    /// What lies in a namespace, or everything, in the order of lists.
    fn of_namespace(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Stored>> {
        let first = Key::new(namespace.unwrap_or_default(), "");
        let objects = match namespace {
            None => self.objects.range(..),
            Some(_) => self.objects.range(first..),
        };
        objects
            .take_while(move |(key, _)| namespace.is_none_or(|it| it == key.namespace))
            .map(|(_, object)| object)
    }
}

impl Store {
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let mut state = State::default();
        state.shelves.resize_with(catalog.shelves, Shelf::default);
        let bells = (0..catalog.shelves).map(|_| watch::Sender::new(0)).collect();
        Self { catalog, state: Mutex::new(state), bells }
    }

    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    pub fn write_log(&self) -> Vec<WriteRecord> {
        self.state.lock().log.iter().cloned().collect()
    }

    pub fn bell(&self, ty: &ResourceType) -> watch::Receiver<u64> {
        self.bells[ty.shelf].subscribe()
    }

    pub fn get(&self, ty: &ResourceType, key: &Key) -> Result<Arc<Stored>, Refusal> {
        let found = self.state.lock().shelves[ty.shelf].objects.get(key).cloned();
        found.ok_or_else(|| Refusal::not_found(ty, &key.name))
    }

    /// Every object of a namespace, or of all, and the version at which this was the truth.
    pub fn list(&self, ty: &ResourceType, namespace: Option<&str>) -> (Vec<Arc<Stored>>, u64) {
        let state = self.state.lock();
        (state.shelves[ty.shelf].of_namespace(namespace).cloned().collect(), state.revision)
    }

    /// The same as it was at `revision`; `None` if that is no longer remembered.
    pub fn list_at(
        &self,
        ty: &ResourceType,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Option<Vec<Arc<Stored>>>, Refusal> {
        let state = self.state.lock();
        if revision > state.revision {
            return Err(Refusal::resource_version_too_large(revision, state.revision));
        }
        let kept = &state.shelves[ty.shelf];
        let Some(later) = kept.history.since(revision) else { return Ok(None) };
        let now = kept.of_namespace(namespace);
        let mut objects: BTreeMap<&Key, &Arc<Stored>> =
            now.map(|object| (&object.key, object)).collect();
        let is_inside = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        for change in later.rev().filter(|change| is_inside(&change.object.key)) {
            match &change.before {
                Some(before) => objects.insert(&before.key, before),
                None => objects.remove(&change.object.key),
            };
        }
        Ok(Some(objects.into_values().cloned().collect()))
    }

    /// Forgets the past: a watch that begins there has to list again.
    pub fn forget_history(&self) {
        let mut state = self.state.lock();
        let revision = state.revision;
        for shelf in &mut state.shelves {
            shelf.history.forget(revision);
        }
    }

    /// Changes after `revision`, and the version up to which nothing is missing.
    pub fn changes(
        &self,
        ty: &ResourceType,
        revision: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Change>>, u64), Refusal> {
        let state = self.state.lock();
        let history = &state.shelves[ty.shelf].history;
        if revision > state.revision {
            let why = format!(
                "resourceVersion {revision} is newer than {}: the server has lost its memory, list again",
                state.revision
            );
            return Err(Refusal::expired(why));
        }
        match history.after(revision, limit) {
            None => {
                let oldest = history.forgotten();
                Err(Refusal::expired(format!("too old resource version: {revision} ({oldest})")))
            }
            Some(changes) => {
                let last = changes.last().map(|change| change.object.revision);
                let complete = if changes.len() < limit { None } else { last };
                Ok((changes, complete.unwrap_or(state.revision)))
            }
        }
    }

    pub fn create(
        &self,
        ty: &ResourceType,
        key: &Key,
        value: Value,
        action: Action,
    ) -> Result<Arc<Stored>, Refusal> {
        let mut state = self.state.lock();
        self.admit(&state, ty, key)?;
        if action.dry_run {
            return Ok(Arc::new(unstored(ty, key, value)));
        }
        if ty.rules == Rules::Event || ty.rules == Rules::NewEvent {
            self.make_room(&mut state, ty, key);
        }
        Ok(self.commit(&mut state, ty, key, Next::Put(value), action))
    }

    /// Changes one object by `change`, which may be called again when another write came between.
    pub fn update(
        &self,
        ty: &ResourceType,
        key: &Key,
        action: Action,
        mut change: impl FnMut(&Value) -> Result<Next, Refusal>,
    ) -> Result<Written, Refusal> {
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let before = self.get(ty, key)?;
            let old = before.value()?;
            let next = change(&old)?;
            if matches!(&next, Next::Put(new) if *new == old) {
                // As in the real server, a write that changes nothing is no write.
                return Ok(Written { object: before, removed: false, last: None });
            }
            let mut state = self.state.lock();
            let current = state.shelves[ty.shelf].objects.get(key);
            if current.is_none_or(|current| current.revision != before.revision) {
                continue;
            }
            let shown = |value: Value| stored(ty, key, value, before.revision);
            return Ok(match next {
                Next::Put(value) if action.dry_run => {
                    Written { object: Arc::new(shown(value)), removed: false, last: None }
                }
                Next::Put(value) => {
                    let object = self.commit(&mut state, ty, key, Next::Put(value), action);
                    Written { object, removed: false, last: None }
                }
                Next::Remove(value) if action.dry_run => {
                    let (object, last) = (Arc::new(shown(old)), Some(shown(value)));
                    Written { object, removed: true, last }
                }
                Next::Remove(value) => {
                    let object = self.commit(&mut state, ty, key, Next::Remove(old), action);
                    Written { object, removed: true, last: Some(shown(value)) }
                }
            });
        }
        Err(Refusal::modified_meanwhile(ty, &key.name))
    }

    /// Removes a terminating namespace once nothing is left in it.
    pub fn sweep_namespace(&self, namespace: &str) {
        let ty = self.catalog.with_rules(Rules::Namespace);
        let key = Key::new("", namespace);
        let mut state = self.state.lock();
        let object = state.shelves[ty.shelf].objects.get(&key).cloned();
        let Some(object) = object.filter(|object| object.terminating) else { return };
        let first = Key::new(namespace, "");
        let in_use = state.shelves.iter().any(|shelf| {
            shelf.objects.range(&first..).next().is_some_and(|(key, _)| key.namespace == namespace)
        });
        let Ok(value) = object.value() else { return };
        if !in_use && list(&value, "/metadata/finalizers").is_empty() {
            self.commit(&mut state, ty, &key, Next::Remove(value), Action::new("delete", false));
        }
    }

    /// Whether new objects, among them Bindings, are still taken in a namespace.
    pub fn check_namespace_open(&self, ty: &ResourceType, key: &Key) -> Result<(), Refusal> {
        self.admit_namespace(&self.state.lock(), ty, key)
    }

    fn admit_namespace(&self, state: &State, ty: &ResourceType, key: &Key) -> Result<(), Refusal> {
        if ty.namespaced {
            let namespaces = self.catalog.with_rules(Rules::Namespace);
            let home = Key::new("", &key.namespace);
            match state.shelves[namespaces.shelf].objects.get(&home) {
                None => return Err(Refusal::not_found(namespaces, &key.namespace)),
                Some(home) if home.terminating => {
                    return Err(Refusal::namespace_terminating(ty, &key.name, &key.namespace));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Whether a new object may be stored.
    fn admit(&self, state: &State, ty: &ResourceType, key: &Key) -> Result<(), Refusal> {
        self.admit_namespace(state, ty, key)?;
        if let Some(there) = state.shelves[ty.shelf].objects.get(key) {
            let refusal = Refusal::already_exists(ty, &key.name);
            return Err(if there.terminating {
                refusal.in_context("object is being deleted")
            } else {
                refusal
            });
        }
        if state.bytes > STORED_BYTES_MAX {
            let why = format!("the model holds more than {STORED_BYTES_MAX} bytes of objects");
            return Err(Refusal::internal(why));
        }
        Ok(())
    }

    /// Notes a new arrival, and drops the oldest objects when there are too many.
    fn make_room(&self, state: &mut State, ty: &ResourceType, key: &Key) {
        state.shelves[ty.shelf].arrivals.push_back(key.clone());
        while state.shelves[ty.shelf].arrivals.len() > EVENT_OBJECTS_MAX {
            let Some(oldest) = state.shelves[ty.shelf].arrivals.pop_front() else { break };
            let object = state.shelves[ty.shelf].objects.get(&oldest).cloned();
            if let Some(value) = object.and_then(|object| object.value().ok()) {
                let expired = Action::new("delete", false);
                self.commit(state, ty, &oldest, Next::Remove(value), expired);
            }
        }
    }

    fn commit(
        &self,
        state: &mut State,
        ty: &ResourceType,
        key: &Key,
        next: Next,
        action: Action,
    ) -> Arc<Stored> {
        state.revision += 1;
        let revision = state.revision;
        let (value, remove) = match next {
            Next::Put(value) => (value, false),
            Next::Remove(value) => (value, true),
        };
        let object = Arc::new(stored(ty, key, value, revision));
        let kept = &mut state.shelves[ty.shelf];
        let before = if remove {
            kept.objects.remove(key)
        } else {
            state.bytes += object.json.len();
            kept.objects.insert(key.clone(), object.clone())
        };
        state.bytes -= before.as_ref().map_or(0, |before| before.json.len());
        let kind = match (remove, &before) {
            (true, _) => ChangeKind::Deleted,
            (false, None) => ChangeKind::Added,
            (false, Some(_)) => ChangeKind::Modified,
        };
        kept.history.push(Change { kind, object: object.clone(), before });
        if state.log.len() == WRITE_LOG_MAX {
            state.log.pop_front();
        }
        state.log.push_back(WriteRecord {
            verb: action.verb,
            resource: ty.qualified(),
            subresource: action.subresource,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: object.uid.clone(),
            resource_version: revision,
        });
        self.bells[ty.shelf].send_replace(revision);
        object
    }
}
