//! AttestationPolicies: the namespaces that may use the objects of another one.

use engine::{Event, Watched, WatchedId, WatchedKind};
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WirePolicy {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WirePolicySpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePolicySpec {
    allowed_tenants: Vec<String>,
}

kube_resource!(
    WirePolicy,
    "AttestationPolicy",
    "corridoros.io",
    "v1alpha1",
    "attestationpolicies",
    Namespaced
);

impl WatchedResource for WirePolicy {
    const KIND: WatchedKind = WatchedKind::Policies;
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let allowed_tenants = self.spec.allowed_tenants.into_iter().map(Into::into).collect();
        Some(Event::Seen(Watched::Policy { policy: key(&self.metadata), allowed_tenants }))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::Policy(key)))
    }
}
