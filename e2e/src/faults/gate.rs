//! Does to calls, answers and watches what a test wants.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use http::{Method, StatusCode};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::error::Error;
use crate::proxy::{Answer, Call, CarryOut, Fate, Form, Gate, Shaper};

/// What happens to a Binding.
#[derive(Clone)]
pub enum BindFault {
    /// It is answered with this code, and never arrives.
    Answered(u16),
    /// It is carried out, and the connection breaks before the answer.
    ReplyLost,
    /// It arrives so much later.
    Delayed(Duration),
    /// This is done first, given the Pod's name.
    After(Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>),
}

/// What happens to a watch of Pods, after so many of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    Cut,
    Silent,
    /// An event says that what is asked for is too old.
    TooOld,
}

type Edit = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// One kind of fault for each, so often; then everything passes.
#[derive(Default)]
pub struct Faults {
    bind: Mutex<Option<(BindFault, usize)>>,
    watch: Mutex<Option<(WatchFault, usize)>>,
    lists_too_old: AtomicUsize,
    doubled: Mutex<bool>,
    edit: Mutex<Option<Edit>>,
    struck: AtomicUsize,
    /// Events do not arrive for now.
    holds_events: watch::Sender<bool>,
    /// Bindings that are late and have not arrived yet.
    late: watch::Sender<usize>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("struck", &self.struck).finish_non_exhaustive()
    }
}

impl fmt::Debug for BindFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(code) => write!(f, "Answered({code})"),
            Self::ReplyLost => f.write_str("ReplyLost"),
            Self::Delayed(delay) => write!(f, "Delayed({delay:?})"),
            Self::After(_) => f.write_str("After"),
        }
    }
}

/// Events of a watch that pass before its fault.
const EVENTS_BEFORE: usize = 5;

/// Events as Kubernetes' own code writes them. The last says that what is asked for is too old.
const GOLDEN_EVENTS: &[u8] = include_bytes!("../../../scheduler/driver/golden/protobuf/events.pb");

