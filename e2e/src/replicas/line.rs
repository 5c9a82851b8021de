//! One replica's way to the API server.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::FutureExt as _;
use http::{Method, StatusCode};
use tokio::sync::watch;

use crate::error::{Error, Result, ensure};
use crate::proxy::{Answer, Call, CarryOut, Gate};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Open,
    /// Bindings are on their way and do not arrive.
    HoldsBindings,
    /// No call arrives. Watches that are open stay silent sooner or later by themselves.
    Cut,
}

/// Remembers what became of the Bindings that it held.
#[derive(Debug)]
pub struct Line {
    condition: watch::Sender<Condition>,
    held: watch::Sender<usize>,
    late: Mutex<Vec<Late>>,
}

/// The answer to a Binding that was held.
#[derive(Debug, Clone)]
struct Late {
    status: StatusCode,
    body: String,
}

impl Line {
    pub fn open() -> Arc<Self> {
        Arc::new(Self {
            condition: watch::Sender::new(Condition::Open),
            held: watch::Sender::new(0),
            late: Mutex::default(),
        })
    }

    pub fn set(&self, condition: Condition) {
        if condition == Condition::HoldsBindings {
            self.held.send_replace(0);
            self.late.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self.condition.send_replace(condition);
    }

    /// Waits until so many Bindings are held.
    pub async fn until_held(&self, count: usize) {
        // The sender lives as long as `self`.
        let _ = self.held.subscribe().wait_for(|held| *held >= count).await;
    }

    /// Lets what was held arrive. Every Binding must be refused, because its leader leads no more. One that
    /// a busy API server gave up before that is none; should it have been carried out, the record shows it.
    pub async fn let_late_bindings_arrive(&self) -> Result<usize> {
        self.set(Condition::Open);
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answered = || late.iter().filter(|late| late.status != StatusCode::GATEWAY_TIMEOUT);
        for Late { status, body } in answered() {
            let is_fenced =
                *status == StatusCode::UNPROCESSABLE_ENTITY && body.contains("stale leader ");
            ensure(is_fenced, || format!("a late leader's Binding was answered {status}: {body}"))?;
        }
        Ok(answered().count())
    }
}

fn is_binding(call: &Call) -> bool {
    call.method == Method::POST && call.path().ends_with("/binding")
}

impl Gate for Line {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        let mut changes = self.condition.subscribe();
        let condition = *changes.borrow_and_update();
        let is_held = condition == Condition::HoldsBindings && is_binding(&call);
        if condition == Condition::Open || (condition == Condition::HoldsBindings && !is_held) {
            return carry_out;
        }
        if is_held {
            self.held.send_modify(|held| *held += 1);
        }
        // In a task of its own: what is on its way arrives, whatever becomes of the sender.
        let arriving = tokio::spawn(async move {
            let _ = changes.wait_for(|now| *now != condition).await;
            let answer: Result<Answer> = carry_out.await;
            if is_held {
                if let Ok(answer) = &answer {
                    let body = String::from_utf8_lossy(&answer.body).into_owned();
                    let late = Late { status: answer.status, body };
                    self.late.lock().unwrap_or_else(PoisonError::into_inner).push(late);
                }
                self.held.send_modify(|held| *held -= 1);
            }
            answer
        });
        let arrived = arriving.map(|joined| match joined {
            Ok(answer) => answer,
            Err(problem) => Err(Error::malformed("holding a call", problem)),
        });
        arrived.boxed()
    }
}
