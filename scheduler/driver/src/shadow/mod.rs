//! Shadow mode: beside another scheduler, without a single write. Each thing that it does with a Pod is
//! compared with what the engine would have done at that moment, and the differences are kept.

mod book;
mod comparison;

use std::collections::HashMap;
use std::sync::Arc;

use engine::{Engine, ForeignPod};
use model::{Assignment, NodeName, Pod, PodUid};
use parking_lot::Mutex;
use prometheus::Registry;

pub use self::book::ShadowBook;
use self::comparison::{Theirs, judge};
use crate::profile_names::ProfileNames;
use crate::translate;
use crate::watch::WatchEvent;
use crate::wire::WirePod;

/// Pods that wait for the other scheduler are remembered, up to so many; those beyond are not compared.
const WAITING_MAX: usize = 100_000;

/// Follows the decisions of one scheduler.
#[derive(Debug)]
pub struct Shadow {
    of: ProfileNames,
    waiting: HashMap<PodUid, Arc<Pod>>,
    book: Arc<Mutex<ShadowBook>>,
}

impl Shadow {
    /// Of the scheduler by this name. Its series are in the registry from the start.
    pub fn of(scheduler_name: &str, registry: &Registry) -> Result<Self, prometheus::Error> {
        let book = Arc::new(Mutex::new(ShadowBook::new(scheduler_name, registry)?));
        Ok(Self { of: ProfileNames::one(scheduler_name), waiting: HashMap::new(), book })
    }

    /// What was found so far.
    pub fn book(&self) -> Arc<Mutex<ShadowBook>> {
        self.book.clone()
    }

    /// Before the engine hears of it.
    pub(crate) fn follow(&mut self, engine: &Engine, event: &WatchEvent<WirePod>) {
        match event {
            WatchEvent::Seen(wire) => self.sees(engine, wire),
            WatchEvent::Gone(wire) => {
                if let Some(uid) = &wire.metadata.uid {
                    self.waiting.remove(&PodUid::new(uid));
                }
            }
            _ => {}
        }
    }

    fn sees(&mut self, engine: &Engine, wire: &WirePod) {
        let Some(pod) = translate::pod(wire, &self.of) else { return };
        if !self.of.has(&wire.spec.scheduler_name) || engine.is_bound(&pod.uid) {
            return;
        }
        match &pod.assignment {
            Assignment::Waiting => {
                let before = self.waiting.get(&pod.uid).and_then(|it| it.condition_message.clone());
                if let Some(message) = pod.condition_message.as_deref()
                    && before.as_deref() != Some(message)
                    && is_unschedulable(wire)
                {
                    self.compare(engine, &pod, &Theirs::Held(message));
                }
                if self.waiting.len() < WAITING_MAX || self.waiting.contains_key(&pod.uid) {
                    self.waiting.insert(pod.uid.clone(), Arc::new(pod));
                }
            }
            Assignment::Bound { node, .. } => {
                // A Pod that never waited was put there by its creator.
                if let Some(waited) = self.waiting.remove(&pod.uid) {
                    self.compare(engine, &waited, &Theirs::Placed(node));
                }
            }
            _ => drop(self.waiting.remove(&pod.uid)),
        }
    }

    fn compare(&self, engine: &Engine, pod: &Pod, theirs: &Theirs<'_>) {
        // What was done before we knew the cluster is not ours to judge.
        if !engine.is_synced() {
            return;
        }
        let nominated: Option<&NodeName> = pod.nominated_node.as_ref();
        let candidate = ForeignPod { uid: &pod.uid, spec: &pod.spec, nominated };
        let (ours, on_theirs) = engine.opinion(candidate, theirs.node());
        let reason = judge(&ours, &on_theirs, theirs);
        self.book.lock().enter(&pod.key, reason, &ours, &on_theirs, theirs);
    }
}

/// Not one that failed, or waits behind a gate.
fn is_unschedulable(wire: &WirePod) -> bool {
    let scheduled = wire.status.condition("PodScheduled");
    scheduled.is_some_and(|it| it.status == "False" && it.reason == "Unschedulable")
}
