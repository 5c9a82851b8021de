//! Pure: what a Corridor's spec asks of corrd.

use std::collections::BTreeSet;

use crds::CorridorSpec;
use daemons::corrd::{
    self, AmbientProfile, Corridor, CorridorChange, CorridorRequest, PathSpec, PriorityClass,
    RecalibrationRequest,
};
use daemons::{Owner, limits};
use jiff::Timestamp;

use super::Corridors;
use crate::lifecycle::PlanStep;

/// What is done to an allocated path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathChange {
    /// The spec asks for something else.
    InPlace(CorridorChange),
    /// The bit error rate drifted.
    Recalibrate(RecalibrationRequest),
}

impl PlanStep for Corridors {
    fn validate(object: &crds::Corridor) -> Result<(), String> {
        validate(&object.spec)
    }

    fn demands_attestation(object: &crds::Corridor) -> bool {
        object.spec.attestation_required
    }

    fn request(
        object: &crds::Corridor,
        owner: &Owner,
        device: Option<&str>,
        _: Timestamp,
    ) -> CorridorRequest {
        request(&object.spec, owner, device)
    }

    /// By its key, or by its fields: a path that corrd put on the wanted device by itself satisfies a request that names
    /// the device.
    fn satisfies(allocation: &Corridor, request: &CorridorRequest) -> bool {
        let wanted = request.path.device_id.as_deref();
        let on_device = wanted.is_none() || allocation.path.device_id.as_deref() == wanted;
        let path =
            PathSpec { device_id: request.path.device_id.clone(), ..allocation.path.clone() };
        let as_stands = CorridorRequest { path, ..request.clone() };
        allocation.idempotency_key == request.key()
            || (on_device && as_stands.key() == request.key())
    }

    fn change(allocation: &Corridor, request: &CorridorRequest) -> Option<PathChange> {
        change(&allocation.path, &request.path)
    }
}

/// The same rules as the CRD's, for clusters in which its validation was weakened.
fn validate(spec: &CorridorSpec) -> Result<(), String> {
    let distinct: BTreeSet<u32> = spec.lambda_nm.iter().copied().collect();
    let band = limits::LAMBDA_NM_MIN..=limits::LAMBDA_NM_MAX;
    let target = spec.recalibration.as_ref().and_then(|it| it.target_ber);
    let wrong = if !(1..=limits::LANES_MAX).contains(&spec.lanes) {
        format!("lanes must be 1 to {}", limits::LANES_MAX)
    } else if !(1..=limits::MIN_GBPS_MAX).contains(&spec.min_gbps) {
        format!("minGbps must be 1 to {}", limits::MIN_GBPS_MAX)
    } else if spec.lambda_nm.is_empty() || !distinct.iter().all(|it| band.contains(it)) {
        format!("lambdaNm must be {} to {}", limits::LAMBDA_NM_MIN, limits::LAMBDA_NM_MAX)
    } else if distinct.len() != spec.lambda_nm.len() {
        "lambdaNm must not name a wavelength twice".to_owned()
    } else if distinct.len() > spec.lanes as usize {
        "lambdaNm must not name more wavelengths than there are lanes".to_owned()
    } else if target.is_some_and(|it| !(it > 0.0 && it < 0.5)) {
        "targetBer must be more than 0 and less than 0.5".to_owned()
    } else if priority(spec).is_err() {
        let known = PriorityClass::ALL.map(PriorityClass::as_str).join(", ");
        format!("qos.priority must be one of {known}")
    } else if ambient_profile(spec).is_err() {
        let known = AmbientProfile::ALL.map(AmbientProfile::as_str).join(", ");
        format!("recalibration.ambientProfile must be one of {known}")
    } else {
        return Ok(());
    };
    Err(format!("invalid spec: {wrong}"))
}

/// A name that corrd does not know. The schema refuses it, but an object may be older than the schema.
#[derive(Debug)]
struct UnknownName;

