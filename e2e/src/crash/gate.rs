//! Stops a story at its crash point, and keeps the books meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{FutureExt as _, pending};
use tokio::sync::watch;
use tokio::time::timeout;

use super::ledger::{Account, Ledger};
use super::steps::{CrashPoint, Known, Mode, Step, Whose, is_step, what, whose};
use crate::proxy::{Answer, Call, CarryOut, Gate};

/// A new object is known to the test a moment after the API server has told the scheduler of it.
const INTRODUCTION_TIME_MAX: Duration = Duration::from_secs(2);

/// The name under which the steps of no story in particular are kept.
pub const EVERYBODY: &str = "";

/// One gate for both servers: a story talks to both.
#[derive(Debug, Default)]
pub struct CrashGate {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// By namespace.
    stories: BTreeMap<String, Progress>,
    /// By UID, and by the ids that daemons gave.
    objects: BTreeMap<String, Known>,
    ledger: Ledger,
    /// The process is to die in the step after so many others, whosever it is.
    any: Option<(usize, Mode)>,
}

/// How far a story has come.
#[derive(Debug, Default)]
struct Progress {
    counts: BTreeMap<String, usize>,
    /// Each with the time at which it was begun.
    steps: Vec<(Step, Instant)>,
    plan: Option<CrashPoint>,
    /// Nothing of it gets through any more.
    is_frozen: bool,
    was_struck: bool,
}

impl CrashGate {
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// From now on calls within this namespace are steps of a story, which is to crash as planned.
    pub fn open(&self, namespace: &str, plan: Option<CrashPoint>) {
        let progress = Progress { plan, ..Progress::default() };
        self.lock().stories.insert(namespace.to_owned(), progress);
    }

    /// The process is to die in the step after `others` from now on, of whichever story. Then all stories
    /// are struck.
    pub fn strike_any(&self, others: usize, mode: Mode) {
        let mut state = self.lock();
        state.stories.insert(EVERYBODY.to_owned(), Progress::default());
        state.any = Some((others, mode));
    }

    /// Says which object has this UID.
    pub fn introduce(&self, uid: &str, namespace: &str, name: &str) {
        let known = Known { namespace: namespace.to_owned(), name: name.to_owned() };
        self.lock().objects.insert(uid.to_owned(), known);
        self.changed.send_replace(());
    }

    /// Forgets a story that is over.
    pub fn close(&self, namespace: &str) {
        let mut state = self.lock();
        state.stories.remove(namespace);
        let gone = |known: &Known| known.namespace == namespace;
        let ids: Vec<_> =
            state.objects.iter().filter(|it| gone(it.1)).map(|it| it.0.clone()).collect();
        for id in ids {
            state.objects.remove(&id);
            state.ledger.forget(&id);
        }
    }

    /// The steps of a story so far, each with the time at which it was begun.
    pub fn steps(&self, namespace: &str) -> Vec<(Step, Instant)> {
        self.lock().stories.get(namespace).map(|it| it.steps.clone()).unwrap_or_default()
    }

    /// Whether a story has come to its crash point.
    pub fn was_struck(&self, namespace: &str) -> bool {
        self.lock().stories.get(namespace).is_some_and(|it| it.was_struck)
    }

    pub fn account(&self, uid: &str) -> Account {
        self.lock().ledger.account(uid)
    }

