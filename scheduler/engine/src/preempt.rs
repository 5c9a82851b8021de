//! Making room for a Pod that fits nowhere: a promise to it, and two steps for each who must go.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, Deletion, Instant, NodeName, ObjectKey, Pod, PodDisruptionBudget, PodUid};

use crate::decision::{Eviction, Report};
use crate::engine::Engine;
use crate::event::EvictionStep;
use crate::record::Stage;
use crate::wake::Change;

/// A promise that another scheduler made counts for this long: one that it forgot must not keep
/// room for ever.
const FOREIGN_NOMINATION_FOR: Duration = Duration::from_mins(5);

/// Victims on their way out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Evictions {
    open: BTreeMap<PodUid, Eviction>,
    /// Those with a step to be handed out.
    next: VecDeque<PodUid>,
}

impl Evictions {
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    fn begin(&mut self, eviction: Eviction) {
        self.next.push_back(eviction.uid.clone());
        self.open.insert(eviction.uid.clone(), eviction);
    }

    fn pop(&mut self) -> Option<Eviction> {
        while let Some(victim) = self.next.pop_front() {
            if let Some(eviction) = self.open.get(&victim) {
                return Some(eviction.clone());
            }
        }
        None
    }

    pub fn forget(&mut self, victim: &PodUid) {
        self.open.remove(victim);
    }
}

/// Pods of other schedulers that were promised a Node: which, and until when that counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ForeignNominations {
    promised: BTreeMap<PodUid, (NodeName, Instant)>,
}

impl ForeignNominations {
    /// When the next promise that still counts ends.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        self.promised.values().map(|(_, until)| *until).filter(|until| *until > now).min()
    }
}

impl Engine {
    /// Promises the Node to the Pod, and sends the victims on their way.
    pub(crate) fn nominate(&mut self, preemptor: &PodUid, node: &NodeName, victims: &[PodUid]) {
        let Some(record) = self.pods.get(preemptor) else { return };
        let (key, priority) = (record.pod.key.clone(), record.pod.spec.shape.priority);
        self.stats.preemptions += 1;
        self.stats.preemption_victims += victims.len() as u64;
        for uid in victims {
            let Some(victim) = self.pods.get(uid) else { continue };
            if victim.pod.deletion.is_terminating() || self.evictions.open.contains_key(uid) {
                continue;
            }
            self.evictions.begin(Eviction {
                victim: victim.pod.key.clone(),
                uid: uid.clone(),
                step: EvictionStep::Announce,
                node: node.clone(),
                preemptor: key.clone(),
                preemptor_uid: preemptor.clone(),
            });
        }
        self.set_nomination(preemptor, Some(node.clone()));
        self.withdraw_lesser_promises(node, priority);
    }

    /// Who is less important and was promised the same Node has to look for another.
    fn withdraw_lesser_promises(&mut self, node: &NodeName, priority: i32) {
        let promised = self.cluster.promised(node).filter(|pod| pod.priority < priority);
        // Those of other schedulers are not ours to withdraw.
        let lesser = promised.filter(|pod| self.pods.contains_key(&pod.uid));
        let lesser: Vec<PodUid> = lesser.map(|pod| pod.uid.clone()).collect();
        for uid in lesser {
            self.set_nomination(&uid, None);
            if self.stage_of(&uid) == Some(&Stage::Parked) {
                self.wake(&uid);
            }
        }
    }

    pub(crate) fn set_nomination(&mut self, uid: &PodUid, node: Option<NodeName>) {
        let Some(record) = self.pods.get_mut(uid) else { return };
        if record.nominated == node {
            return;
        }
        record.nominated = node;
        self.reports.held(self.now, uid, &record.report);
        self.reflect(uid);
    }

    /// Another may have led meanwhile: what was promised is what the Pods say, and who had to go is
    /// decided anew.
    pub(crate) fn term_began(&mut self) {
        self.evictions = Evictions::default();
        self.uses.tell_anew(self.objects.refs());
        let all = self.pods.sorted().into_iter();
        let waiting = all.filter(|(_, record)| record.stage.is_waiting());
        let promised: Vec<(PodUid, Option<NodeName>)> =
            waiting.map(|(uid, record)| (uid.clone(), record.pod.nominated_node.clone())).collect();
        for (uid, node) in promised {
            self.set_nomination(&uid, node);
            if self.stage_of(&uid) == Some(&Stage::Parked) {
                self.wake(&uid);
            }
        }
    }

