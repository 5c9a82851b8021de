//! Making room for a Pod that fits nowhere: a promise to it, and two steps for each who must go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, Deletion, Instant, NodeName, ObjectKey, Pod, PodDisruptionBudget, PodUid};

use crate::decision::{Eviction, Report};
use crate::engine::Engine;
use crate::event::EvictionStep;
use crate::nomination::Nomination;
use crate::record::{Record, Stage};
use crate::wake::Change;

/// A promise that another scheduler made counts for this long: one that it forgot must not keep
/// room for ever.
const FOREIGN_NOMINATION_FOR: Duration = Duration::from_mins(5);

/// A deletion is tried this often. It is asked for anew each time, because what it is for may have changed.
const DELETIONS_MAX: u32 = 3;
/// A victim that stays is told so; what could not be written is written again after this time …
const WITHDRAW_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// … and this often, some minutes altogether.
const WITHDRAWALS_MAX: u32 = 10;

/// Victims on their way out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Evictions {
    open: BTreeMap<PodUid, Open>,
    /// Those with a step to be handed out.
    next: VecDeque<PodUid>,
    /// Those that are told again later that they stay.
    later: BTreeSet<(Instant, PodUid)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    eviction: Eviction,
    /// How often this step was begun.
    tries: u32,
    is_handed_out: bool,
}

impl Evictions {
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    fn begin(&mut self, eviction: Eviction) {
        self.begin_again(Open { eviction, tries: 0, is_handed_out: false });
    }

    fn begin_again(&mut self, open: Open) {
        let victim = open.eviction.uid.clone();
        self.next.push_back(victim.clone());
        self.open.insert(victim, Open { is_handed_out: false, ..open });
    }

    /// The next step that waits to be handed out.
    fn pop(&mut self) -> Option<Eviction> {
        while let Some(victim) = self.next.pop_front() {
            let waiting = self.open.get(&victim).filter(|open| !open.is_handed_out);
            if let Some(open) = waiting {
                return Some(open.eviction.clone());
            }
        }
        None
    }

    fn hand_out(&mut self, eviction: &Eviction) {
        if let Some(open) = self.open.get_mut(&eviction.uid) {
            open.tries = if open.eviction.step == eviction.step { open.tries + 1 } else { 1 };
            open.is_handed_out = true;
            open.eviction = eviction.clone();
        }
    }

    pub fn forget(&mut self, victim: &PodUid) {
        self.open.remove(victim);
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.later.first().map(|(at, _)| *at)
    }