    /// Waits until every one of these stories has come to its crash point, or until that takes too
    /// long. Returns whether all have.
    pub async fn until_struck(&self, namespaces: &[String], patience: Duration) -> bool {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !namespaces.iter().all(|namespace| self.was_struck(namespace)) {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(patience, waiting).await.is_ok()
    }

    /// The same, and no longer than `stall` after the last step of any story: a frozen call can stand
    /// in the way of all the others.
    pub async fn until_struck_or_stalled(&self, namespaces: &[String], stall: Duration) -> bool {
        loop {
            if self.until_struck(namespaces, stall).await {
                return true;
            }
            let last =
                self.lock().stories.values().filter_map(|it| it.steps.last()).map(|it| it.1).max();
            if last.is_none_or(|last| last.elapsed() > stall) {
                return false;
            }
        }
    }

    /// Waits until the daemons have given `live` allocations to this owner and taken the rest back.
    pub async fn until_live(&self, uid: &str, live: usize, patience: Duration) -> bool {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while self.account(uid).live.len() != live {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(patience, waiting).await.is_ok()
    }

    /// To be called when the process is dead: no story has a crash ahead of it any more.
    pub fn thaw(&self) {
        let mut state = self.lock();
        state.any = None;
        for progress in state.stories.values_mut() {
            progress.plan = None;
            progress.is_frozen = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose call it is. Waits a moment for an object that is not introduced yet.
    async fn attribute(&self, call: &Call) -> (String, Option<String>) {
        let mut changed = self.changed.subscribe();
        let look = || {
            let state = self.lock();
            whose(call, |namespace| state.stories.contains_key(namespace), &state.objects)
        };
        let waiting = async {
            loop {
                match look() {
                    Whose::Story(namespace, object) => return (namespace, object),
                    Whose::Everybody => return (EVERYBODY.to_owned(), None),
                    Whose::NotKnownYet => {}
                }
                if changed.changed().await.is_err() {
                    return (EVERYBODY.to_owned(), None);
                }
            }
        };
        // An allocation of a story that is over, or of another owner.
        timeout(INTRODUCTION_TIME_MAX, waiting).await.unwrap_or((EVERYBODY.to_owned(), None))
    }

    /// Counts the step and says how it is to end, if the process is to die in it.
    fn enter(&self, namespace: &str, call: &Call, object: Option<&str>) -> Entry {
        let mut state = self.lock();
        if state.is_frozen(namespace) {
            return Entry::Held;
        }
        if !is_step(call) {
            return Entry::Passes(None);
        }
        let any = state.count_down();
        let what = what(call, object);
        let strike = match (any, state.stories.get_mut(namespace)) {
            (Some(mode), _) => Some(Strike { mode, whom: EVERYBODY.to_owned() }),
            (None, Some(progress)) => {
                progress.count(what).map(|mode| Strike { mode, whom: namespace.to_owned() })
            }
            (None, None) => None,
        };
        match strike {
            Some(Strike { mode: Mode::Before, whom }) => {
                state.strike(&whom);
                self.changed.send_replace(());
                Entry::Held
            }
            strike => Entry::Passes(strike),
        }
    }

    fn strike(&self, whom: &str) {
        self.lock().strike(whom);
        self.changed.send_replace(());
    }
}

impl State {
    fn is_frozen(&self, namespace: &str) -> bool {
        // A crash in a step of no story in particular stops all stories.
        [EVERYBODY, namespace].iter().any(|it| self.stories.get(*it).is_some_and(|it| it.is_frozen))
    }

    /// Whether the process is to die in this step, whosever it is.
    fn count_down(&mut self) -> Option<Mode> {
        match self.any.take()? {
            (0, mode) => Some(mode),
            (others, mode) => {
                self.any = Some((others - 1, mode));
                None
            }
        }
    }

    fn strike(&mut self, whom: &str) {
        if let Some(progress) = self.stories.get_mut(whom) {
            (progress.is_frozen, progress.was_struck) = (true, true);
        }
    }
}

impl Progress {
    /// Counts a step. Returns how it is to end, if the story is to crash in it.
    fn count(&mut self, what: String) -> Option<Mode> {
        let nth = self.counts.entry(what.clone()).or_default();
        *nth += 1;
        let step = Step { what, nth: *nth };
        let mode = self.plan.as_ref().filter(|it| it.step == step).map(|it| it.mode);
        self.steps.push((step, Instant::now()));
        mode
    }
}

enum Entry {
    Held,
    /// With how it is to end.
    Passes(Option<Strike>),
}

struct Strike {
    mode: Mode,
    /// A namespace, or [`EVERYBODY`].
    whom: String,
}

impl Gate for CrashGate {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        async move {
            let (namespace, object) = self.attribute(&call).await;
            let strike = match self.enter(&namespace, &call, object.as_deref()) {
                Entry::Held => return pending().await,
                Entry::Passes(strike) => strike,
            };
            let answer = carry_out.await?;
            let may_pass = !self.lock().is_frozen(&namespace);
            match strike {
                Some(Strike { mode, whom }) => {
                    self.strike(&whom);
                    if mode == Mode::ReplyLost {
                        return pending().await;
                    }
                }
                None if !may_pass => return pending().await,
                None => {}
            }
            Ok(answer)
        }
        .boxed()
    }

    fn carried_out(&self, call: &Call, answer: &Answer) {
        let mut state = self.lock();
        if let Some((id, uid)) = state.ledger.note(call, answer)
            && let Some(known) = state.objects.get(&uid).cloned()
        {
            state.objects.insert(id, known);
        }
        drop(state);
        self.changed.send_replace(());
    }
}
