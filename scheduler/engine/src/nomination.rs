//! Nominations: a Node that is reserved for a Pod while its victims terminate, with everything else that the Pod takes
//! there. A nomination is withdrawn as soon as it cannot help the Pod any more, and the remaining victims are spared.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, Deletion, Granted, Instant, Need, NodeName, ObjectRef, Pod, PodUid};

use crate::engine::Engine;
use crate::ledger::Reservation;
use crate::queue::backoff_after;
use crate::record::{Record, Stage};
use crate::wake::ClusterChange;

/// How long victims may take beyond their own grace period, and their announcements altogether. What is held for a
/// nominated Pod is kept from others: a victim that never ends, for the sake of a finalizer perhaps, must not keep it
/// from them for ever.
pub(crate) const VICTIMS_LATE_MAX: Duration = Duration::from_mins(2);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Nomination {
    /// Where the Pod is to go, and what it takes there.
    pub place: Reservation,
    /// Whether the ledger holds that. It does not for a nomination that was read from the Pod before the Pod was tried,
    /// nor while the Pod is being bound: then its own holding counts.
    pub is_reserved: bool,
    /// The Pods that are evicted for it.
    pub victims: Vec<PodUid>,
    /// When it ends at the latest.
    pub until: Instant,
}

impl Nomination {
    pub fn new(node: NodeName, victims: Vec<PodUid>, until: Instant) -> Self {
        let place =
            Reservation { node, granted: Box::default(), volumes: None, claims: Box::default() };
        Self { place, is_reserved: false, victims, until }
    }
}

/// What can be derived from the nominations of all Pods, and is asked for often.
#[derive(Debug, Default)]
pub(crate) struct Nominations {
    /// By when each ends.
    due: BTreeSet<(Instant, PodUid)>,
    /// Those that something has happened to: whether they still help is asked before anything else is decided.
    to_recheck: BTreeSet<PodUid>,
}

impl Nominations {
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }
}

impl Engine {
    /// Gives the Pod this nomination in the place of the one that it has. What it takes is held by
    /// [`Self::reserve_nominated`].
    pub(crate) fn set_nomination(&mut self, uid: &PodUid, new: Option<Nomination>) {
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        let before = std::mem::replace(&mut record.nominated, new.map(Box::new));
        let has_moved = before.as_ref().map(|it| &it.place.node) != record.nominated_node();
        if let Some(before) = &before {
            self.nominations.due.remove(&(before.until, uid.clone()));
            if before.is_reserved {
                self.ledger.withdraw(record.order, &before.place);
                self.ledger.commit();
            }
        }
        if let Some(nomination) = &record.nominated {
            self.nominations.due.insert((nomination.until, uid.clone()));
        }
        if has_moved {
            self.outbox.reports.unschedulable(self.now, uid, &record.report);
            self.sync_pod_to_cluster(uid);
        }
        if let Some(before) = before.filter(|before| before.is_reserved) {
            self.wake_after_release(&before.place);
        }
    }

    /// The nomination does not help any more: what it holds is free, its victims are spared, and the Pod looks for
    /// another place.
    pub(crate) fn withdraw_nomination(&mut self, uid: &PodUid) {
        if self.observed.pods.get(uid).is_none_or(|record| record.nominated.is_none()) {
            return;
        }
        self.set_nomination(uid, None);
        if self.stage_of(uid) == Some(&Stage::Parked) {
            self.wake(uid);
        }
    }

    /// Holds for a nominated Pod everything that it takes, all of it or nothing. `false`: there is not enough.
    pub(crate) fn reserve_nominated(&mut self, uid: &PodUid) -> bool {
        let Some(record) = self.observed.pods.get(uid) else { return false };
        let Some(nomination) = record.nominated.as_deref() else { return false };
        if nomination.is_reserved {
            return true;
        }
        let (pod, order) = (record.pod.clone(), record.order);
        let Some(granted) = self.granted_to(&pod) else { return false };
        let place = Reservation {
            node: nomination.place.node.clone(),
            granted,
            volumes: None,
            claims: Box::default(),
        };
        let mark = self.ledger.mark();
        self.ledger.nominate(order, &pod, &place);
        if self.pre_filter_nominated(order, &pod.spec).is_err() {
            self.ledger.rollback(mark);
            return false;
        }
        self.ledger.commit();
        self.recheck_nominations_reserving(&place);
        if let Some(nomination) =
            self.observed.pods.get_mut(uid).and_then(|it| it.nominated.as_mut())
        {
            nomination.place = place;
            nomination.is_reserved = true;
        }
        true
    }