    pub fn advance(&mut self, now: Instant) {
        while self.next_due().is_some_and(|at| at <= now) {
            let Some((_, victim)) = self.later.pop_first() else { return };
            self.next.push_back(victim);
        }
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
    /// Promises the Pod the Node and everything else that it takes there, and sends the victims on their way.
    pub(crate) fn nominate(&mut self, preemptor: &PodUid, clearing: Clearing) {
        let Clearing { node, victims } = clearing;
        let Some(record) = self.pods.get(preemptor) else { return };
        let (key, priority) = (record.pod.key.clone(), record.pod.spec.scheduling.priority);
        self.stats.preemptions += 1;
        self.stats.preemption_victims += victims.len() as u64;
        for uid in &victims {
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
        let until = self.victims_end_by(&victims);
        match self.pods.get_mut(preemptor).and_then(|it| it.nominated.as_mut()) {
            Some(nomination) if nomination.place.node == node => nomination.victims = victims,
            _ => {
                let new = Nomination::new(node.clone(), victims, until);
                self.set_nomination(preemptor, Some(new));
            }
        }
        self.withdraw_lesser_promises(&node, priority);
    }

    /// Who is less important and was promised the same Node has to look for another.
    fn withdraw_lesser_promises(&mut self, node: &NodeName, priority: i32) {
        let promised = self.cluster.promised(node).filter(|pod| pod.priority < priority);
        // Those of other schedulers are not ours to withdraw.
        let lesser = promised.filter(|pod| self.pods.contains_key(&pod.uid));
        let lesser: Vec<PodUid> = lesser.map(|pod| pod.uid.clone()).collect();
        for uid in lesser {
            self.withdraw_nomination(&uid);
        }
    }

    /// Another may have led meanwhile: what was promised is what the Pods say, as far as it can still be held. Who was
    /// told to go and is not needed for that is told that it stays.
    pub(crate) fn term_began(&mut self) {
        self.evictions = Evictions::default();
        self.take_over_announced();
        self.uses.tell_anew(self.objects.refs());
        let all = self.pods.sorted().into_iter();
        let mut waiting: Vec<_> = all.filter(|(_, record)| record.stage.is_waiting()).collect();
        waiting.sort_by_key(|(_, record)| record.order);
        let read: Vec<(PodUid, Option<Nomination>)> = waiting
            .into_iter()
            .filter(|(_, record)| record.nominated.is_some() || record.pod.nominated_node.is_some())
            .map(|(uid, record)| (uid.clone(), self.nomination_read(&record.pod)))
            .collect();
        for (uid, _) in &read {
            self.set_nomination(uid, None);
        }
        for (uid, nomination) in read {
            self.set_nomination(&uid, nomination);
            if !self.reserve_nominated(&uid) {
                self.set_nomination(&uid, None);
            }
            if self.stage_of(&uid) == Some(&Stage::Parked) {
                self.wake(&uid);
            }
        }
    }

    /// Begun as a withdrawal: when it is handed out, whoever is still wanted is told once more to go instead.
    fn take_over_announced(&mut self) {
        for (uid, record) in self.pods.sorted() {
            let holding = record.holding.as_ref().filter(|_| record.pod.is_announced);
            let Some(holding) = holding else { continue };
            self.evictions.begin(Eviction {
                victim: record.pod.key.clone(),
                uid: uid.clone(),
                step: EvictionStep::Withdraw,
                node: holding.node.clone(),
                // For whom it was to go is not known any more.
                preemptor: record.pod.key.clone(),
                preemptor_uid: uid.clone(),
            });
        }
    }

    /// The next step of an eviction. Whether it is still wanted is asked now, right before it is done.
    pub(crate) fn next_eviction(&mut self) -> Option<Report> {
        while let Some(mut eviction) = self.evictions.pop() {
            if !self.is_there(&eviction) {
                // It has gone by itself, or is going.
                self.evictions.forget(&eviction.uid);
                continue;
            }
            let wanted_by = self.wanted_by(&eviction);
            if wanted_by.is_none() {
                self.spare(&eviction.uid, &eviction.node);
            }
            match (wanted_by, eviction.step) {
                (None, EvictionStep::Announce) => {
                    self.evictions.forget(&eviction.uid);
                    continue;
                }
                (None, EvictionStep::Delete | EvictionStep::Withdraw) => {
                    eviction.step = EvictionStep::Withdraw;
                }
                (Some(preemptor), step) => {
                    if step == EvictionStep::Withdraw {
                        // It is wanted again. Whether it knows is not certain: it is told once more.
                        eviction.step = EvictionStep::Announce;
                    }
                    (eviction.preemptor, eviction.preemptor_uid) = preemptor;
                }
            }
            self.evictions.hand_out(&eviction);
            return Some(Report::Evict(eviction));
        }
        None
    }

    /// Whether the victim is still where it was to leave.
    fn is_there(&self, eviction: &Eviction) -> bool {
        self.pods.get(&eviction.uid).is_some_and(|record| {
            record.stage == Stage::Bound
                && record.holding.as_ref().is_some_and(|it| it.node == eviction.node)
                && record.pod.deletion == Deletion::None
        })
    }

    /// The Pod that could start if this victim and the others that it waits for were gone, and could not without this
    /// one: most often the one for which the eviction was begun.
    fn wanted_by(&self, eviction: &Eviction) -> Option<(ObjectKey, PodUid)> {
        let mut nominees = self.nominees_that_want(&eviction.uid, &eviction.node);
        nominees.sort_by_key(|uid| *uid != eviction.preemptor_uid);
        let mut records = nominees.iter().filter_map(|uid| self.pods.get(uid));
        let wants = |record: &&Record| {
            self.nomination_helps(record, None)
                && !self.nomination_helps(record, Some(&eviction.uid))
        };
        records.find(wants).map(|record| (record.pod.key.clone(), record.pod.uid.clone()))
    }

    /// Nobody who is nominated on the Node counts on its leaving any more.
    fn spare(&mut self, victim: &PodUid, node: &NodeName) {
        for uid in self.nominees_that_want(victim, node) {
            if let Some(nomination) = self.pods.get_mut(&uid).and_then(|it| it.nominated.as_mut()) {
                nomination.victims.retain(|it| it != victim);
            }
        }
    }

    fn nominees_that_want(&self, victim: &PodUid, node: &NodeName) -> Vec<PodUid> {
        let promised = self.cluster.promised(node).map(|pod| &pod.uid);
        let wants = |uid: &&PodUid| {
            let nomination = self.pods.get(uid).and_then(|record| record.nominated.as_deref());
            nomination.is_some_and(|it| it.victims.contains(victim))
        };
        promised.filter(wants).cloned().collect()
    }

    pub(crate) fn eviction_step_done(&mut self, victim: &PodUid, step: EvictionStep) {
        let Some(open) = self.evictions.open.get(victim).filter(|it| it.eviction.step == step)
        else {
            return;
        };
        let eviction = open.eviction.clone();
        self.prolong_nomination(&eviction.preemptor_uid, victim);
        match step {
            // Whether it is still wanted is asked when that is handed out.
            EvictionStep::Announce => {
                self.evictions.begin(Eviction { step: EvictionStep::Delete, ..eviction });
            }
            EvictionStep::Withdraw if self.wanted_by(&eviction).is_some() => {
                self.evictions.begin(Eviction { step: EvictionStep::Announce, ..eviction });
            }
            EvictionStep::Delete | EvictionStep::Withdraw => self.evictions.forget(victim),
        }
    }

    /// It was not deleted, this time.
    pub(crate) fn eviction_delayed(&mut self, victim: &PodUid) {
        let Some(open) = self.evictions.open.get(victim).cloned() else { return };
        if open.tries >= DELETIONS_MAX {
            self.eviction_failed(victim);
        } else {
            self.evictions.begin_again(open);
        }
    }

    /// The victim stays: it is told so if it may have been told that it goes, and no nomination counts on it.
    pub(crate) fn eviction_failed(&mut self, victim: &PodUid) {
        let Some(open) = self.evictions.open.remove(victim) else { return };
        let Open { eviction, tries, .. } = open;
        if eviction.step == EvictionStep::Withdraw {
            if tries < WITHDRAWALS_MAX {
                let again = Open { eviction, tries, is_handed_out: false };
                self.evictions.open.insert(victim.clone(), again);
                let at = self.now + WITHDRAW_AGAIN_AFTER;
                self.evictions.later.insert((at, victim.clone()));
            }
            return;
        }
        for preemptor in self.nominees_that_want(victim, &eviction.node) {
            self.step_back(&preemptor);
            self.withdraw_nomination(&preemptor);
        }
        self.evictions.begin(Eviction { step: EvictionStep::Withdraw, ..eviction });
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
        promised.scheduling = pod.spec.scheduling.clone();
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

/// A Node that is to be cleared, and who must go.
pub(crate) struct Clearing {
    pub node: NodeName,
    pub victims: Vec<PodUid>,
}
