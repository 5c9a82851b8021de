//! Pure: what a MemoryBundle's spec asks of memqosd at a time.

use crds::MemoryBundleSpec;
use daemons::memqosd::{self, Bundle, BundleRequest, BundleSpec, LatencyClass};
use daemons::{Owner, limits, units};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Bundles;
use crate::lifecycle::PlanStep;

/// What is done to an allocated bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BundleChange {
    Floor(u32),
    Class(LatencyClass),
}

impl PlanStep for Bundles {
    fn validate(object: &crds::MemoryBundle) -> Result<(), String> {
        validate(&object.spec)
    }

    /// Bundles are attested by policy only.
    fn demands_attestation(_: &crds::MemoryBundle) -> bool {
        false
    }

    fn request(
        object: &crds::MemoryBundle,
        owner: &Owner,
        device: Option<&str>,
        now: Timestamp,
    ) -> BundleRequest {
        request(&object.spec, owner, device, now)
    }

    /// By its key, or by its fields, as for a Corridor.
    fn satisfies(allocation: &Bundle, request: &BundleRequest) -> bool {
        let wanted = request.memory.device_id.as_deref();
        let on_device = wanted.is_none() || allocation.memory.device_id.as_deref() == wanted;
        let memory =
            BundleSpec { device_id: request.memory.device_id.clone(), ..allocation.memory.clone() };
        let as_stands = BundleRequest { memory, ..request.clone() };
        allocation.idempotency_key == request.key()
            || (on_device && as_stands.key() == request.key())
    }

    fn change(allocation: &Bundle, request: &BundleRequest) -> Option<BundleChange> {
        change(&allocation.memory, &request.memory)
    }

    fn next_change(object: &crds::MemoryBundle, now: Timestamp) -> Option<Timestamp> {
        object.spec.schedule.as_ref().and_then(|schedule| crds::next_change(schedule, now))
    }
}

/// The same rules as the CRD's, for clusters in which its validation was weakened.
fn validate(spec: &MemoryBundleSpec) -> Result<(), String> {
    let windows = spec.schedule.iter().flat_map(|it| &it.windows);
    let mut floors = windows.map(|it| it.bandwidth_floor_gbs).chain([spec.bandwidth_floor_gbs]);
    let wrong = if !(1..=limits::BYTES_MAX).contains(&spec.bytes) {
        format!("bytes must be 1 to {}", units::binary(limits::BYTES_MAX))
    } else if !floors.all(|floor| (1..=limits::FLOOR_GBS_MAX).contains(&floor)) {
        format!("bandwidthFloorGBs must be 1 to {}", limits::FLOOR_GBS_MAX)
    } else if let Some(schedule) = &spec.schedule
        && TimeZone::get(&schedule.time_zone).is_err()
    {
        format!("timeZone {:?} is not known", schedule.time_zone)
    } else {
        return Ok(());
    };
    Err(format!("invalid spec: {wrong}"))
}

fn request(
    spec: &MemoryBundleSpec,
    owner: &Owner,
    device: Option<&str>,
    now: Timestamp,
) -> BundleRequest {
    // Without `..`: a new field of the spec must be considered here.
    let MemoryBundleSpec {
        bytes,
        latency_class,
        bandwidth_floor_gbs: _,
        persistence,
        shareable,
        security_domain,
        schedule: _,
        node_selector: _,
    } = spec;
    let memory = BundleSpec {
        bytes: *bytes,
        latency_class: match latency_class {
            crds::LatencyClass::T0 => LatencyClass::T0,
            crds::LatencyClass::T1 => LatencyClass::T1,
            crds::LatencyClass::T2 => LatencyClass::T2,
            crds::LatencyClass::T3 => LatencyClass::T3,
        },
        floor_gbs: crds::floor_at(spec, now),
        persistence: match persistence {
            crds::Persistence::None => memqosd::Persistence::None,
            crds::Persistence::Durable => memqosd::Persistence::Durable,
        },
        shareable: *shareable,
        security_domain: security_domain.clone(),
        device_id: device.map(ToOwned::to_owned),
    };
    BundleRequest { owner: owner.clone(), memory, ticket: None }
}

/// The tier first, because a floor may fit only the new one.
fn change(stands: &BundleSpec, wanted: &BundleSpec) -> Option<BundleChange> {
    if stands.latency_class != wanted.latency_class {
        return Some(BundleChange::Class(wanted.latency_class));
    }
    (stands.floor_gbs != wanted.floor_gbs).then_some(BundleChange::Floor(wanted.floor_gbs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_in_place_or_needs_another_bundle() {
        let owner = Owner::new("cluster", "object").unwrap();
        let ask = |spec: &MemoryBundleSpec| request(spec, &owner, None, Timestamp::UNIX_EPOCH);
        let spec = MemoryBundleSpec::new(1 << 30, crds::LatencyClass::T1, 10);
        let stands = ask(&spec);
        let mut faster = spec.clone();
        (faster.latency_class, faster.bandwidth_floor_gbs) = (crds::LatencyClass::T0, 20);
        let wanted = ask(&faster);
        assert_eq!(stands.key(), wanted.key());
        let first = change(&stands.memory, &wanted.memory);
        assert_eq!(first, Some(BundleChange::Class(LatencyClass::T0)));
        let moved = BundleSpec { latency_class: LatencyClass::T0, ..stands.memory.clone() };
        assert_eq!(change(&moved, &wanted.memory), Some(BundleChange::Floor(20)));
        let mut larger = spec;
        larger.bytes = 1 << 31;
        assert_ne!(stands.key(), ask(&larger).key());
    }

    #[test]
    fn wrong_specs_are_told_what_is_wrong() {
        let good = MemoryBundleSpec::new(1, crds::LatencyClass::T0, 1);
        assert_eq!(validate(&good), Ok(()));
        let zero = MemoryBundleSpec { bytes: 0, ..good.clone() };
        assert!(validate(&zero).unwrap_err().contains("bytes"));
        let nothing = MemoryBundleSpec { bandwidth_floor_gbs: 0, ..good };
        assert!(validate(&nothing).unwrap_err().contains("bandwidthFloorGBs"));
    }
}