    /// What a Pod takes of the objects that it refers to; `None` if one of them is not there.
    fn granted_to(&self, pod: &Pod) -> Option<Box<[Granted]>> {
        let granted = |need: &Need| {
            let uid = self.observed.objects.get(&need.object)?.uid.clone();
            Some(Granted { uid, amount: need.reserves() })
        };
        pod.spec.needs.iter().map(granted).collect()
    }

    /// A nomination that was read from the Pod. It counts for as long as one that is given now.
    pub(crate) fn nomination_read(&self, pod: &Pod) -> Option<Nomination> {
        let node = pod.nominated_node.clone()?;
        let priority = pod.spec.scheduling.priority;
        let is_announced = |other: &ClusterPod| {
            let record = self.observed.pods.get(&other.uid).filter(|_| other.priority < priority);
            record.is_some_and(|it| it.pod.is_announced)
        };
        let on_node = self.observed.cluster.pods_on(&node);
        let leaving = on_node.filter(|other| is_victim(other, priority) || is_announced(other));
        let victims: Vec<PodUid> = leaving.map(|other| other.uid.clone()).collect();
        let until = self.victims_end_by(&victims);
        Some(Nomination::new(node, victims, until))
    }

    /// When these victims should be gone.
    pub(crate) fn victims_end_by(&self, victims: &[PodUid]) -> Instant {
        let grace = victims.iter().filter_map(|uid| self.observed.pods.get(uid));
        let grace = grace.map(|record| record.pod.grace_period).max().unwrap_or_default();
        self.now + grace + VICTIMS_LATE_MAX
    }

    /// Another step of sending its victims away was done.
    pub(crate) fn prolong_nomination(&mut self, uid: &PodUid, victim: &PodUid) {
        let until = self.victims_end_by(std::slice::from_ref(victim));
        let Some(nomination) = self.observed.pods.get_mut(uid).and_then(|it| it.nominated.as_mut())
        else {
            return;
        };
        if nomination.until < until {
            self.nominations.due.remove(&(nomination.until, uid.clone()));
            nomination.until = until;
            self.nominations.due.insert((until, uid.clone()));
        }
    }

    /// Whether the Pod could start where it is nominated if its victims were gone, but for the one that is `spared`:
    /// everything that it takes is still held, and the Node still takes it.
    pub(crate) fn nomination_helps(&self, record: &Record, spared: Option<&PodUid>) -> bool {
        let Some(nomination) = record.nominated.as_deref() else { return false };
        if !record.stage.is_waiting() || record.pod.spec.hold.is_some() {
            return false;
        }
        let Ok(objects) = self.pre_filter_nominated(record.order, &record.pod.spec) else {
            return false;
        };
        let granted = nomination.place.granted.iter().map(|it| &it.uid);
        if nomination.is_reserved && !granted.eq(objects.iter().map(|object| &object.uid)) {
            // Another object under the same name.
            return false;
        }
        let Some(node) = self.observed.cluster.nodes.get(&nomination.place.node) else {
            return false;
        };
        let priority = record.pod.spec.scheduling.priority;
        let is_leaving = |other: &&ClusterPod| {
            let is_sent_away = nomination.victims.contains(&other.uid) && other.priority < priority;
            let leaves = is_sent_away || is_victim(other, priority);
            leaves && Some(&other.uid) != spared
        };
        let leaving: Vec<&ClusterPod> =
            self.observed.cluster.pods_on(&nomination.place.node).filter(is_leaving).collect();
        let (key, rules) = (record.park_key(), self.rules_of(&record.pod.spec.profile));
        let to_place = self.pod_to_place(&key);
        rules::filter_without(rules, &self.observed.cluster, &to_place, node, &leaving).is_empty()
    }

