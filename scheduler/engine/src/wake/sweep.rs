//! The sweep: parked Pods are judged anew now and then, in case an event was lost.

use model::NodeSelector;
use rules::{Plugin, Rules};

use super::cluster_change::Scope;
use crate::engine::{Engine, SWEEP_CLASSES_MAX, SWEEP_INTERVAL, SWEEP_PAUSE};
use crate::queue::ParkKey;

impl Engine {
    /// Were an event lost, this finds it out: all chances are judged anew, a few classes at a time. It never does in a test.
    pub(crate) fn sweep(&mut self) {
        if self.now < self.queues.sweep_at {
            return;
        }
        let classes =
            self.queues.parked.classes_after(self.queues.sweep_after.as_ref(), SWEEP_CLASSES_MAX);
        for class in &classes {
            self.sweep_class(class);
        }
        if classes.len() == SWEEP_CLASSES_MAX {
            self.queues.sweep_after = classes.into_iter().next_back();
            self.queues.sweep_at = self.now + SWEEP_PAUSE;
        } else {
            self.queues.sweep_after = None;
            self.queues.sweep_at = self.now + SWEEP_INTERVAL;
            self.placing.forget_unused();
        }
    }

    fn sweep_class(&mut self, class: &ParkKey) {
        // Selectors that told it from others may be gone.
        let scheduling = self.placing.project(&class.scheduling);
        if scheduling != class.scheduling {
            for (key, order, pod) in self.queues.parked.of_class(class) {
                let to = ParkKey { scheduling: scheduling.clone(), ..key.clone() };
                self.park_as(&key, to, order, &pod);
            }
            return;
        }
        self.file(class);
        if self.queues.wake_index.has_room(class) {
            let scope = scope_of(self.rules_of(&class.profile), class);
            self.stats.woken_by_sweep += self.judge(class, &scope);
        }
    }
}

/// Where a Pod of this class can have a chance at all: a DaemonSet's Pod names its Node.
fn scope_of(rules: &Rules, class: &ParkKey) -> Scope {
    let required = class.scheduling.node_affinity.required.as_ref();
    let named = required.filter(|_| rules.filters_by(Plugin::NodeAffinity));
    named.and_then(NodeSelector::named_nodes).map_or(Scope::Everywhere, Scope::Nodes)
}
