//! Services: the Pods that they select are spread by default.

use std::collections::BTreeMap;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::LabelSelector;
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, labels, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireService {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireServiceSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireServiceSpec {
    /// Empty: its endpoints are managed by others.
    selector: BTreeMap<String, String>,
}

kube_resource!(WireService, "Service", "", "v1", "services", Namespaced);

impl WatchedResource for WireService {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::Service);

    /// A Service without a selector leads to no Pods of ours, whatever it did before.
    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let service = key(&self.metadata);
        if self.spec.selector.is_empty() {
            return Some(Event::gone(ClusterObjectId::Service(service)));
        }
        let selector = LabelSelector::of_labels(&labels(&self.spec.selector));
        Some(Event::seen(ClusterObject::Service(service, selector)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::Service(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen;
    use super::*;
    use engine::{Watched, WatchedId};
    use serde_json::json;

    #[test]
    fn a_service_that_has_lost_its_selector_is_gone() {
        let watched = &mut WatchState::default();
        let with_one = json!({"spec": {"selector": {"app": "x"}}});
        let event = seen::<WireService>(watched, with_one);
        let Some(Event::Seen(Watched::ClusterObject(ClusterObject::Service(_, selector)))) = event
        else {
            panic!("{event:?}")
        };
        assert_eq!(selector, LabelSelector::of_labels(&[("app".into(), "x".into())].into()));
        for none in [json!({"spec": {}}), json!({"spec": {"selector": {}}}), json!({})] {
            let event = seen::<WireService>(watched, none);
            assert!(matches!(
                event,
                Some(Event::Gone(WatchedId::ClusterObject(ClusterObjectId::Service(_))))
            ));
        }
    }
}
