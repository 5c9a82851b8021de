//! Features of a kubelet that a Pod can depend on.

use std::collections::BTreeSet;
use std::sync::Arc;

pub type FeatureNames = BTreeSet<Arc<str>>;

/// What `spec` of a Pod says that a kubelet has to know about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureUse {
    /// A restart rule of any container or init container has the action `RestartAllContainers`.
    pub restarts_all_containers: bool,
    pub host_network: bool,
    /// `hostUsers: false`; an absent field asks for nothing.
    pub user_namespace: bool,
}

impl FeatureUse {
    /// The features that a Node must declare, as kube-scheduler 1.36 infers them.
    pub fn required(self) -> FeatureNames {
        let Self { restarts_all_containers, host_network, user_namespace } = self;
        let features = [
            (restarts_all_containers, "RestartAllContainersOnContainerExits"),
            (host_network && user_namespace, "UserNamespacesHostNetworkSupport"),
        ];
        features.into_iter().filter(|(used, _)| *used).map(|(_, name)| name.into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_namespace_needs_a_feature_only_on_the_host_network() {
        let asks = |host_network, user_namespace| {
            FeatureUse { host_network, user_namespace, ..FeatureUse::default() }.required().len()
        };
        assert_eq!((asks(true, true), asks(true, false), asks(false, true)), (1, 0, 0));
    }
}
