//! PostFilter: a claim whose devices cannot be used where the Pod could go gives them back, if nobody else uses it. The Pod
//! is then tried again, and gets others.

use std::sync::Arc;

use model::{ObjectKey, Pod, PodClaim, ResourceClaim};
use rules::Reason;

use crate::decision::{Action, Prepare, PrepareWrite};
use crate::engine::Engine;
use crate::record::{BindingStep, Stage};
use crate::rejection::Rejection;

impl Engine {
    /// What is written instead of a report, if a claim of the rejected Pod is to give its devices back.
    pub(crate) fn deallocate_for(&mut self, pod: &Arc<Pod>, why: &Rejection) -> Option<Action> {
        let Rejection::Nodes(nodes) = why else { return None };
        let mut reasons = nodes.reasons.values();
        let unavailable = reasons.find(|it| it.reason == Reason::CLAIM_NOT_AVAILABLE)?;
        let node = unavailable.examples.first()?.clone();
        let claims = pod.spec.resource_claims.iter().filter_map(PodClaim::claim);
        let mut claims = claims.filter_map(|name| self.claim_of(pod, name));
        let claim = claims.find(|claim| self.can_be_deallocated(pod, claim))?;
        let write = PrepareWrite::DeallocateClaim {
            claim: claim.key.clone(),
            claim_uid: claim.uid.clone(),
            resource_version: claim.resource_version.clone(),
        };
        self.move_to(&pod.uid, Stage::Binding(BindingStep::Writing));
        let (pod, uid) = (pod.key.clone(), pod.uid.clone());
        Some(Action::Prepare(Prepare { pod, uid, node, writes: vec![write] }))
    }

    fn claim_of(&self, pod: &Pod, name: &Arc<str>) -> Option<&Arc<ResourceClaim>> {
        let key = ObjectKey { namespace: pod.spec.namespace.clone(), name: name.clone() };
        self.observed.cluster.objects.resource_claims.get(&key)
    }

    /// Its devices can be used from no Node that takes the Pod otherwise, and no other Pod uses it or is about to.
    fn can_be_deallocated(&self, pod: &Pod, claim: &ResourceClaim) -> bool {
        let Some(allocation) = &claim.allocation else { return false };
        let is_tied = allocation.nodes.is_some() || claim.failed_device().is_some();
        let others = claim.reserved_for.iter().any(|user| *user.uid != *pod.uid.as_str());
        let is_awaited = self.observed.cluster.devices.is_assumed_by_any(claim);
        is_tied && !others && !is_awaited && !claim.is_deleting
    }
}
