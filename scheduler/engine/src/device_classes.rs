//! Extended resources that a DeviceClass serves. On a Node whose kubelet does not offer such a resource, it comes from
//! a device, by a ResourceClaim that the scheduler makes, which is not implemented: the rejection says so, and not `Insufficient`
//! alone.

use std::sync::Arc;

use model::DeviceClass;
use rules::{ClusterObjects, Reason};

use crate::engine::Engine;
use crate::nodes_rejection::NodesRejection;
use crate::queue::ParkKey;
use crate::rejection::Rejection;

/// A class serves this prefix with its name, whatever it says of itself.
const OF_EVERY_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// The first class by name that serves the resource.
fn serving<'a>(objects: &'a ClusterObjects, resource: &str) -> Option<&'a Arc<str>> {
    let classes = &objects.device_classes;
    let implied = resource.strip_prefix(OF_EVERY_CLASS);
    let named = |it: &&Arc<DeviceClass>| it.extended_resource.as_deref() == Some(resource);
    implied
        .and_then(|class| classes.get(class))
        .or_else(|| classes.values().find(named))
        .map(|class| &class.name)
}

/// What is to be said of resources that the Nodes lack.
fn unsupported(objects: &ClusterObjects, rejected: &NodesRejection) -> Option<Box<str>> {
    rejected.reasons.values().find_map(|count| match &count.reason {
        Reason::Insufficient { resource, .. } => {
            let class = serving(objects, resource)?;
            Some(format!(
                "{resource} comes from DeviceClass {class} by a ResourceClaim, which this scheduler does not make"
            ).into())
        }
        _ => None,
    })
}

impl Engine {
    pub(crate) fn rejected_by_nodes(&self, key: &ParkKey, rejected: NodesRejection) -> Rejection {
        let unsupported = unsupported(&self.observed.cluster.objects, &rejected);
        let has_claims = key.resource_claims.iter().any(|claim| claim.claim().is_some());
        Rejection::Nodes(NodesRejection { unsupported, has_claims, ..rejected })
    }

    /// Parked Pods are reported anew, and not tried again: what a class serves changes the message only.
    pub(crate) fn report_device_classes(&mut self) {
        let parked = self.queues.parked.groups().flat_map(|(_, group)| group.pods.values());
        for uid in parked {
            let Some(record) = self.observed.pods.get_mut(uid) else { continue };
            let Some(Rejection::Nodes(rejected)) = record.rejection.as_deref_mut() else {
                continue;
            };
            let unsupported = unsupported(&self.observed.cluster.objects, rejected);
            if rejected.unsupported != unsupported {
                rejected.unsupported = unsupported;
                self.outbox.reports.unschedulable(self.now, uid, &record.report);
            }
        }
    }
}
