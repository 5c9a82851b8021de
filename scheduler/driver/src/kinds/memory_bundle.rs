//! MemoryBundles. What one asks for may follow the clock.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use model::{Amount, Instant, ObjectKind};
use serde::Deserialize;

use super::reservable::{Moment, ReservableFields, WireObjectCondition, WireReservable};
use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBundle {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireBundleSpec,
    status: WireBundleStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireBundleSpec {
    #[serde(rename = "bandwidthFloorGBs")]
    bandwidth_floor_gbs: f64,
    shareable: bool,
    security_domain: String,
    node_selector: BTreeMap<String, String>,
    schedule: Option<crds::Schedule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireBundleStatus {
    phase: Option<crds::Phase>,
    in_use: Option<i64>,
    conditions: Vec<WireObjectCondition>,
    ffm_handle: Option<String>,
    #[serde(rename = "achievedGBs")]
    achieved_gbs: Option<f64>,
    #[serde(rename = "floorGBs")]
    floor_gbs: Option<f64>,
}

kube_resource!(
    WireBundle,
    "MemoryBundle",
    "corridoros.io",
    "v1alpha1",
    "memorybundles",
    Namespaced
);

impl WireReservable for WireBundle {
    const OBJECT: ObjectKind = ObjectKind::MemoryBundle;

    fn read(self, seen: Moment) -> ReservableFields {
        let Self { metadata, spec, status } = self;
        ReservableFields {
            metadata,
            floor_asked: asked_at(&spec, seen.wall_clock),
            floor_asked_max: asked_at_most(&spec),
            floor_asked_next: asked_next(&spec, seen),
            node_selector: spec.node_selector,
            exclusive: !spec.shareable,
            security_domain: spec.security_domain,
            phase: status.phase,
            in_use: status.in_use,
            conditions: status.conditions,
            handle: status.ffm_handle,
            measured: status.achieved_gbs,
            floor_confirmed: status.floor_gbs,
        }
    }
}

fn asked_at(spec: &WireBundleSpec, at: Timestamp) -> Amount {
    let window = spec.schedule.as_ref().and_then(|schedule| crds::open_window(schedule, at));
    let floor = window.map(|window| f64::from(window.bandwidth_floor_gbs));
    Amount::from_measured(floor.unwrap_or(spec.bandwidth_floor_gbs))
}

fn asked_at_most(spec: &WireBundleSpec) -> Amount {
    let windows = spec.schedule.iter().flat_map(|schedule| &schedule.windows);
    let floors = windows.map(|window| f64::from(window.bandwidth_floor_gbs));
    Amount::from_measured(floors.fold(spec.bandwidth_floor_gbs, f64::max))
}

/// After that time the object is seen again, when its daemon has confirmed what is asked for then.
fn asked_next(spec: &WireBundleSpec, seen: Moment) -> Option<(Instant, Amount)> {
    let at = crds::next_change(spec.schedule.as_ref()?, seen.wall_clock)?;
    let wait = Duration::try_from(at.duration_since(seen.wall_clock)).ok()?;
    Some((seen.engine + wait, asked_at(spec, at)))
}

#[cfg(test)]
mod tests {
    use super::super::{WatchState, seen};
    use super::*;
    use engine::{Event, Watched};
    use serde_json::{Value, json};

    #[test]
    fn a_window_asks_for_more_while_it_is_open() {
        // The epoch was a Thursday.
        let window = json!({
            "name": "peak", "days": ["Thu"], "start": "06:00", "end": "18:00", "bandwidthFloorGBs": 25,
        });
        let wire = json!({
            "metadata": {"namespace": "a", "name": "b", "uid": "u"},
            "spec": {"bandwidthFloorGBs": 10, "schedule": {"timeZone": "UTC", "windows": [window]}},
        });
        let seen_at = |hour: u64| {
            let after = Duration::from_secs(hour * 3600);
            let seen = Moment {
                wall_clock: Timestamp::UNIX_EPOCH + after,
                engine: Instant::START + after,
            };
            serde_json::from_value::<WireBundle>(wire.clone()).unwrap().read(seen)
        };
        let (asleep, peak) = (seen_at(0), seen_at(7));
        let at = |hours: u64, floor| {
            Some((Instant::START + Duration::from_secs(hours * 3600), Amount::from_whole(floor)))
        };
        assert_eq!(
            (asleep.floor_asked, asleep.floor_asked_next),
            (Amount::from_whole(10), at(6, 25))
        );
        assert_eq!((peak.floor_asked, peak.floor_asked_next), (Amount::from_whole(25), at(18, 10)));
        assert_eq!(asleep.floor_asked_max, Amount::from_whole(25));
    }

    #[test]
    fn a_bundle_is_one_pods_own_unless_it_is_shareable() {
        let read = |wire: &Value| match seen::<WireBundle>(&mut WatchState::default(), wire.clone())
        {
            Some(Event::Seen(Watched::Object(bundle))) => bundle,
            other => panic!("{other:?}"),
        };
        let mut wire = json!({
            "metadata": {"namespace": "a", "name": "b1", "uid": "u"},
            "spec": {"bandwidthFloorGBs": 50, "bytes": 1},
            "status": {"phase": "Ready", "achievedGBs": 51.5, "floorGBs": 40, "ffmHandle": "ffm-1"},
        });
        let own = read(&wire);
        assert!(own.exclusive);
        assert_eq!(
            (own.floor(), own.measured),
            (Amount::from_whole(40), Amount::from_milli(51_500))
        );
        assert_eq!(own.handle.as_deref(), Some("ffm-1"));
        wire["spec"]["shareable"] = json!(true);
        assert!(!read(&wire).exclusive);
    }
}