fn priority(spec: &CorridorSpec) -> Result<Option<PriorityClass>, UnknownName> {
    let asked = spec.qos.as_ref().and_then(|it| it.priority.as_deref());
    asked.map(|name| PriorityClass::from_name(name).ok_or(UnknownName)).transpose()
}

fn ambient_profile(spec: &CorridorSpec) -> Result<Option<AmbientProfile>, UnknownName> {
    let asked = spec.recalibration.as_ref().and_then(|it| it.ambient_profile.as_deref());
    asked.map(|name| AmbientProfile::from_name(name).ok_or(UnknownName)).transpose()
}

pub(super) fn request(spec: &CorridorSpec, owner: &Owner, device: Option<&str>) -> CorridorRequest {
    // Without `..`: a new field of the spec must be considered here.
    let CorridorSpec {
        corridor_type,
        lanes,
        lambda_nm,
        min_gbps,
        latency_budget_ns,
        reach_mm,
        mode,
        qos,
        attestation_required: _,
        recalibration,
        node_selector: _,
    } = spec;
    let path = PathSpec {
        corridor_type: match corridor_type {
            crds::CorridorType::SiCorridor => corrd::CorridorType::SiCorridor,
            crds::CorridorType::CarbonCorridor => corrd::CorridorType::CarbonCorridor,
        },
        lanes: *lanes,
        lambda_nm: lambda_nm.clone(),
        min_gbps: *min_gbps,
        latency_budget_ns: *latency_budget_ns,
        reach_mm: *reach_mm,
        mode: match mode {
            crds::CorridorMode::Waveguide => corrd::CorridorMode::Waveguide,
            crds::CorridorMode::FreeSpace => corrd::CorridorMode::FreeSpace,
        },
        qos: qos
            .as_ref()
            .map(|it| corrd::Qos { pfc: it.pfc, priority: priority(spec).unwrap_or_default() }),
        recalibration: recalibration.as_ref().map(|it| corrd::Recalibration {
            target_ber: it.target_ber,
            ambient_profile: ambient_profile(spec).unwrap_or_default(),
        }),
        device_id: device.map(ToOwned::to_owned),
    };
    CorridorRequest { owner: owner.clone(), path, ticket: None }
}

