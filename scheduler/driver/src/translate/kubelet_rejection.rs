//! Pods that a kubelet did not admit.

use crate::wire::WirePodStatus;

/// What a kubelet says of the Pods that it rejects, of whatever version, if it says so.
const REJECTED: &str = "Pod was rejected: ";

/// The Node differs from what is known here: less room, trouble with its devices or its disk, or a shutdown. Other Pods
/// would be rejected, too.
const OF_THE_NODE: [&str; 8] = [
    "OutOfcpu",
    "OutOfmemory",
    "OutOfephemeral-storage",
    "OutOfpods",
    OTHER_RESOURCES,
    "UnexpectedAdmissionError",
    "NodeShutdown",
    "Evicted",
];

/// A resource whose name is free to choose, as the kubelet's own metric has it.
const OTHER_RESOURCES: &str = "OutOfExtendedResources";

/// The Pod does not suit the Node, others do. These do not exclude the Node, or a tenant could exclude all of them.
const OF_THE_POD: [&str; 12] = [
    "TopologyAffinityError",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "PodFeatureUnsupported",
    "AppArmor",
    "SysctlForbidden",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "PodOSNotSupported",
    "SupplementalGroupsPolicyNotSupported",
    "PodLevelResourcesNotSupported",
    "VolumeAttachmentLimitExceeded",
];

const OTHER: &str = "other";

/// Every value of the label `reason`.
pub(crate) fn kubelet_rejection_reasons() -> impl Iterator<Item = &'static str> {
    OF_THE_NODE.into_iter().chain(OF_THE_POD).chain([OTHER])
}

/// Why a kubelet rejected a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KubeletRejection {
    /// One of [`kubelet_rejection_reasons`].
    pub reason: &'static str,
    /// It would reject others, too.
    pub is_of_the_node: bool,
}

/// `None`: the Pod was not rejected. What ran and failed, was evicted later or preempted is none of these.
pub(crate) fn kubelet_rejection(status: &WirePodStatus) -> Option<KubeletRejection> {
    let is_rejected = status.message.starts_with(REJECTED)
        || status.reason.starts_with("OutOf")
        || status.reason == "UnexpectedAdmissionError";
    if status.phase != "Failed" || !is_rejected {
        return None;
    }
    let known = |list: &[&'static str]| list.iter().copied().find(|it| *it == status.reason);
    if let Some(reason) = known(&OF_THE_NODE) {
        return Some(KubeletRejection { reason, is_of_the_node: true });
    }
    if status.reason.starts_with("OutOf") {
        return Some(KubeletRejection { reason: OTHER_RESOURCES, is_of_the_node: true });
    }
    let reason = known(&OF_THE_POD).unwrap_or(OTHER);
    Some(KubeletRejection { reason, is_of_the_node: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(phase: &str, reason: &str, message: &str) -> Option<(&'static str, bool)> {
        let status = WirePodStatus {
            phase: phase.into(),
            reason: reason.into(),
            message: message.into(),
            ..WirePodStatus::default()
        };
        kubelet_rejection(&status).map(|it| (it.reason, it.is_of_the_node))
    }

    #[test]
    fn what_a_kubelet_rejects_is_told_by_a_closed_list_of_reasons() {
        let rejected = "Pod was rejected: Node didn't have enough resource: cpu";
        assert_eq!(status("Failed", "OutOfcpu", rejected), Some(("OutOfcpu", true)));
        let gpus = Some(("OutOfExtendedResources", true));
        assert_eq!(status("Failed", "OutOfexample.com/gpu", ""), gpus);
        assert_eq!(status("Failed", "Evicted", rejected), Some(("Evicted", true)));
        assert_eq!(status("Failed", "AppArmor", rejected), Some(("AppArmor", false)));
        assert_eq!(status("Failed", "Newest", rejected), Some(("other", false)));
    }

    #[test]
    fn what_ran_before_it_failed_was_not_rejected() {
        assert_eq!(status("Failed", "Evicted", "The node was low on resource: memory."), None);
        assert_eq!(status("Failed", "", ""), None);
        assert_eq!(status("Running", "OutOfcpu", ""), None);
    }

    #[test]
    fn every_reason_is_in_the_list_once() {
        let mut all: Vec<_> = kubelet_rejection_reasons().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), OF_THE_NODE.len() + OF_THE_POD.len() + 1);
    }
}
