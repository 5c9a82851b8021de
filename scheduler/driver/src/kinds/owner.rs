//! What the controllers have in common whose Pods are spread by default: each selects Pods.

use engine::{Event, Watched, WatchedId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{LabelSelector, Owner, OwnerKind};
use serde::Deserialize;

use super::{Gone, WireSelector, key};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireOwnerSpec {
    pub selector: Option<WireSelector>,
}

pub(super) fn seen(kind: OwnerKind, metadata: &ObjectMeta, selector: LabelSelector) -> Event {
    let key = key(metadata);
    let owner = Owner { kind, name: key.name };
    Event::Seen(Watched::Owner { namespace: key.namespace, owner, selector })
}

pub(super) fn gone(kind: OwnerKind, (key, _): Gone) -> Event {
    let owner = Owner { kind, name: key.name };
    Event::Gone(WatchedId::Owner { namespace: key.namespace, owner })
}

#[cfg(test)]
mod tests {
    use super::super::replica_set::WireReplicaSet;
    use super::super::replication_controller::WireReplicationController;
    use super::super::stateful_set::WireStatefulSet;
    use super::super::{WatchState, WatchedResource, seen};
    use super::*;
    use model::Labels;
    use serde_json::{Value, json};

    fn read<K: WatchedResource>(spec: &Value) -> (Owner, LabelSelector) {
        let object = json!({"metadata": {"namespace": "a", "name": "x", "uid": "u"}, "spec": spec});
        match seen::<K>(&mut WatchState::default(), object) {
            Some(Event::Seen(Watched::Owner { namespace, owner, selector }))
                if &*namespace == "a" =>
            {
                (owner, selector)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn owners_select_by_labels_or_by_a_selector() {
        let app = |value: &str| -> Labels { [("app".into(), value.into())].into() };
        let by_labels = json!({"selector": {"app": "x"}});
        let by_selector = json!({"selector": {"matchLabels": {"app": "x"}}});
        let read = [
            (read::<WireReplicationController>(&by_labels), OwnerKind::ReplicationController),
            (read::<WireReplicaSet>(&by_selector), OwnerKind::ReplicaSet),
            (read::<WireStatefulSet>(&by_selector), OwnerKind::StatefulSet),
        ];
        for ((owner, selector), kind) in read {
            assert_eq!((&*owner.name, owner.kind), ("x", kind));
            assert!(selector.matches(&app("x")) && !selector.matches(&app("y")));
        }
    }

    #[test]
    fn an_owner_without_selector_means_nothing_and_a_bad_one_says_why() {
        let selector = |spec: Value| read::<WireReplicaSet>(&spec).1;
        assert_eq!(selector(json!({})), LabelSelector::Nothing);
        assert_eq!(selector(json!({"selector": null})), LabelSelector::Nothing);
        let bad = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        assert!(selector(json!({"selector": bad})).error().is_some());
    }
}
