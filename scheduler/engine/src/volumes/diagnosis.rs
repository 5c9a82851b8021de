//! What a Pod that waits is told about its claims. It is found out for a report or a question, not for a decision.

use model::PodUid;
use rules::{ReasonSeen, VolumeDiagnosis, diagnose_volumes};

use crate::engine::Engine;
use crate::queue::ParkKey;
use crate::rejection::{NodesRejection, Rejection};

impl Engine {
    /// The rejection of the Pod, with what stands behind it now. `false`: it has no volumes, so there was nothing to do.
    pub(crate) fn diagnose_rejection(&mut self, uid: &PodUid) -> bool {
        let Some(record) = self.observed.pods.get(uid) else { return false };
        if record.pod.spec.volumes.is_empty() || !record.stage.is_waiting() {
            return false;
        }
        let Some(Rejection::Nodes(rejected)) = record.rejection.as_deref() else { return false };
        let volumes = self.diagnosed(&record.park_key(), rejected);
        let record = self.observed.pods.get_mut(uid);
        if let Some(Rejection::Nodes(rejected)) = record.and_then(|it| it.rejection.as_deref_mut())
        {
            rejected.volumes = volumes;
        }
        true
    }

    /// `None`: claims are not why.
    pub(crate) fn diagnosed(
        &self,
        key: &ParkKey,
        rejected: &NodesRejection,
    ) -> Option<Box<VolumeDiagnosis>> {
        if key.volumes.is_empty() {
            return None;
        }
        let seen = rejected.reasons.values().map(|count| ReasonSeen {
            reason: &count.reason,
            nodes: count.nodes,
            examples: &count.examples,
        });
        let (rules, pod) = (self.rules_of(&key.profile), self.pod_to_place(key));
        let seen: Vec<_> = seen.collect();
        let diagnosis = diagnose_volumes(rules, &self.observed.cluster, &pod, &seen);
        (!diagnosis.is_empty()).then(|| Box::new(diagnosis))
    }
}
