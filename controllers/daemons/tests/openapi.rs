//! The OpenAPI file, the types and the routes say the same.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::collections::BTreeSet;

use daemons::attestd::{Device, DeviceList, Measurement, Verified, VerifyRequest};
use daemons::corrd::{
    AmbientProfile, Corridor, CorridorChange, CorridorList, CorridorRequest, CorridorTelemetry,
    LambdaReading, LambdaTuning, Lease, PathSpec, PriorityClass, Qos, Recalibration,
    RecalibrationRequest, RecalibrationResult,
};
use daemons::memqosd::{
    BandwidthChange, Bundle, BundleList, BundleRequest, BundleSpec, BundleTelemetry, LatencyClass,
    LatencyClassChange, LatencyClassChanged,
};
use daemons::ticket::TicketClaims;
use daemons::{Owner, Refusal, RefusalReason, Revision, TelemetryPage};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

fn file() -> Value {
    serde_saphyr::from_str(include_str!("../openapi.yaml")).expect("openapi.yaml is YAML")
}

/// Names of a schema's properties, those of its parts included.
fn properties(file: &Value, name: &str) -> BTreeSet<String> {
    let schema = &file["components"]["schemas"][name];
    assert!(schema.is_object(), "{name} is not in the file");
    let of = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => {
            properties(file, reference.strip_prefix("#/components/schemas/").unwrap())
        }
        None => {
            schema["properties"].as_object().into_iter().flat_map(|it| it.keys().cloned()).collect()
        }
    };
    match schema["allOf"].as_array() {
        Some(parts) => parts.iter().flat_map(of).collect(),
        None => of(schema),
    }
}

fn compare(name: &str, example: &impl Serialize) {
    let example = serde_json::to_value(example).unwrap();
    let fields: BTreeSet<String> = example.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, properties(&file(), name), "{name}");
}

fn owner() -> Owner {
    Owner::new("cluster", "object").unwrap()
}

fn path() -> PathSpec {
    PathSpec {
        latency_budget_ns: Some(1),
        reach_mm: Some(1),
        qos: Some(Qos { pfc: true, priority: Some(PriorityClass::Gold) }),
        recalibration: Some(recalibration()),
        device_id: Some("phot-0".into()),
        ..PathSpec::default()
    }
}

fn recalibration() -> Recalibration {
    Recalibration { target_ber: Some(1e-12), ambient_profile: Some(AmbientProfile::LabDefault) }
}

fn memory() -> BundleSpec {
    BundleSpec { device_id: Some("mem-0".into()), ..BundleSpec::default() }
}

#[test]
fn corrd_is_as_described() {
    let request = CorridorRequest { owner: owner(), path: path(), ticket: Some("t".into()) };
    compare("PathSpec", &path());
    compare("Qos", &path().qos.unwrap());
    compare("Recalibration", &recalibration());
    compare("CorridorRequest", &request);
    compare("CorridorList", &CorridorList::default());
    compare("LambdaTuning", &LambdaTuning::default());
    compare("LambdaReading", &LambdaReading::default());
    let now = Timestamp::UNIX_EPOCH;
    compare("Lease", &Lease { policy_lease_ttl_s: 1, lease_expires_at: now });
    let corridor = Corridor {
        corridor_id: "cor-1".into(),
        owner: owner(),
        idempotency_key: request.key(),
        path: path(),
        achievable_gbps: 1.0,
        latency_ns: None,
        policy_lease_ttl_s: 1,
        lease_expires_at: now,
        created_at: now,
    };
    compare("Corridor", &corridor);
    let change =
        CorridorChange { min_gbps: Some(1), qos: path().qos, recalibration: Some(recalibration()) };
    compare("CorridorChange", &change);
    let ask = RecalibrationRequest {
        target_ber: Some(1e-12),
        ambient_profile: Some(AmbientProfile::LabDefault),
        reason: Some("ber_drift".into()),
    };
    compare("RecalibrationRequest", &ask);
    let result = RecalibrationResult {
        corridor_id: "cor-1".into(),
        converged: false,
        ber: None,
        lambdas: vec![],
    };
    compare("RecalibrationResult", &result);
    let sample = CorridorTelemetry {
        corridor_id: "cor-1".into(),
        owner: owner(),
        sampled_at: now,
        achievable_gbps: 1.0,
        min_gbps: 1,
        ber: None,
        target_ber: Some(1e-12),
        eye_margin: None,
        latency_ns: None,
        temp_c: None,
        power_pj_per_bit: None,
        power_saved_kj: None,
        drift: None,
        lambdas: vec![],
    };
    compare("CorridorTelemetry", &sample);
}

