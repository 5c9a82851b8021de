//! Objects that select Pods: budgets, Services, and the controllers that own Pods.

use engine::{Event, Watched, WatchedId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{LabelSelector, Owner, OwnerKind, PodDisruptionBudget};

use super::selector::label_selector;
use super::{key, labels};
use crate::wire::{
    WireBudget, WireReplicaSet, WireReplicationController, WireService, WireStatefulSet,
};

pub(crate) fn budget(wire: &WireBudget) -> PodDisruptionBudget {
    let disrupted = wire.status.disrupted_pods.keys();
    PodDisruptionBudget {
        key: key(&wire.metadata),
        selector: label_selector(wire.spec.selector.as_ref()),
        disruptions_allowed: wire.status.disruptions_allowed,
        disrupted_pods: disrupted.map(|name| name.as_str().into()).collect(),
    }
}

/// A Service without a selector leads to no Pods of ours, whatever it did before.
pub(crate) fn service(wire: &WireService) -> Event {
    let service = key(&wire.metadata);
    if wire.spec.selector.is_empty() {
        return Event::Gone(WatchedId::Service(service));
    }
    Event::Seen(Watched::Service { service, selector: labels(&wire.spec.selector) })
}

pub(crate) fn replication_controller(wire: &WireReplicationController) -> Event {
    let selector = LabelSelector::of_labels(&labels(&wire.spec.selector));
    owner_seen(&wire.metadata, OwnerKind::ReplicationController, selector)
}

pub(crate) fn replica_set(wire: &WireReplicaSet) -> Event {
    let selector = label_selector(wire.spec.selector.as_ref());
    owner_seen(&wire.metadata, OwnerKind::ReplicaSet, selector)
}

pub(crate) fn stateful_set(wire: &WireStatefulSet) -> Event {
    let selector = label_selector(wire.spec.selector.as_ref());
    owner_seen(&wire.metadata, OwnerKind::StatefulSet, selector)
}

fn owner_seen(metadata: &ObjectMeta, kind: OwnerKind, selector: LabelSelector) -> Event {
    let key = key(metadata);
    Event::Seen(Watched::Owner {
        namespace: key.namespace,
        owner: Owner { kind, name: key.name },
        selector,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Labels;
    use serde_json::{Value, json};

    fn named(fields: &Value) -> Value {
        let mut object = fields.clone();
        object["metadata"] = json!({"namespace": "a", "name": "x", "uid": "u"});
        object
    }

    fn read<K: serde::de::DeserializeOwned>(fields: &Value) -> K {
        serde_json::from_value(named(fields)).unwrap()
    }

    fn app(value: &str) -> Labels {
        [("app".into(), value.into())].into()
    }

    #[test]
    fn a_budget_says_how_much_it_allows_and_whom_it_has_counted() {
        let read = |selector: Value| {
            let status = json!({
                "disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"},
            });
            budget(&read(&json!({"spec": {"selector": selector}, "status": status})))
        };
        let one = read(json!({"matchLabels": {"app": "x"}}));
        assert_eq!((one.key.to_string(), one.disruptions_allowed), ("a/x".to_owned(), 2));
        assert!(one.disrupted_pods.contains("p"));
        assert!(one.selector.matches(&app("x")) && !one.selector.matches(&app("y")));
        assert_eq!(read(Value::Null).selector, LabelSelector::Nothing);
        assert!(read(json!({})).selector.is_everything());
        let fresh = budget(&serde_json::from_value(named(&json!({"spec": {}}))).unwrap());
        assert_eq!(fresh.disruptions_allowed, 0, "not evaluated yet");
    }

    #[test]
    fn a_service_that_has_lost_its_selector_is_gone() {
        let seen = service(&read(&json!({"spec": {"selector": {"app": "x"}}})));
        assert!(
            matches!(&seen, Event::Seen(Watched::Service { selector, .. }) if *selector == app("x")),
            "{seen:?}"
        );
        for none in [json!({"spec": {}}), json!({"spec": {"selector": {}}}), json!({})] {
            assert!(matches!(service(&read(&none)), Event::Gone(WatchedId::Service(_))));
        }
    }

    #[test]
    fn owners_select_by_labels_or_by_a_selector() {
        let by_labels = json!({"spec": {"selector": {"app": "x"}}});
        let by_selector = json!({"spec": {"selector": {"matchLabels": {"app": "x"}}}});
        let events = [
            (replication_controller(&read(&by_labels)), OwnerKind::ReplicationController),
            (replica_set(&read(&by_selector)), OwnerKind::ReplicaSet),
            (stateful_set(&read(&by_selector)), OwnerKind::StatefulSet),
        ];
        for (event, kind) in events {
            let Event::Seen(Watched::Owner { namespace, owner, selector }) = event else {
                panic!("{event:?}")
            };
            assert_eq!((&*namespace, &*owner.name, owner.kind), ("a", "x", kind));
            assert!(selector.matches(&app("x")) && !selector.matches(&app("y")));
        }
    }

    #[test]
    fn an_owner_without_selector_means_nothing_and_a_bad_one_says_why() {
        let selector = |json: Value| match replica_set(&read(&json!({"spec": json}))) {
            Event::Seen(Watched::Owner { selector, .. }) => selector,
            other => panic!("{other:?}"),
        };
        assert_eq!(selector(json!({})), LabelSelector::Nothing);
        assert_eq!(selector(json!({"selector": null})), LabelSelector::Nothing);
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        assert!(selector(json!({"selector": bad})).error().is_some());
    }
}