/// A field that the spec leaves out has corrd's default, also if it had another value before.
fn change(stands: &PathSpec, wanted: &PathSpec) -> Option<PathChange> {
    fn differing<T: Clone + Default + PartialEq>(
        stands: Option<&T>,
        wanted: Option<&T>,
    ) -> Option<T> {
        let (stands, wanted) = (stands.cloned().unwrap_or_default(), wanted.cloned());
        Some(wanted.unwrap_or_default()).filter(|wanted| *wanted != stands)
    }
    let differs = CorridorChange {
        min_gbps: (stands.min_gbps != wanted.min_gbps).then_some(wanted.min_gbps),
        qos: differing(stands.qos.as_ref(), wanted.qos.as_ref()),
        recalibration: differing(stands.recalibration.as_ref(), wanted.recalibration.as_ref()),
    };
    (differs != CorridorChange::default()).then_some(PathChange::InPlace(differs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner::new("cluster", "object").unwrap()
    }

    fn standing(request: &CorridorRequest) -> Corridor {
        Corridor {
            corridor_id: "c".into(),
            owner: request.owner.clone(),
            idempotency_key: request.key(),
            path: PathSpec { device_id: Some("phot-0".into()), ..request.path.clone() },
            achievable_gbps: 100.0,
            latency_ns: None,
            policy_lease_ttl_s: 60,
            lease_expires_at: Timestamp::UNIX_EPOCH,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// The schema and the daemon know the same names; an object may be older than the schema.
    #[test]
    fn names_are_those_of_the_schema_and_an_unknown_one_is_told() {
        use kube::CustomResourceExt as _;
        let crd = serde_json::to_value(crds::Corridor::crd()).unwrap();
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let names = |field: &str| crd.pointer(&format!("{spec}{field}/enum")).cloned().unwrap();
        let classes = PriorityClass::ALL.map(PriorityClass::as_str);
        assert_eq!(names("/qos/properties/priority"), serde_json::json!(classes));
        let profiles = AmbientProfile::ALL.map(AmbientProfile::as_str);
        let schema = names("/recalibration/properties/ambientProfile");
        assert_eq!(schema, serde_json::json!(profiles));

        let mut spec = CorridorSpec::new(4, [1550], 100);
        spec.qos = Some(crds::Qos { pfc: false, priority: Some("gold".into()) });
        assert_eq!(validate(&spec), Ok(()));
        let asked = request(&spec, &owner(), None).path.qos.unwrap();
        assert_eq!(asked.priority, Some(PriorityClass::Gold));
        spec.qos = Some(crds::Qos { pfc: false, priority: Some("banana".into()) });
        let told = validate(&spec).unwrap_err();
        assert!(told.ends_with("must be one of bronze, silver, gold, platinum"), "{told}");
    }

    #[test]
    fn only_fields_that_need_another_path_ask_for_one() {
        type Edit = fn(&mut CorridorSpec);
        let table: [(Edit, bool, bool); 8] = [
            (|_| {}, true, false),
            (|it| it.min_gbps = 7, true, true),
            (|it| it.qos = Some(crds::Qos { pfc: true, priority: None }), true, true),
            (|it| it.attestation_required = false, true, false),
            (|it| it.lanes = 8, false, false),
            (|it| it.reach_mm = Some(5), false, false),
            (|it| it.latency_budget_ns = Some(5), false, false),
            (|it| it.corridor_type = crds::CorridorType::CarbonCorridor, false, false),
        ];
        let spec = CorridorSpec::new(4, [1550], 100);
        let stands = standing(&request(&spec, &owner(), None));
        for (row, (edit, same_path, in_place)) in table.into_iter().enumerate() {
            let mut edited = spec.clone();
            edit(&mut edited);
            let wanted = request(&edited, &owner(), None);
            assert_eq!(Corridors::satisfies(&stands, &wanted), same_path, "row {row}");
            assert_eq!(change(&stands.path, &wanted.path).is_some(), in_place, "row {row}");
        }
        let mut tuned = spec.clone();
        tuned.qos = Some(crds::Qos { pfc: true, priority: None });
        let stands = standing(&request(&tuned, &owner(), None));
        let back = change(&stands.path, &request(&spec, &owner(), None).path);
        let differs = CorridorChange { qos: Some(corrd::Qos::default()), ..Default::default() };
        assert_eq!(back, Some(PathChange::InPlace(differs)), "what is left out is the default");
    }

    #[test]
    fn asking_for_attestation_later_keeps_the_path_on_its_device() {
        let spec = CorridorSpec::new(4, [1550], 100);
        let stands = standing(&request(&spec, &owner(), None));
        assert!(Corridors::satisfies(&stands, &request(&spec, &owner(), Some("phot-0"))));
        assert!(!Corridors::satisfies(&stands, &request(&spec, &owner(), Some("phot-1"))));
    }

    #[test]
    fn wrong_specs_are_told_what_is_wrong() {
        let good = CorridorSpec::new(2, [1550, 1551], 100);
        assert_eq!(validate(&good), Ok(()));
        for (lanes, lambdas, gbps, word) in [
            (0, vec![1550], 1, "lanes"),
            (1, vec![1550, 1551], 1, "more wavelengths"),
            (2, vec![1550, 1550], 1, "twice"),
            (2, vec![1000], 1, "lambdaNm"),
            (2, vec![], 1, "lambdaNm"),
            (2, vec![1550], 0, "minGbps"),
        ] {
            let refused = validate(&CorridorSpec::new(lanes, lambdas, gbps)).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