    pub(crate) fn next_eviction(&mut self) -> Option<Report> {
        self.evictions.pop().map(Report::Evict)
    }

    pub(crate) fn eviction_step_done(&mut self, victim: &PodUid, step: EvictionStep) {
        let Some(eviction) = self.evictions.open.get(victim).filter(|it| it.step == step) else {
            return;
        };
        let still_wanted = self.pods.get(&eviction.preemptor_uid).is_some_and(|record| {
            record.stage.is_waiting() && record.nominated.as_ref() == Some(&eviction.node)
        });
        let still_there = self.pods.get(victim).is_some_and(|record| {
            record.stage == Stage::Bound
                && record.holding.as_ref().is_some_and(|it| it.node == eviction.node)
                && record.pod.deletion == Deletion::None
        });
        let next = match step {
            EvictionStep::Announce if still_there && still_wanted => Some(EvictionStep::Delete),
            EvictionStep::Announce if still_there => Some(EvictionStep::Withdraw),
            // It has gone by itself, is deleted, or may stay.
            EvictionStep::Announce | EvictionStep::Delete | EvictionStep::Withdraw => None,
        };
        match next {
            Some(step) => self.evictions.begin(Eviction { step, ..eviction.clone() }),
            None => self.evictions.forget(victim),
        }
    }

    pub(crate) fn eviction_failed(&mut self, victim: &PodUid) {
        let Some(eviction) = self.evictions.open.remove(victim) else { return };
        let preemptor = &eviction.preemptor_uid;
        self.set_nomination(preemptor, None);
        if self.stage_of(preemptor) == Some(&Stage::Parked) {
            self.wake(preemptor);
        }
    }

    pub(crate) fn budget_seen(&mut self, budget: PodDisruptionBudget) {
        let before = self.cluster.budgets.get(&budget.key);
        self.placing.budget_changed(before, Some(&budget));
        self.cluster.insert_budget(budget);
    }

    pub(crate) fn budget_gone(&mut self, key: &ObjectKey) {
        let before = self.cluster.budgets.remove(key);
        self.placing.budget_changed(before.as_ref(), None);
    }

    /// A Pod that another scheduler has to place. It counts by the Node that it was promised.
    pub(crate) fn foreign_seen(&mut self, pod: &Pod) {
        let Some(node) = pod.nominated_node.clone() else {
            self.foreign_gone(&pod.uid);
            return;
        };
        let new = (node.clone(), self.now + FOREIGN_NOMINATION_FOR);
        let promise = self.foreign.promised.entry(pod.uid.clone()).or_insert(new.clone());
        if promise.0 != node {
            *promise = new;
        }
        if promise.1 <= self.now {
            return;
        }
        let mut promised = ClusterPod::new(pod.key.clone(), pod.uid.clone());
        promised.nominated_node = Some(node);
        promised.shape = pod.spec.shape.clone();
        let before = self.cluster.insert_pod(promised.clone());
        self.cluster_changed(Change::Pod { before: before.as_deref(), after: Some(&promised) });
    }

    pub(crate) fn foreign_gone(&mut self, uid: &PodUid) {
        if self.foreign.promised.remove(uid).is_some() {
            self.withdraw_foreign(uid);
        }
    }

    pub(crate) fn age_foreign(&mut self) {
        let promised = self.foreign.promised.iter();
        let aged = promised.filter(|(uid, (_, until))| {
            *until <= self.now && self.cluster.pods().contains_key(*uid)
        });
        let aged: Vec<PodUid> = aged.map(|(uid, _)| uid.clone()).collect();
        for uid in aged {
            self.withdraw_foreign(&uid);
        }
    }

    fn withdraw_foreign(&mut self, uid: &PodUid) {
        if let Some(gone) = self.cluster.remove_pod(uid) {
            self.cluster_changed(Change::Pod { before: Some(&gone), after: None });
        }
    }
}

/// For whom a Node is being cleared, and who must go.
pub(crate) struct Clearing {
    pub node: NodeName,
    pub victims: Vec<PodUid>,
}
