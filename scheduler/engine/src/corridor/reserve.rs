//! Reserve: what a Pod takes of the objects that it refers to.

use model::{Grant, Granted, Need, Pod, PodSpec, Reservable};

use crate::engine::Engine;
use crate::queue::{Order, Rank};

/// What the Pod takes of each object.
pub(crate) fn grant(spec: &PodSpec, objects: &[Reservable]) -> Grant {
    let mut grant = Grant::default();
    for object in objects {
        let amount = spec.need_of(&object.object).map(Need::reserves).unwrap_or_default();
        let granted = Granted { uid: object.uid.clone(), amount };
        *grant.part_mut(object.object.kind) = Some(granted);
    }
    grant
}

impl Engine {
    /// The object whose floor the Pod exceeds with what has just been taken for it, if any.
    pub(crate) fn exceeded_floor<'a>(
        &self,
        spec: &PodSpec,
        objects: &'a [Reservable],
    ) -> Option<&'a Reservable> {
        objects.iter().find(|object| {
            let reserves = spec.need_of(&object.object).is_some_and(|it| it.amount.is_some());
            reserves && self.ledger.reserved(&object.uid) > object.floor()
        })
    }

    /// Counts a pass for the head of each queue whose bandwidth this Pod took.
    pub(crate) fn count_passes(&mut self, pod: &Pod, order: Order) {
        let now = self.now;
        for need in pod.spec.needs.iter().filter(|need| !need.reserves().is_zero()) {
            let object = &need.object;
            let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
            let rank = Rank { over_quota: over_quota(&pod.spec.namespace), order };
            let passed = self
                .observed
                .objects
                .queue(object)
                .and_then(|queue| queue.head_before(rank, &over_quota));
            if let Some(head) = passed {
                self.observed
                    .objects
                    .with_queue(object, |queue| queue.count_pass(head.rank.order, now));
            }
        }
    }
}
