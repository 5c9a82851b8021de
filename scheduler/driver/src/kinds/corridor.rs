//! Corridors.

use std::collections::BTreeMap;

use model::{Amount, ObjectKind};
use serde::Deserialize;

use super::reservable::{Moment, ReservableFields, WireObjectCondition, WireReservable};
use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireCorridor {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireCorridorSpec,
    status: WireCorridorStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCorridorSpec {
    min_gbps: f64,
    node_selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCorridorStatus {
    phase: Option<crds::Phase>,
    in_use: Option<i64>,
    conditions: Vec<WireObjectCondition>,
    corridor_id: Option<String>,
    achievable_gbps: Option<f64>,
    floor_gbps: Option<f64>,
}

kube_resource!(WireCorridor, "Corridor", "corridoros.io", "v1alpha1", "corridors", Namespaced);

impl WireReservable for WireCorridor {
    const OBJECT: ObjectKind = ObjectKind::Corridor;

    fn read(self, _: Moment) -> ReservableFields {
        let Self { metadata, spec, status } = self;
        let floor_asked = Amount::from_measured(spec.min_gbps);
        ReservableFields {
            metadata,
            floor_asked,
            floor_asked_max: floor_asked,
            floor_asked_next: None,
            node_selector: spec.node_selector,
            exclusive: false,
            security_domain: String::new(),
            phase: status.phase,
            in_use: status.in_use,
            conditions: status.conditions,
            handle: status.corridor_id,
            measured: status.achievable_gbps,
            floor_confirmed: status.floor_gbps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{WatchState, WatchedResource, seen};
    use super::*;
    use engine::{Event, Watched, WatchedId};
    use model::{ObjectUid, Phase, Reservable};
    use serde_json::{Value, json};

    fn read(wire: &Value) -> Reservable {
        match seen::<WireCorridor>(&mut WatchState::default(), wire.clone()) {
            Some(Event::Seen(Watched::Object(corridor))) => corridor,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_floor_phase_and_handle() {
        let corridor = read(&json!({
            "metadata": {"namespace": "a", "name": "c1", "uid": "u", "generation": 3},
            "spec": {"minGbps": 100, "lanes": 4},
            "status": {"phase": "Ready", "achievableGbps": 120.5, "corridorId": "cor-7"},
        }));
        assert_eq!(corridor.object.to_string(), "corridor a/c1");
        assert_eq!(corridor.floor(), Amount::from_whole(100));
        assert_eq!(corridor.measured, Amount::from_milli(120_500));
        assert_eq!(corridor.phase, Phase::Ready);
        assert_eq!(corridor.handle.as_deref(), Some("cor-7"));
    }

    #[test]
    fn a_ticket_is_known_by_its_hash() {
        let mut wire = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"minGbps": 1}});
        assert_eq!(read(&wire).ticket_hash, None);
        wire["metadata"]["annotations"] = json!({"corridoros.io/attestationTicket": "abc"});
        // The test vector of FIPS 180-2.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(read(&wire).ticket_hash.as_deref(), Some(expected));
    }

    #[test]
    fn a_corridor_without_status_or_with_a_strange_phase_is_not_ready() {
        let mut wire = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"minGbps": 1}});
        assert_eq!(read(&wire).phase, Phase::Pending);
        wire["status"] = json!({"phase": "Sublime"});
        assert_eq!(read(&wire).phase, Phase::Unknown);
    }

    #[test]
    fn conditions_of_ours_are_noted_once_and_go_with_their_object() {
        let watched = &mut WatchState::default();
        let corridor = |since: &str| {
            let condition =
                |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": since});
            json!({
                "metadata": {"namespace": "a", "name": "c", "uid": "u"},
                "status": {"conditions": [condition("InUse"), condition("Ready")]},
            })
        };
        seen::<WireCorridor>(watched, corridor("2026-01-01T00:00:00Z"));
        seen::<WireCorridor>(watched, corridor("2026-02-02T00:00:00Z"));
        let known = &watched.use_conditions[&ObjectUid::new("u")];
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].since, "2026-01-01T00:00:00Z".parse().unwrap());
        let mut tracker = crate::tracker::Tracker::default();
        let meta: WireCorridor = serde_json::from_value(corridor("2026-01-01T00:00:00Z")).unwrap();
        tracker.seen(&meta.metadata);
        let event = WireCorridor::gone(tracker.gone(&meta.metadata).unwrap(), watched);
        assert!(matches!(event, Some(Event::Gone(WatchedId::Object(_)))));
        assert!(watched.use_conditions.is_empty());
    }
}
