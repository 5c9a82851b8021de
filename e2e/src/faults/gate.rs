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
use crate::proxy::{Answer, Call, CarryOut, Fate, Gate, Shaper};

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

/// What happens to a watch of Pods, after so many of its lines.
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

/// Lines of a watch that pass before its fault.
const LINES_BEFORE: usize = 5;

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

    fn refuse_watch(&self, call: &Call) -> Option<(StatusCode, Bytes)> {
        let is_list = call.path() == "/api/v1/pods" && call.query().contains("sendInitialEvents");
        let left = |times: usize| times.checked_sub(1);
        let refused = is_list
            && self.lists_too_old.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok();
        refused.then(|| {
            self.strike();
            (StatusCode::GONE, too_old().to_string().into())
        })
    }

    fn shape_watch(self: Arc<Self>, call: &Call) -> Option<Shaper> {
        if call.path() != "/api/v1/pods" {
            return None;
        }
        // A list is left alone: it is the watch that is looked at.
        let is_list = call.query().contains("sendInitialEvents");
        let fault = if is_list { None } else { self.take(&self.watch) };
        let mut lines = 0;
        Some(Box::new(move |line| {
            lines += 1;
            match fault {
                Some(fault) if lines > LINES_BEFORE => fate(fault),
                _ => self.pass_line(line),
            }
        }))
    }
}

fn fate(fault: WatchFault) -> Fate {
    match fault {
        WatchFault::Cut => Fate::Cut,
        WatchFault::Silent => Fate::Silence,
        WatchFault::TooOld => {
            let event = json!({ "type": "ERROR", "object": too_old() });
            Fate::Lines(vec![event.to_string().into()])
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
    fn pass_line(&self, line: &[u8]) -> Fate {
        let edit = self.edit.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut passed = Bytes::copy_from_slice(line);
        if let (Some(edit), Ok(mut event)) = (edit, serde_json::from_slice::<Value>(line)) {
            let before = event["object"].clone();
            edit(&mut event["object"]);
            if event["object"] != before {
                self.strike();
                passed = event.to_string().into();
            }
        }
        if *self.doubled.lock().unwrap_or_else(PoisonError::into_inner) {
            self.strike();
            return Fate::Lines(vec![passed.clone(), passed]);
        }
        Fate::Lines(vec![passed])
    }
}
