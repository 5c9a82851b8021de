//! A transaction: Pods are placed one after the other, each seeing those before it, and all of it can be undone.
//!
//! A placement that is not committed changes the ledger, the cluster view, the node index and the tie-breaker, and
//! nothing else. What follows from it (stages, queues, wake-ups, reports) follows at the commit. So a rollback undoes
//! these four, in the opposite order, at a cost in proportion to what was placed.

use std::sync::Arc;

use model::{ClusterPod, NodeName, Pod, Reservable};
use rules::Plugin;

use crate::corridor::grant;
use crate::decision::{Action, Bind};
use crate::engine::Engine;
use crate::ledger::{self, Reservation};
use crate::queue::{Order, ParkKey};
use crate::rng::Rng;
use crate::schedule_one::{Destination, NotPlaced};
use crate::wake::ClusterChange;

/// A Pod of the unit that an attempt places: all of its Pods, or none.
#[derive(Clone, Copy)]
pub(crate) struct UnitPod<'a> {
    pub pod: &'a Arc<Pod>,
    pub order: Order,
    pub key: &'a ParkKey,
}

pub(crate) enum UnitOutcome {
    /// All of them, with what is to be done now.
    Placed(Vec<Action>),
    /// Nothing was placed, because this Pod of the unit finds no place.
    NotPlaced { number: usize, why: NotPlaced },
}

#[derive(Default)]
pub(crate) struct Transaction {
    placed: Vec<Placed>,
}

/// A Pod that was placed, and what others saw of it before.
struct Placed {
    pod: Arc<Pod>,
    order: Order,
    reservation: Reservation,
    shown_before: Option<Arc<ClusterPod>>,
    shown: Arc<ClusterPod>,
    bind: Bind,
}

#[cfg(test)]
impl Transaction {
    pub fn has(&self, pod: &model::PodUid) -> bool {
        self.placed.iter().any(|placed| placed.pod.uid == *pod)
    }
}

/// A point of a transaction to which it can be rolled back.
pub(crate) struct Mark {
    placed: usize,
    ledger: ledger::Mark,
    rng: Rng,
}