fn set<T>(place: &Mutex<T>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

impl Faults {
    pub fn on_binds(&self, fault: BindFault, times: usize) {
        set(&self.bind, Some((fault, times)));
    }

    pub fn on_watches(&self, fault: WatchFault, times: usize) {
        set(&self.watch, Some((fault, times)));
    }

    /// The next so many lists of Pods are refused: 410.
    pub fn on_lists(&self, times: usize) {
        self.lists_too_old.store(times, Ordering::SeqCst);
    }

    /// Every event of a watch of Pods comes twice.
    pub fn double_events(&self) {
        set(&self.doubled, true);
    }

    /// Every Pod that comes by a watch is changed on its way.
    pub fn edit_pods(&self, edit: impl Fn(&mut Value) + Send + Sync + 'static) {
        set(&self.edit, Some(Arc::new(edit)));
    }

    /// Events arrive when this is taken back, and not before.
    pub fn hold_events(&self, holds: bool) {
        self.holds_events.send_replace(holds);
    }

    /// How often something was done.
    pub fn struck(&self) -> usize {
        self.struck.load(Ordering::SeqCst)
    }

    /// Waits until every late Binding has arrived.
    pub async fn until_none_is_late(&self) {
        // The sender lives as long as `self`.
        let _ = self.late.subscribe().wait_for(|late| *late == 0).await;
    }

    fn strike(&self) {
        self.struck.fetch_add(1, Ordering::SeqCst);
    }

    /// What happens to the next one, if anything.
    fn take<T: Clone>(&self, place: &Mutex<Option<(T, usize)>>) -> Option<T> {
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let (fault, left) = place.as_mut()?;
        let fault = fault.clone();
        *left = left.checked_sub(1)?;
        self.strike();
        Some(fault)
    }
}

fn is_binding(call: &Call) -> bool {
    call.method == Method::POST && call.path().ends_with("/binding")
}

fn is_event(call: &Call) -> bool {
    call.method == Method::POST && call.path().ends_with("/events")
}

const PODS: &str = "/api/v1/pods";

/// The watch's own list, not that of a new leader.
fn is_list(call: &Call) -> bool {
    let is_plain = !call.query().contains("schedulerName") && !call.is_watch();
    call.method == Method::GET && call.path() == PODS && is_plain
}

/// A watch that begins with everything there is.
fn is_stream(call: &Call) -> bool {
    call.query().contains("sendInitialEvents")
}

fn pod_of(call: &Call) -> String {
    call.path().rsplit('/').nth(1).unwrap_or_default().to_owned()
}

impl Gate for Faults {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        if is_event(&call) && *self.holds_events.borrow() {
            self.strike();
            return async move {
                // The sender lives as long as `self`.
                let _ = self.holds_events.subscribe().wait_for(|holds| !*holds).await;
                carry_out.await
            }
            .boxed();
        }
        if is_list(&call) && self.takes_list() {
            return async move { Ok(Answer::status(StatusCode::GONE.as_u16())) }.boxed();
        }
        if !is_binding(&call) {
            return carry_out;
        }
        match self.take(&self.bind) {
            None => carry_out,
            Some(BindFault::Answered(code)) => async move { Ok(Answer::status(code)) }.boxed(),
            Some(BindFault::ReplyLost) => async move {
                carry_out.await?;
                Err(Error::ReplyLost)
            }
            .boxed(),
            Some(BindFault::Delayed(delay)) => {
                // In a task of its own: it arrives, whether anybody still waits for it or not.
                self.late.send_modify(|late| *late += 1);
                let late = tokio::spawn(async move {
                    sleep(delay).await;
                    let answer = carry_out.await;
                    self.late.send_modify(|late| *late -= 1);
                    answer
                });
                late.map(|joined| joined.map_err(|_| Error::ReplyLost)?).boxed()
            }
            Some(BindFault::After(first)) => async move {
                first(pod_of(&call)).await;
                carry_out.await
            }
            .boxed(),
        }
    }

    /// What is changed must be read.
    fn needs_json(&self, _call: &Call) -> bool {
        self.edit.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn refuse_watch(&self, call: &Call) -> Option<(StatusCode, Bytes)> {
        let is_refused = call.path() == PODS && is_stream(call) && self.takes_list();
        is_refused.then(|| (StatusCode::GONE, too_old().to_string().into()))
    }

    fn shape_watch(self: Arc<Self>, call: &Call) -> Option<Shaper> {
        if call.path() != PODS {
            return None;
        }
        // A list is left alone: it is the watch that is looked at.
        let fault = if is_stream(call) { None } else { self.take(&self.watch) };
        let mut events = 0;
        Some(Box::new(move |event, form| {
            events += 1;
            match fault {
                Some(fault) if events > EVENTS_BEFORE => fate(fault, form),
                _ => self.pass_event(event, form),
            }
        }))
    }
}

fn fate(fault: WatchFault, form: Form) -> Fate {
    match fault {
        WatchFault::Cut => Fate::Cut,
        WatchFault::Silent => Fate::Silence,
        WatchFault::TooOld if form == Form::Json => {
            let event = json!({ "type": "ERROR", "object": too_old() });
            Fate::Events(vec![event.to_string().into()])
        }
        WatchFault::TooOld => {
            let mut golden = GOLDEN_EVENTS.to_vec();
            let last = std::iter::from_fn(|| form.take(&mut golden)).last();
            Fate::Events(last.into_iter().map(Bytes::from).collect())
        }
    }
}

fn too_old() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
        "message": "too old resource version", "code": 410,
    })
}

impl Faults {
    /// Whether the next list is to be refused.
    fn takes_list(&self) -> bool {
        let left = |times: usize| times.checked_sub(1);
        let counter = &self.lists_too_old;
        let is_refused = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok();
        if is_refused {
            self.strike();
        }
        is_refused
    }

    fn pass_event(&self, event: &[u8], form: Form) -> Fate {
        let edit = self.edit.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut passed = Bytes::copy_from_slice(event);
        let edit = edit.filter(|_| form == Form::Json);
        if let (Some(edit), Ok(mut event)) = (edit, serde_json::from_slice::<Value>(event)) {
            let before = event["object"].clone();
            edit(&mut event["object"]);
            if event["object"] != before {
                self.strike();
                passed = event.to_string().into();
            }
        }
        if *self.doubled.lock().unwrap_or_else(PoisonError::into_inner) {
            self.strike();
            return Fate::Events(vec![passed.clone(), passed]);
        }
        Fate::Events(vec![passed])
    }
}
