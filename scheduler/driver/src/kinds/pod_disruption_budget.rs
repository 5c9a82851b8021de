//! PodDisruptionBudgets: how many of the Pods that one selects may be disrupted.

use std::collections::BTreeMap;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::PodDisruptionBudget;
use serde::Deserialize;

use super::{
    Gone, WatchState, WatchedResource, WireSelector, key, kube_resource, label_selector, meta,
};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBudget {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireBudgetSpec,
    status: WireBudgetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireBudgetSpec {
    selector: Option<WireSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireBudgetStatus {
    disruptions_allowed: i32,
    /// By the name of the Pod, with the time of its disruption.
    disrupted_pods: BTreeMap<String, Option<String>>,
}

kube_resource!(
    WireBudget,
    "PodDisruptionBudget",
    "policy",
    "v1",
    "poddisruptionbudgets",
    Namespaced
);

impl WatchedResource for WireBudget {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::PodDisruptionBudget);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let disrupted = self.status.disrupted_pods.keys();
        let budget = PodDisruptionBudget {
            key: key(&self.metadata),
            selector: label_selector(self.spec.selector.as_ref()),
            disruptions_allowed: self.status.disruptions_allowed,
            disrupted_pods: disrupted.map(|name| name.as_str().into()).collect(),
        };
        Some(Event::seen(ClusterObject::PodDisruptionBudget(budget.key.clone(), budget)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::PodDisruptionBudget(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen;
    use super::*;
    use engine::Watched;
    use model::{LabelSelector, Labels};
    use serde_json::{Value, json};

    fn read(fields: Value) -> PodDisruptionBudget {
        let mut object = fields;
        object["metadata"] = json!({"namespace": "a", "name": "x", "uid": "u"});
        match seen::<WireBudget>(&mut WatchState::default(), object) {
            Some(Event::Seen(Watched::ClusterObject(ClusterObject::PodDisruptionBudget(
                _,
                budget,
            )))) => budget,
            other => panic!("{other:?}"),
        }
    }

    fn app(value: &str) -> Labels {
        [("app".into(), value.into())].into()
    }

    #[test]
    fn a_budget_says_how_much_it_allows_and_whom_it_has_counted() {
        let selecting = |selector: Value| {
            let status = json!({
                "disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"},
            });
            read(json!({"spec": {"selector": selector}, "status": status}))
        };
        let one = selecting(json!({"matchLabels": {"app": "x"}}));
        assert_eq!((one.key.to_string(), one.disruptions_allowed), ("a/x".to_owned(), 2));
        assert!(one.disrupted_pods.contains("p"));
        assert!(one.selector.matches(&app("x")) && !one.selector.matches(&app("y")));
        assert_eq!(selecting(Value::Null).selector, LabelSelector::Nothing);
        assert!(selecting(json!({})).selector.is_everything());
        let fresh = read(json!({"spec": {}}));
        assert_eq!(fresh.disruptions_allowed, 0, "not evaluated yet");
    }
}
