//! What the controllers have in common whose Pods are spread by default: each selects Pods.

use serde::Deserialize;

use super::WireSelector;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireOwnerSpec {
    pub selector: Option<WireSelector>,
}

#[cfg(test)]
mod tests {
    use super::super::replica_set::WireReplicaSet;
    use super::super::replication_controller::WireReplicationController;
    use super::super::stateful_set::WireStatefulSet;
    use super::super::{WatchState, WatchedResource, seen};
    use engine::{ClusterObject, ClusterObjectKind, Event, Watched};
    use model::{LabelSelector, Labels, ObjectKey};
    use serde_json::{Value, json};

    fn read<K: WatchedResource>(spec: &Value) -> (ClusterObjectKind, LabelSelector) {
        let object = json!({"metadata": {"namespace": "a", "name": "x", "uid": "u"}, "spec": spec});
        let event = seen::<K>(&mut WatchState::default(), object);
        let Some(Event::Seen(Watched::ClusterObject(object))) = event else { panic!("{event:?}") };
        let (kind, key, selector) = match object {
            ClusterObject::ReplicationController(key, selector) => {
                (ClusterObjectKind::ReplicationController, key, selector)
            }
            ClusterObject::ReplicaSet(key, selector) => {
                (ClusterObjectKind::ReplicaSet, key, selector)
            }
            ClusterObject::StatefulSet(key, selector) => {
                (ClusterObjectKind::StatefulSet, key, selector)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(key, ObjectKey::new("a", "x"));
        (kind, selector)
    }

    #[test]
    fn owners_select_by_labels_or_by_a_selector() {
        let app = |value: &str| -> Labels { [("app".into(), value.into())].into() };
        let by_labels = json!({"selector": {"app": "x"}});
        let by_selector = json!({"selector": {"matchLabels": {"app": "x"}}});
        let read = [
            (
                read::<WireReplicationController>(&by_labels),
                ClusterObjectKind::ReplicationController,
            ),
            (read::<WireReplicaSet>(&by_selector), ClusterObjectKind::ReplicaSet),
            (read::<WireStatefulSet>(&by_selector), ClusterObjectKind::StatefulSet),
        ];
        for ((found, selector), kind) in read {
            assert_eq!(found, kind);
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
