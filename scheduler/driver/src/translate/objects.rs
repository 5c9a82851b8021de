use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crds::Phase as WirePhase;
use crds::annotations::ATTESTATION_TICKET;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{Amount, Instant, NotReady, ObjectKind, ObjectRef, Phase, Reservable};
use own_writes::{OwnWrites, PlacementStatus};
use sha2::{Digest as _, Sha256};

use super::{key, labels};
use crate::wire::{WireBundle, WireBundleSpec, WireCorridor, WireObjectCondition, WirePolicy};

/// Of a reason or a message: an Event on the Pod has room for it, and for another object's.
const NOT_READY_BYTES_MAX: usize = 320;

/// What the API server shows is believed as far as the controllers of this process have said it.
pub(crate) fn corridor(wire: WireCorridor, own_writes: &OwnWrites, _: Moment) -> Reservable {
    let WireCorridor { metadata, spec, status } = wire;
    let shown = PlacementStatus {
        phase: status.phase,
        handle: status.corridor_id,
        floor: status.floor_gbps,
        measured: status.achievable_gbps,
        ticket: ticket(&metadata),
    };
    let promised =
        own_writes.authentic_placement(metadata.uid.as_deref().unwrap_or_default(), shown);
    Reservable {
        object: ObjectRef { kind: ObjectKind::Corridor, key: key(&metadata) },
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        floor_asked: Amount::from_measured(spec.min_gbps),
        floor_asked_max: Amount::from_measured(spec.min_gbps),
        floor_asked_next: None,
        floor_confirmed: promised.floor.map(Amount::from_measured),
        measured: promised.measured.map(Amount::from_measured).unwrap_or_default(),
        phase: phase(promised.phase),
        not_ready: not_ready(&status.conditions),
        handle: promised.handle.map(Into::into),
        node_selector: labels(&spec.node_selector),
        exclusive: false,
        security_domain: "".into(),
        ticket_hash: promised.ticket.as_deref().map(ticket_hash),
        use_told: status.in_use.is_some(),
    }
}

pub(crate) fn bundle(wire: WireBundle, own_writes: &OwnWrites, seen: Moment) -> Reservable {
    let WireBundle { metadata, spec, status } = wire;
    let shown = PlacementStatus {
        phase: status.phase,
        handle: status.ffm_handle,
        floor: status.floor_gbs,
        measured: status.achieved_gbs,
        ticket: ticket(&metadata),
    };
    let promised =
        own_writes.authentic_placement(metadata.uid.as_deref().unwrap_or_default(), shown);
    Reservable {
        object: ObjectRef { kind: ObjectKind::MemoryBundle, key: key(&metadata) },
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        floor_asked: asked_at(&spec, seen.wall_clock),
        floor_asked_max: asked_at_most(&spec),
        floor_asked_next: asked_next(&spec, seen),
        floor_confirmed: promised.floor.map(Amount::from_measured),
        measured: promised.measured.map(Amount::from_measured).unwrap_or_default(),
        phase: phase(promised.phase),
        not_ready: not_ready(&status.conditions),
        handle: promised.handle.map(Into::into),
        node_selector: labels(&spec.node_selector),
        exclusive: !spec.shareable,
        security_domain: spec.security_domain.into(),
        ticket_hash: promised.ticket.as_deref().map(ticket_hash),
        use_told: status.in_use.is_some(),
    }
}

/// When an object is seen, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub wall_clock: Timestamp,
    pub engine: Instant,
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

pub(crate) fn allowed_tenants(wire: &WirePolicy) -> BTreeSet<Arc<str>> {
    wire.spec.allowed_tenants.iter().map(|tenant| tenant.as_str().into()).collect()
}