#[test]
fn memqosd_is_as_described() {
    let now = Timestamp::UNIX_EPOCH;
    let request = BundleRequest { owner: owner(), memory: memory(), ticket: Some("t".into()) };
    compare("BundleSpec", &memory());
    compare("BundleRequest", &request);
    compare("BundleList", &BundleList::default());
    compare("BandwidthChange", &BandwidthChange { floor_gbs: 1 });
    let latency_class = LatencyClass::T2;
    compare("LatencyClassChange", &LatencyClassChange { latency_class });
    compare("LatencyClassChanged", &LatencyClassChanged { latency_class, moved_pages: 1 });
    let bundle = Bundle {
        ffm_handle: "ffm-1".into(),
        owner: owner(),
        idempotency_key: request.key(),
        memory: memory(),
        achieved_gbs: 1.0,
        moved_pages: 0,
        policy_lease_ttl_s: 1,
        lease_expires_at: now,
        lapsed: false,
        created_at: now,
    };
    compare("Bundle", &bundle);
    let sample = BundleTelemetry {
        ffm_handle: "ffm-1".into(),
        owner: owner(),
        sampled_at: now,
        achieved_gbs: 1.0,
        floor_gbs: 1,
        latency_class,
        moved_pages: 0,
        tail_p99_ms: None,
        qos_violations: 0,
        lapsed: false,
    };
    compare("BundleTelemetry", &sample);
    compare(
        "TelemetryPage",
        &TelemetryPage { revision: Revision::default(), ..Default::default() },
    );
}

#[test]
fn attestd_is_as_described() {
    let now = Timestamp::UNIX_EPOCH;
    compare("Device", &Device::default());
    compare("DeviceList", &DeviceList::default());
    let ask = VerifyRequest {
        device_id: "phot-0".into(),
        nonce: "n".into(),
        subject: "s".into(),
        tenant: "t".into(),
        pqc: true,
    };
    compare("VerifyRequest", &ask);
    let measurement = Measurement { index: 1, component: "firmware".into(), digest: "00".into() };
    compare("Measurement", &measurement);
    let verified = Verified {
        device_id: "phot-0".into(),
        nonce: "n".into(),
        measurements: vec![measurement],
        firmware: "1".into(),
        claims: [].into(),
        ticket: "t".into(),
        expires_at: now,
    };
    compare("Verified", &verified);
    let claims = TicketClaims {
        subject: "s".into(),
        device_id: "d".into(),
        tenant: "t".into(),
        nonce: "n".into(),
        issued_at: now,
        expires_at: now,
        firmware: "1".into(),
        claims: [].into(),
    };
    compare("TicketClaims", &claims);
}

#[test]
fn refusals_are_as_described() {
    compare("Refusal", &Refusal::new(RefusalReason::Reach, "too far"));
    let file = file();
    let schema = &file["components"]["schemas"]["Refusal"]["properties"]["reason"]["enum"];
    let described: BTreeSet<&str> =
        schema.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let known: BTreeSet<&str> = RefusalReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(described, known);
}

/// The router's source is the list of routes; each stands in the file, and no other.
#[test]
fn routes_are_as_described() {
    let source = include_str!("../src/simulated/routes/mod.rs");
    let mut served = BTreeSet::new();
    for piece in source.split(".route(").skip(1) {
        let path = piece.split('"').nth(1).unwrap();
        let end = piece.find(".route").unwrap_or(piece.len());
        if path.starts_with("/v1/") || path.starts_with("/admin/") {
            for method in ["get", "post", "patch", "put", "delete"] {
                if piece[..end].contains(&format!("{method}(")) {
                    served.insert(format!("{method} {path}"));
                }
            }
        }
    }
    let file = file();
    let described: BTreeSet<String> = file["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.filter(|key| *key != "parameters").map(move |method| format!("{method} {path}"))
        })
        .collect();
    assert_eq!(served, described);
    assert_eq!(served.len(), 25);
}

/// Every reference leads somewhere.
#[test]
fn references_resolve() {
    fn walk<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| walk(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let file = file();
    let mut found = Vec::new();
    walk(&file, &mut found);
    assert!(found.len() > 50);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(file.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}
