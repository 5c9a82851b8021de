//! The Leases of the daemons behind objects.

use engine::{Event, Watched, WatchedId, WatchedKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Deserialize;
use tokio::time::Instant;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};
use crate::backends::Backend;
use crate::clock::age;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireLease {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireLeaseSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireLeaseSpec {
    renew_time: Option<MicroTime>,
}

kube_resource!(WireLease, "Lease", "coordination.k8s.io", "v1", "leases", Namespaced, {
    /// A field selector names one object, and there are a handful of Leases: all of them.
    const NAMESPACE: Option<&'static str> = Some(crds::SYSTEM_NAMESPACE);
});

impl WatchedResource for WireLease {
    const KIND: WatchedKind = WatchedKind::Backends;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let backend = Backend::of_lease(&key(&self.metadata).name)?;
        let Some(renewed) = self.spec.renew_time.map(|renewed| renewed.0) else {
            return gone(backend, watched);
        };
        let age = watched.renewals.sees(backend, renewed, age(renewed), Instant::now())?;
        backend.objects().map(|kind| Event::Seen(Watched::Backend { kind, age }))
    }

    fn gone((key, _): Gone, watched: &mut WatchState) -> Option<Event> {
        gone(Backend::of_lease(&key.name)?, watched)
    }
}

fn gone(backend: Backend, watched: &mut WatchState) -> Option<Event> {
    watched.renewals.gone(backend);
    backend.objects().map(|kind| Event::Gone(WatchedId::Backend(kind)))
}

#[cfg(test)]
mod tests {
    use super::super::seen;
    use super::*;
    use model::ObjectKind;
    use serde_json::{Value, json};

    #[test]
    fn a_lease_tells_each_renewal_once_and_other_leases_nothing() {
        let watched = &mut WatchState::default();
        let lease = |name: &str, renewed: Value| json!({"metadata": {"name": name}, "spec": {"renewTime": renewed}});
        let time = json!("2026-01-01T00:00:00.000000Z");
        let corrd = lease(crds::backend_lease::CORRD, time.clone());
        let first = seen::<WireLease>(watched, corrd.clone());
        assert!(matches!(
            first,
            Some(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, .. }))
        ));
        assert!(seen::<WireLease>(watched, corrd).is_none());
        assert!(seen::<WireLease>(watched, lease("any", time)).is_none());
        let lost = seen::<WireLease>(watched, lease(crds::backend_lease::CORRD, Value::Null));
        assert!(matches!(lost, Some(Event::Gone(WatchedId::Backend(ObjectKind::Corridor)))));
    }
}
