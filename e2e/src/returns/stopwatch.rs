//! Looks at the scheduler's calls and notes when they came and when they were answered.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::FutureExt as _;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::proxy::{Answer, Call, CarryOut, Gate};

/// One Binding.
#[derive(Debug, Clone)]
pub struct Bound {
    pub pod: String,
    pub asked: Instant,
    pub answered: Instant,
    pub status: StatusCode,
}

/// One write of a Corridor's status.
#[derive(Debug, Clone)]
pub struct Said {
    /// `None`: by the driver, which writes no phase.
    pub phase: Option<String>,
    pub answered: Instant,
}

/// Passes everything on at once.
#[derive(Debug, Default)]
pub struct Stopwatch {
    seen: Mutex<Calls>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Calls {
    bound: Vec<Bound>,
    said: Vec<Said>,
    /// Pods that were told why they wait.
    told: BTreeSet<String>,
    last: Option<Instant>,
}

impl Stopwatch {
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub fn bindings(&self) -> Vec<Bound> {
        self.lock().bound.clone()
    }

    /// The first status that said this phase and was answered not before `since`. Waits for it: a watch
    /// can tell the scheduler of a write before the writer has its answer.
    pub async fn said(&self, phase: &str, since: Instant, patience: Duration) -> Option<Said> {
        let is_it = |said: &&Said| said.phase.as_deref() == Some(phase) && said.answered >= since;
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                if let Some(said) = self.lock().said.iter().find(is_it) {
                    return Some(said.clone());
                }
                changed.changed().await.ok()?;
            }
        };
        timeout(patience, waiting).await.ok().flatten()
    }

    pub fn told_count(&self) -> usize {
        self.lock().told.len()
    }

    /// How long ago the last call was.
    pub fn silence(&self) -> Duration {
        self.lock().last.map_or(Duration::ZERO, |last| last.elapsed())
    }

    /// Waits until there are so many answered Bindings. Returns whether there are.
    pub async fn until_bindings(&self, count: usize, patience: Duration) -> bool {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while self.lock().bound.len() < count {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(patience, waiting).await.is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, call: &Call, answer: &Answer) {
        let answered = Instant::now();
        let mut calls = self.lock();
        if !call.path().contains("/leases/") {
            calls.last = Some(answered);
        }
        let segments: Vec<&str> = call.path().trim_matches('/').split('/').collect();
        match segments.as_slice() {
            [.., "pods", pod, "binding"] => {
                let pod = (*pod).to_owned();
                let status = answer.status;
                calls.bound.push(Bound { pod, asked: call.received, answered, status });
            }
            [.., "pods", pod, "status"] => {
                calls.told.insert((*pod).to_owned());
            }
            [.., "corridors", _, "status"] if call.method == Method::PATCH => {
                let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
                let phase = body["status"]["phase"].as_str().map(str::to_owned);
                calls.said.push(Said { phase, answered });
            }
            _ => return,
        }
        drop(calls);
        self.changed.send_replace(());
    }
}

impl Gate for Stopwatch {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        async move {
            let answer = carry_out.await?;
            self.note(&call, &answer);
            Ok(answer)
        }
        .boxed()
    }
}
