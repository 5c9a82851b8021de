//! Extended resources that a DeviceClass serves. On a Node whose kubelet does not offer such a resource, it comes from
//! a device that a ResourceClaim allocates, which is not implemented: the rejection says so, and not `Insufficient`
//! alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use rules::Reason;

use crate::engine::Engine;
use crate::nodes_rejection::NodesRejection;
use crate::rejection::Rejection;

/// A class serves this prefix with its name, whatever it says of itself.
const OF_EVERY_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// By the name of the class, the extended resource that it names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeviceClasses(BTreeMap<Arc<str>, Option<Arc<str>>>);

impl DeviceClasses {
    /// The first class by name that serves the resource.
    fn serving(&self, resource: &str) -> Option<&Arc<str>> {
        let implied = resource.strip_prefix(OF_EVERY_CLASS);
        let named = |(_, it): &(&Arc<str>, &Option<Arc<str>>)| it.as_deref() == Some(resource);
        implied
            .and_then(|class| self.0.get_key_value(class))
            .or_else(|| self.0.iter().find(named))
            .map(|(class, _)| class)
    }

    /// What is to be said of resources that the Nodes lack.
    fn unsupported(&self, rejected: &NodesRejection) -> Option<Box<str>> {
        rejected.reasons.values().find_map(|count| match &count.reason {
            Reason::Insufficient { resource, .. } => {
                let class = self.serving(resource)?;
                Some(format!(
                    "{resource} comes from DeviceClass {class} by a ResourceClaim, which this scheduler does not allocate"
                ).into())
            }
            _ => None,
        })
    }
}

impl Engine {
    pub(crate) fn device_class_seen(&mut self, class: Arc<str>, resource: Option<Arc<str>>) {
        if self.observed.device_classes.0.get(&class) != Some(&resource) {
            self.observed.device_classes.0.insert(class, resource);
            self.report_device_classes();
        }
    }

    pub(crate) fn device_class_gone(&mut self, class: &str) {
        if self.observed.device_classes.0.remove(class).is_some() {
            self.report_device_classes();
        }
    }

    pub(crate) fn rejected_by_nodes(&self, rejected: NodesRejection) -> Rejection {
        let unsupported = self.observed.device_classes.unsupported(&rejected);
        Rejection::Nodes(NodesRejection { unsupported, ..rejected })
    }

    /// Parked Pods are reported anew, and not tried again: what a class serves changes the message only.
    fn report_device_classes(&mut self) {
        let parked = self.queues.parked.groups().flat_map(|(_, group)| group.pods.values());
        for uid in parked {
            let Some(record) = self.observed.pods.get_mut(uid) else { continue };
            let Some(Rejection::Nodes(rejected)) = record.rejection.as_deref_mut() else {
                continue;
            };
            let unsupported = self.observed.device_classes.unsupported(rejected);
            if rejected.unsupported != unsupported {
                rejected.unsupported = unsupported;
                self.outbox.reports.unschedulable(self.now, uid, &record.report);
            }
        }
    }
}