/// Pods carry the hash of the ticket that was good when they were bound, not the ticket itself.
fn ticket_hash(ticket: &str) -> Arc<str> {
    let digest = Sha256::digest(ticket.as_bytes());
    let hex = digest.iter().fold(String::with_capacity(2 * digest.len()), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    hex.into()
}

fn ticket(metadata: &ObjectMeta) -> Option<String> {
    metadata.annotations.as_ref()?.get(ATTESTATION_TICKET).cloned()
}

/// Quoted in the conditions of Pods that wait for it, so its length is bounded, whatever its writer.
fn not_ready(conditions: &[WireObjectCondition]) -> Option<NotReady> {
    let ready = conditions.iter().find(|it| it.condition_type == crds::condition::READY)?;
    let cut = |text: &str| Arc::from(&text[..text.floor_char_boundary(NOT_READY_BYTES_MAX)]);
    let not_ready = || NotReady { reason: cut(&ready.reason), message: cut(&ready.message) };
    (ready.status == "False" && !ready.reason.is_empty()).then(not_ready)
}

fn phase(phase: Option<WirePhase>) -> Phase {
    match phase {
        None | Some(WirePhase::Pending) => Phase::Pending,
        Some(WirePhase::Allocating) => Phase::Allocating,
        Some(WirePhase::Ready) => Phase::Ready,
        Some(WirePhase::Degraded) => Phase::Degraded,
        Some(WirePhase::Failed) => Phase::Failed,
        Some(WirePhase::Releasing) => Phase::Releasing,
        Some(WirePhase::Unknown) => Phase::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn moment() -> Moment {
        Moment { wall_clock: Timestamp::UNIX_EPOCH, engine: Instant::START }
    }

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
            bundle(serde_json::from_value(wire.clone()).unwrap(), &OwnWrites::default(), seen)
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
    fn reads_floor_phase_and_handle() {
        let wire = json!({
            "metadata": {"namespace": "a", "name": "c1", "uid": "u", "generation": 3},
            "spec": {"minGbps": 100, "lanes": 4},
            "status": {"phase": "Ready", "achievableGbps": 120.5, "corridorId": "cor-7"},
        });
        let corridor =
            corridor(serde_json::from_value(wire).unwrap(), &OwnWrites::default(), moment());
        assert_eq!(corridor.object.to_string(), "corridor a/c1");
        assert_eq!(corridor.floor(), Amount::from_whole(100));
        assert_eq!(corridor.measured, Amount::from_milli(120_500));
        assert_eq!(corridor.phase, Phase::Ready);
        assert_eq!(corridor.handle.as_deref(), Some("cor-7"));
    }

    #[test]
    fn a_ticket_is_known_by_its_hash() {
        let mut wire = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"minGbps": 1}});
        let hash = |wire: &serde_json::Value| {
            corridor(serde_json::from_value(wire.clone()).unwrap(), &OwnWrites::default(), moment())
                .ticket_hash
        };
        assert_eq!(hash(&wire), None);
        wire["metadata"]["annotations"] = json!({"corridoros.io/attestationTicket": "abc"});
        // The test vector of FIPS 180-2.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(&wire).as_deref(), Some(expected));
    }

    #[test]
    fn a_corridor_without_status_or_with_a_strange_phase_is_not_ready() {
        let mut wire = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"minGbps": 1}});
        assert_eq!(
            corridor(
                serde_json::from_value(wire.clone()).unwrap(),
                &OwnWrites::default(),
                moment()
            )
            .phase,
            Phase::Pending
        );
        wire["status"] = json!({"phase": "Sublime"});
        assert_eq!(
            corridor(serde_json::from_value(wire).unwrap(), &OwnWrites::default(), moment()).phase,
            Phase::Unknown
        );
    }

    #[test]
    fn a_bundle_is_one_pods_own_unless_it_is_shareable() {
        let mut wire = json!({
            "metadata": {"namespace": "a", "name": "b1", "uid": "u"},
            "spec": {"bandwidthFloorGBs": 50, "bytes": 1},
            "status": {"phase": "Ready", "achievedGBs": 51.5, "floorGBs": 40, "ffmHandle": "ffm-1"},
        });
        let own =
            bundle(serde_json::from_value(wire.clone()).unwrap(), &OwnWrites::default(), moment());
        assert!(own.exclusive);
        assert_eq!(
            (own.floor(), own.measured),
            (Amount::from_whole(40), Amount::from_milli(51_500))
        );
        assert_eq!(own.handle.as_deref(), Some("ffm-1"));
        wire["spec"]["shareable"] = json!(true);
        assert!(
            !bundle(serde_json::from_value(wire).unwrap(), &OwnWrites::default(), moment())
                .exclusive
        );
    }
}
