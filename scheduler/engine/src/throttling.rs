//! Bindings of one namespace that fail or are slow delay only the Pods of that namespace.

use std::sync::Arc;

use model::Pod;

use crate::engine::Engine;
use crate::record::{BindingStep, Stage};

/// What a move of a Pod from one stage to another means for its Binding.
#[derive(Clone, Copy)]
pub(crate) enum BindingChange {
    Begins,
    Fails,
    Ends { is_bound: bool },
}

impl BindingChange {
    pub fn of(from: &Stage, to: &Stage) -> Option<Self> {
        match (from, to) {
            (Stage::Binding(_), Stage::Binding(BindingStep::UNCLEAR)) => Some(Self::Fails),
            (from, to) => match (is_open(from), is_open(to)) {
                (false, true) => Some(Self::Begins),
                (true, false) => Some(Self::Ends { is_bound: has_succeeded(to) }),
                (true, true) | (false, false) => None,
            },
        }
    }
}

/// Whether a call of the binding cycle is under way.
fn is_open(stage: &Stage) -> bool {
    matches!(stage, Stage::Binding(step) if step.is_open())
}

/// Whether the call that ended with this did what it was to do.
fn has_succeeded(to: &Stage) -> bool {
    matches!(to, Stage::Bound | Stage::Binding(_))
}

impl Engine {
    pub(crate) fn note_binding(&mut self, pod: &Pod, change: BindingChange) {
        let namespace = &pod.spec.namespace;
        match change {
            BindingChange::Begins => self.queues.throttle.begin(namespace, &pod.uid, self.now),
            BindingChange::Fails => self.queues.throttle.fail(namespace),
            BindingChange::Ends { is_bound } => {
                self.queues.throttle.end(namespace, &pod.uid, is_bound, self.now);
                self.release_throttled(namespace);
            }
        }
    }

    /// Pods of the namespace whose turn was put off are tried, as far as it may have more Bindings now.
    pub(crate) fn release_throttled(&mut self, namespace: &Arc<str>) {
        if !self.queues.throttle.has_waiting() {
            return;
        }
        for pod in self.queues.throttle.free(namespace, self.now) {
            self.move_to(&pod, Stage::Active);
        }
    }

    /// The same for every namespace: what was released before may have been placed nowhere, or have gone.
    pub(crate) fn release_all_throttled(&mut self) {
        if !self.queues.throttle.has_waiting() {
            return;
        }
        let crowded: Vec<_> = self.queues.throttle.crowded().cloned().collect();
        for namespace in crowded {
            self.release_throttled(&namespace);
        }
    }
}
