//! Preemption: a nomination for a Pod that fits on no Node, and the eviction of its victims in two steps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{Deletion, Instant, NodeName, ObjectKey, PodUid};

use crate::decision::Eviction;
use crate::engine::Engine;
use crate::event::EvictionStep;
use crate::nomination::Nomination;
use crate::record::{Record, Stage};

/// A deletion is tried this often. It is asked for anew each time, because what it is for may have changed.
const DELETIONS_MAX: u32 = 3;
/// After one that failed. Nothing is under way meanwhile, so that no other eviction waits.
const DELETE_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// A step in a namespace whose evictions are overdue is looked at again after this time.
const PUT_OFF: Duration = Duration::from_secs(1);
/// The announcement of a victim that stays is withdrawn; a write that failed is retried after this time …
const WITHDRAW_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// … and this often, some minutes altogether.
const WITHDRAWALS_MAX: u32 = 10;

/// Evictions in progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Evictions {
    open: BTreeMap<PodUid, Open>,
    /// Those with a step to be handed out.
    next: VecDeque<PodUid>,
    /// Those with a step to be handed out later.
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
        let victim = eviction.uid.clone();
        self.next.push_back(victim.clone());
        self.open.insert(victim, Open { eviction, tries: 0, is_handed_out: false });
    }

    /// The step waits until then.
    fn again_at(&mut self, at: Instant, victim: &PodUid) {
        if let Some(open) = self.open.get_mut(victim).filter(|open| open.is_handed_out) {
            open.is_handed_out = false;
            self.later.insert((at, victim.clone()));
        }
    }

    /// The step was handed out and is not done now: that counts as no try.
    pub fn put_off(&mut self, now: Instant, victim: &PodUid) {
        if let Some(open) = self.open.get_mut(victim) {
            open.tries = open.tries.saturating_sub(1);
        }
        self.again_at(now + PUT_OFF, victim);
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

impl Engine {
    /// Nominates the Pod for the Node, and begins the eviction of the victims.
    pub(crate) fn nominate(&mut self, preemptor: &PodUid, plan: PreemptionPlan) {
        let PreemptionPlan { node, victims } = plan;
        let Some(record) = self.observed.pods.get(preemptor) else { return };
        let (key, priority) = (record.pod.key.clone(), record.pod.spec.scheduling.priority);
        self.stats.preemptions += 1;
        self.stats.preemption_victims += victims.len() as u64;
        for uid in &victims {
            let Some(victim) = self.observed.pods.get(uid) else { continue };
            if victim.pod.deletion.is_terminating() || self.outbox.evictions.open.contains_key(uid)
            {
                continue;
            }
            self.outbox.evictions.begin(Eviction {
                victim: victim.pod.key.clone(),
                uid: uid.clone(),
                step: EvictionStep::Announce,
                node: node.clone(),
                preemptor: key.clone(),
                preemptor_uid: preemptor.clone(),
            });
        }
        let until = self.victims_end_by(&victims);
        match self.observed.pods.get_mut(preemptor).and_then(|it| it.nominated.as_mut()) {
            Some(nomination) if nomination.place.node == node => nomination.victims = victims,
            _ => {
                let new = Nomination::new(node.clone(), victims, until);
                self.set_nomination(preemptor, Some(new));
            }
        }
        self.withdraw_lesser_nominations(&node, priority);
    }

    /// Withdraws the nominations of less important Pods for the same Node.
    fn withdraw_lesser_nominations(&mut self, node: &NodeName, priority: i32) {
        let nominated = self.observed.cluster.nominated(node).filter(|pod| pod.priority < priority);
        // Nominations by other schedulers are not withdrawn here.
        let lesser = nominated.filter(|pod| self.observed.pods.contains_key(&pod.uid));
        let lesser: Vec<PodUid> = lesser.map(|pod| pod.uid.clone()).collect();
        for uid in lesser {
            self.withdraw_nomination(&uid);
        }
    }

    /// Another replica may have led meanwhile: nominations are read from the Pods, as far as they can still be reserved.
    /// The announcement of a victim that none of them needs is withdrawn.
    pub(crate) fn term_began(&mut self) {
        self.abandon_all_unsent();
        self.outbox.evictions = Evictions::default();
        self.take_over_announced();
        self.outbox.uses.report_anew(self.observed.objects.refs());
        let all = self.observed.pods.sorted().into_iter();
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

    /// Begun as withdrawals: a victim that is still needed when its step is handed out is announced again instead.
    fn take_over_announced(&mut self) {
        for (uid, record) in self.observed.pods.sorted() {
            let reservation = record.reservation.as_ref().filter(|_| record.pod.is_announced);
            let Some(reservation) = reservation else { continue };
            self.outbox.evictions.begin(Eviction {
                victim: record.pod.key.clone(),
                uid: uid.clone(),
                step: EvictionStep::Withdraw,
                node: reservation.node.clone(),
                // The preemptor is not known any more.
                preemptor: record.pod.key.clone(),
                preemptor_uid: uid.clone(),
            });
        }
    }

    /// The next step of an eviction. Whether it is still wanted is asked now, right before it is done.
    pub(crate) fn next_eviction(&mut self) -> Option<Eviction> {
        while let Some(mut eviction) = self.outbox.evictions.pop() {
            if !self.is_there(&eviction) {
                // It has gone by itself, or is going.
                self.outbox.evictions.forget(&eviction.uid);
                continue;
            }
            let wanted_by = self.wanted_by(&eviction);
            if wanted_by.is_none() {
                self.spare(&eviction.uid, &eviction.node);
            }
            match (wanted_by, eviction.step) {
                (None, EvictionStep::Announce) => {
                    self.outbox.evictions.forget(&eviction.uid);
                    continue;
                }
                (None, EvictionStep::Delete | EvictionStep::Withdraw) => {
                    eviction.step = EvictionStep::Withdraw;
                }
                (Some(preemptor), step) => {
                    if step == EvictionStep::Withdraw {
                        // It is needed again, and the announcement may have been withdrawn: it is announced once more.
                        eviction.step = EvictionStep::Announce;
                    }
                    (eviction.preemptor, eviction.preemptor_uid) = preemptor;
                }
            }
            self.outbox.evictions.hand_out(&eviction);
            return Some(eviction);
        }
        None
    }

    /// Whether the victim is still where it was to leave.
    fn is_there(&self, eviction: &Eviction) -> bool {
        self.observed.pods.get(&eviction.uid).is_some_and(|record| {
            record.stage == Stage::Bound
                && record.reservation.as_ref().is_some_and(|it| it.node == eviction.node)
                && record.pod.deletion == Deletion::None
        })
    }

    /// The Pod that could start if this victim and the others that it waits for were gone, and could not without this
    /// one: most often the one for which the eviction was begun.
    fn wanted_by(&self, eviction: &Eviction) -> Option<(ObjectKey, PodUid)> {
        let mut nominees = self.nominees_that_want(&eviction.uid, &eviction.node);
        nominees.sort_by_key(|uid| *uid != eviction.preemptor_uid);
        let mut records = nominees.iter().filter_map(|uid| self.observed.pods.get(uid));
        let wants = |record: &&Record| {
            self.nomination_helps(record, None)
                && !self.nomination_helps(record, Some(&eviction.uid))
        };
        records.find(wants).map(|record| (record.pod.key.clone(), record.pod.uid.clone()))
    }

    /// No nomination for the Node counts on this victim any more.
    fn spare(&mut self, victim: &PodUid, node: &NodeName) {
        for uid in self.nominees_that_want(victim, node) {
            if let Some(nomination) =
                self.observed.pods.get_mut(&uid).and_then(|it| it.nominated.as_mut())
            {
                nomination.victims.retain(|it| it != victim);
            }
        }
    }

    fn nominees_that_want(&self, victim: &PodUid, node: &NodeName) -> Vec<PodUid> {
        let nominated = self.observed.cluster.nominated(node).map(|pod| &pod.uid);
        let wants = |uid: &&PodUid| {
            let nomination =
                self.observed.pods.get(uid).and_then(|record| record.nominated.as_deref());
            nomination.is_some_and(|it| it.victims.contains(victim))
        };
        nominated.filter(wants).cloned().collect()
    }

    pub(crate) fn eviction_step_done(&mut self, victim: &PodUid, step: EvictionStep) {
        let Some(open) =
            self.outbox.evictions.open.get(victim).filter(|it| it.eviction.step == step)
        else {
            return;
        };
        let eviction = open.eviction.clone();
        self.prolong_nomination(&eviction.preemptor_uid, victim);
        match step {
            // Whether it is still wanted is asked when that is handed out.
            EvictionStep::Announce => {
                self.outbox.evictions.begin(Eviction { step: EvictionStep::Delete, ..eviction });
            }
            EvictionStep::Withdraw if self.wanted_by(&eviction).is_some() => {
                self.outbox.evictions.begin(Eviction { step: EvictionStep::Announce, ..eviction });
            }
            EvictionStep::Delete | EvictionStep::Withdraw => self.outbox.evictions.forget(victim),
        }
    }

    /// It was not deleted, this time.
    pub(crate) fn eviction_delayed(&mut self, victim: &PodUid) {
        let Some(open) = self.outbox.evictions.open.get(victim) else { return };
        if open.tries >= DELETIONS_MAX {
            self.eviction_failed(victim);
        } else {
            self.outbox.evictions.again_at(self.now + DELETE_AGAIN_AFTER, victim);
        }
    }

    /// The victim stays: a possible announcement is withdrawn, and no nomination counts on it any more.
    pub(crate) fn eviction_failed(&mut self, victim: &PodUid) {
        let Some(Open { eviction, tries, .. }) = self.outbox.evictions.open.get(victim).cloned()
        else {
            return;
        };
        if eviction.step == EvictionStep::Withdraw {
            if tries < WITHDRAWALS_MAX {
                self.outbox.evictions.again_at(self.now + WITHDRAW_AGAIN_AFTER, victim);
            } else {
                self.outbox.evictions.forget(victim);
            }
            return;
        }
        self.outbox.evictions.forget(victim);
        for preemptor in self.nominees_that_want(victim, &eviction.node) {
            self.step_back(&preemptor);
            self.withdraw_nomination(&preemptor);
        }
        self.outbox.evictions.begin(Eviction { step: EvictionStep::Withdraw, ..eviction });
    }
}

/// A Node to make room on, and the victims.
pub(crate) struct PreemptionPlan {
    pub node: NodeName,
    pub victims: Vec<PodUid>,
}