    /// To be called after every change of the cluster. Constraints that depend on Pods on
    /// other Nodes are rechecked when the Pod is tried, and before each deletion.
    pub(crate) fn recheck_nominations_on(&mut self, change: ClusterChange<'_>) {
        if self.nominations.due.is_empty() {
            return;
        }
        let to_recheck = &mut self.nominations.to_recheck;
        let mut on = |node: &NodeName| {
            to_recheck.extend(self.observed.cluster.nominated(node).map(|pod| pod.uid.clone()));
        };
        match change {
            ClusterChange::Node(node) => on(node),
            ClusterChange::Pod { before, after } => {
                let pods = [before, after].into_iter().flatten();
                pods.flat_map(|pod| [&pod.node, &pod.nominated_node]).flatten().for_each(on);
            }
            ClusterChange::Volumes(_) | ClusterChange::Devices(_) => {
                let has_claims = |uid: &&PodUid| {
                    let record = self.observed.pods.get(uid);
                    record.is_some_and(|it| it.pod.spec.has_claims())
                };
                let nominated = self.nominations.due.iter().map(|(_, uid)| uid);
                to_recheck.extend(nominated.filter(has_claims).cloned());
            }
            ClusterChange::Namespaces
            | ClusterChange::Selectors { .. }
            | ClusterChange::Feasibility => {
                to_recheck.extend(self.nominations.due.iter().map(|(_, uid)| uid.clone()));
            }
        }
    }

    pub(crate) fn recheck_nomination(&mut self, uid: &PodUid) {
        if self.observed.pods.get(uid).is_some_and(|record| record.nominated.is_some()) {
            self.nominations.to_recheck.insert(uid.clone());
        }
    }

    /// Others have taken some of these objects.
    pub(crate) fn recheck_nominations_reserving(&mut self, reservation: &Reservation) {
        for granted in &reservation.granted {
            let nominees = self.ledger.nominees(&granted.uid);
            let nominees = nominees.map(|(_, nominee)| nominee.holder.uid.clone());
            self.nominations.to_recheck.extend(nominees);
        }
    }

    /// What these objects promise, or to which namespaces, may have changed.
    pub(crate) fn recheck_nominations_needing(&mut self, concerns: impl Fn(&ObjectRef) -> bool) {
        let nominated = self.nominations.due.iter().map(|(_, uid)| uid);
        let concerned = nominated.filter(|uid| {
            let record = self.observed.pods.get(uid);
            record.is_some_and(|it| it.pod.spec.needs.iter().any(|need| concerns(&need.object)))
        });
        let concerned: Vec<PodUid> = concerned.cloned().collect();
        self.nominations.to_recheck.extend(concerned);
    }

    /// To be called when everything that an event or an attempt changes is changed. The last in order are asked first:
    /// where two cannot both be kept, the earlier keeps its own.
    pub(crate) fn reconsider_nominations(&mut self) {
        while !self.nominations.to_recheck.is_empty() {
            let to_recheck = std::mem::take(&mut self.nominations.to_recheck);
            let mut records: Vec<_> =
                to_recheck.iter().filter_map(|uid| self.observed.pods.get(uid)).collect();
            records.sort_by_key(|record| std::cmp::Reverse(record.order));
            let uids: Vec<PodUid> = records.iter().map(|it| it.pod.uid.clone()).collect();
            for uid in uids {
                let waits =
                    |record: &&Record| record.nominated.is_some() && record.stage.is_waiting();
                let record = self.observed.pods.get(&uid).filter(waits);
                if record.is_some_and(|record| !self.nomination_helps(record, None)) {
                    self.withdraw_nomination(&uid);
                }
            }
        }
    }

    /// Its preemption has failed: it backs off, so that other Pods come first.
    pub(crate) fn step_back(&mut self, uid: &PodUid) {
        if let Some(record) = self.observed.pods.get_mut(uid).filter(|it| it.stage.is_waiting()) {
            record.failures = record.failures.saturating_add(1);
            record.not_before = self.now + backoff_after(record.failures);
        }
    }

    /// Ends nominations whose victims have taken too long: other Pods get what was reserved before the Pod is tried again.
    pub(crate) fn end_overdue_nominations(&mut self) {
        while let Some((until, uid)) = self.nominations.due.first().cloned() {
            if until > self.now {
                return;
            }
            self.step_back(&uid);
            self.withdraw_nomination(&uid);
            self.nominations.due.remove(&(until, uid));
        }
    }

    /// Counts again what is derived, for a record that is taken over as it is.
    pub(crate) fn restore_nomination(&mut self, record: &Record) {
        let Some(nomination) = record.nominated.as_deref() else { return };
        self.nominations.due.insert((nomination.until, record.pod.uid.clone()));
        if nomination.is_reserved {
            self.ledger.nominate(record.order, &record.pod, &nomination.place);
            self.ledger.commit();
        }
    }
}

/// Whether it is a terminating victim of a Pod of this priority.
fn is_victim(other: &ClusterPod, priority: i32) -> bool {
    other.priority < priority && other.deletion == Deletion::TerminatingByPreemption
}