impl Engine {
    /// Places all Pods of the unit, or none.
    pub(crate) fn place_unit(&mut self, unit: &[UnitPod<'_>]) -> UnitOutcome {
        let mut transaction = Transaction::default();
        let mark = self.mark(&transaction);
        for (number, UnitPod { pod, order, key }) in unit.iter().copied().enumerate() {
            match self.schedule_pod(order, &pod.spec, key) {
                Ok(destination) => {
                    if let Err(why) = self.place(&mut transaction, pod, order, destination) {
                        self.rollback(&mut transaction, mark);
                        unreachable!("{} was to be placed, and {why}", pod.key);
                    }
                }
                Err(why) => {
                    let drawn = self.rng.clone();
                    self.rollback(&mut transaction, mark);
                    // The next attempt breaks ties in another way: a choice that led nowhere is not repeated.
                    self.rng = drawn;
                    return UnitOutcome::NotPlaced { number, why };
                }
            }
        }
        UnitOutcome::Placed(self.commit(transaction))
    }

    pub(crate) fn mark(&self, transaction: &Transaction) -> Mark {
        let (placed, ledger) = (transaction.placed.len(), self.ledger.mark());
        Mark { placed, ledger, rng: self.rng.clone() }
    }

    /// Takes everything that the Pod needs. The limits are counted again. An error says why the decision was wrong, a bug:
    /// the caller rolls back.
    pub(crate) fn place(
        &mut self,
        transaction: &mut Transaction,
        pod: &Arc<Pod>,
        order: Order,
        destination: Destination,
    ) -> Result<(), String> {
        let Destination { node, objects } = destination;
        let grant = grant(&pod.spec, &objects);
        let granted = grant.parts().cloned().collect();
        let volumes = self.volumes_on(pod, &node)?;
        let claims = self.claims_on(pod, &node)?;
        let reservation = Reservation { node: node.clone(), granted, volumes, claims };
        let Some(record) = self.observed.pods.get_mut(&pod.uid) else {
            return Err("it is not known".to_owned());
        };
        if let Some(nomination) = record.nominated.as_deref().filter(|it| it.is_reserved) {
            self.ledger.withdraw(order, &nomination.place);
        }
        let shown = record.show_on(&node);
        self.ledger.take(pod, &reservation);
        if let Some(limit) = self.exceeded(&node, pod, &objects) {
            return Err(format!("that would exceed {limit}"));
        }
        self.assume_objects(&pod.uid, &reservation);
        if let Some(device) = self.contested_device(&reservation) {
            return Err(format!("device {device} would be given out twice"));
        }
        let shown_before = self.observed.cluster.insert_pod(shown.clone());
        let change = ClusterChange::Pod { before: shown_before.as_deref(), after: Some(&shown) };
        self.placing.note(change, &self.observed.cluster);
        let bind = Bind::new(pod, node, grant, &objects);
        let pod = pod.clone();
        transaction.placed.push(Placed { pod, order, reservation, shown_before, shown, bind });
        Ok(())
    }

    /// Undoes everything since the mark.
    pub(crate) fn rollback(&mut self, transaction: &mut Transaction, mark: Mark) {
        let Mark { placed, ledger, rng } = mark;
        for placed in transaction.placed.drain(placed..).rev() {
            let Placed { pod, order: _, reservation, shown_before, shown, bind: _ } = placed;
            self.forget_objects(&pod.uid, &reservation);
            match shown_before.clone() {
                Some(before) => drop(self.observed.cluster.insert_pod(before)),
                None => drop(self.observed.cluster.remove_pod(&pod.uid)),
            }
            let change =
                ClusterChange::Pod { before: Some(&shown), after: shown_before.as_deref() };
            self.placing.note(change, &self.observed.cluster);
            if let Some(record) = self.observed.pods.get_mut(&pod.uid) {
                record.prepared = Some(shown);
            }
        }
        self.ledger.rollback(ledger);
        self.rng = rng;
    }

    /// What was placed stays, and everything that follows from it follows now.
    pub(crate) fn commit(&mut self, transaction: Transaction) -> Vec<Action> {
        self.ledger.commit();
        let commit_one = |Placed { pod, order, reservation, shown_before, shown, bind }| {
            self.reservations_changed(&reservation);
            self.recheck_nominations_reserving(&reservation);
            self.count_passes(&pod, order);
            self.stats.attempts_scheduled += 1;
            if let Some(record) = self.observed.pods.get_mut(&pod.uid) {
                record.rejection = None;
                record.reservation = Some(reservation);
                if let Some(nomination) = &mut record.nominated {
                    nomination.is_reserved = false;
                }
            }
            let action = self.begin_binding_cycle(bind);
            let (before, after): (Option<Arc<ClusterPod>>, _) = (shown_before, Some(&*shown));
            self.wake_after(ClusterChange::Pod { before: before.as_deref(), after });
            action
        };
        transaction.placed.into_iter().filter_map(commit_one).collect()
    }

    /// The limit that the Pod exceeds with what has just been taken for it, if any. Counted from the Pods themselves,
    /// independently of the rules that let it pass.
    fn exceeded(&self, node: &NodeName, pod: &Pod, objects: &[Reservable]) -> Option<String> {
        let has = self.placing.limits_of(node)?;
        let asked = &pod.spec.scheduling.requests.asked;
        let used = self.observed.cluster.usage_on(node);
        let is_too_much = |asked: i64, used: i128, has: i64| {
            asked > 0 && used + i128::from(asked) > i128::from(has)
        };
        let is_over = used.pods >= has.pods
            || is_too_much(asked.cpu_milli, used.cpu_milli, has.cpu_milli)
            || is_too_much(asked.memory_bytes, used.memory_bytes, has.memory_bytes);
        if is_over && self.rules_of(&pod.spec.profile).filters_by(Plugin::NodeResourcesFit) {
            return Some(format!("the allocatable resources of node {node}"));
        }
        let over = self.exceeded_floor(&pod.spec, objects);
        over.map(|object| format!("the floor of {}", object.object))
    }
}
