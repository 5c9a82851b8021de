//! Who is tried again, and when: exactly those whom a change can help.

use model::{Corridor, Gbps, NodeName, ObjectKey, PodUid};

use crate::engine::Engine;
use crate::filters::{self, Ask, Candidate};
use crate::ledger::{Holding, NodeUse};
use crate::line::WakeAside;
use crate::queue::{Order, ParkKey};
use crate::record::Stage;

impl Engine {
    /// What a Pod held is free again.
    pub(crate) fn wake_after_release(&mut self, holding: &Holding) {
        self.wake_parked(&holding.node);
        let corridor = holding
            .corridor
            .as_ref()
            .and_then(|granted| self.corridors.key_of(&granted.uid).cloned());
        if let Some(corridor) = corridor {
            self.release_line(&corridor);
        }
    }

    pub(crate) fn release_all_lines(&mut self) {
        for key in self.corridors.keys_with_lines() {
            self.release_line(&key);
        }
    }

    /// Sends on the Pods of a line that fit into what is free, in order.
    pub(crate) fn release_line(&mut self, key: &ObjectKey) {
        while let Some(waiting) = self.next_to_release(key) {
            self.corridors.with_line(key, |line| line.mark_released(&waiting));
            self.move_to(&waiting.pod, Stage::Active);
        }
    }

    fn next_to_release(&self, key: &ObjectKey) -> Option<crate::line::Waiting> {
        let line = self.corridors.line(key)?;
        let promise = self.corridors.promise(key, self.now).ok()?;
        let reserved = self.ledger.reserved(&promise.corridor.uid);
        let free = promise.reservable.saturating_sub(reserved).saturating_sub(line.spoken_for());
        let next = line.first_fitting(free)?;
        let head = line.head()?;
        let passes_head = head.order < next.order && !next.amount.is_zero();
        if passes_head && self.is_kept_for(key, head.order, &head.pod) {
            return None;
        }
        Some(next)
    }

    /// Whether free bandwidth is kept for the head of a line: it was passed often enough, and
    /// this Corridor is all it lacks (else two heads on two objects could block each other).
    pub(crate) fn is_kept_for(&self, key: &ObjectKey, head: Order, pod: &PodUid) -> bool {
        let passed = self
            .corridors
            .line(key)
            .is_some_and(|line| line.has_been_passed_enough(head, self.now, self.config.bypass));
        passed && self.pods.get(pod).is_some_and(|record| self.fits_some_node(&record.pod.spec))
    }

    /// Wakes the Pods beside the line whom this change concerns.
    pub(crate) fn wake_aside(&mut self, key: &ObjectKey, spec_changed: bool, entered_ready: bool) {
        let Some(line) = self.corridors.line(key) else { return };
        let woken: Vec<PodUid> = line
            .aside()
            .filter(|(_, wake)| match wake {
                WakeAside::SpecChange => spec_changed,
                WakeAside::SpecChangeOrReady => spec_changed || entered_ready,
            })
            .map(|(pod, _)| pod.clone())
            .collect();
        for pod in woken {
            self.move_to(&pod, Stage::Active);
        }
    }

    /// A new spec may have moved the floor below what some ask, or opened other Nodes.
    pub(crate) fn reconsider_after_spec_change(&mut self, corridor: &Corridor) {
        let mut woken: Vec<PodUid> = Vec::new();
        if let Some(line) = self.corridors.line(&corridor.key) {
            let asks_too_much = |uid: &&PodUid| {
                self.pods.get(uid).is_some_and(|record| {
                    let need = record.pod.spec.corridor.as_ref();
                    need.map_or(Gbps::ZERO, model::CorridorNeed::reserves) > corridor.floor_asked
                })
            };
            woken.extend(line.waiting().map(|(_, uid)| uid).filter(asks_too_much).cloned());
        }
        let groups: Vec<ParkKey> = self
            .parked
            .keys()
            .filter(|group| group.corridor.as_ref() == Some(&corridor.key))
            .cloned()
            .collect();
        for group in &groups {
            woken.extend(self.parked.group(group).map(|(_, uid)| uid.clone()));
        }
        for pod in woken {
            self.wake(&pod);
        }
    }

    /// A Node came, changed, or was freed: wakes the parked Pods that now fit on it, in order,
    /// as many as it can take.
    pub(crate) fn wake_parked(&mut self, name: &NodeName) {
        let mut used = self.ledger.node(name).cloned().unwrap_or_default();
        while let Some((pod, group)) = self.first_parked_fitting(name, &used) {
            // One that must wait out its back-off does not hold up the others.
            if self.wake(&pod) == Stage::Active {
                used.add(&group.shape);
                if let Some(record) = self.pods.get_mut(&pod) {
                    record.woken_for = Some(name.clone());
                }
            }
        }
    }

    fn first_parked_fitting(&self, name: &NodeName, used: &NodeUse) -> Option<(PodUid, ParkKey)> {
        let node = self.node(name)?;
        let mut reasons = Vec::new();
        self.parked
            .keys()
            .filter(|group| {
                let corridor = group.corridor.as_ref().and_then(|key| self.corridors.get(key));
                let ask = Ask { shape: &group.shape, corridor };
                filters::rejections(ask, Candidate { node, used }, &mut reasons);
                reasons.is_empty()
            })
            .filter_map(|group| {
                self.parked.group(group).next().map(|(order, pod)| (order, pod, group))
            })
            .min_by_key(|(order, ..)| *order)
            .map(|(_, pod, group)| (pod.clone(), group.clone()))
    }

    /// To the active queue, or to back-off while that lasts.
    fn wake(&mut self, pod: &PodUid) -> Stage {
        let due = self.pods.get(pod).map_or(self.now, |record| record.not_before);
        let to = if due <= self.now { Stage::Active } else { Stage::Backoff };
        self.move_to(pod, to.clone());
        to
    }
}
