//! The samples are what the types accept, and they use the documented names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test is what they report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crds::{
    AttestationPolicy, Corridor, CorridorSpec, Day, LatencyClass, MemoryBundle, SCHEDULER_NAME,
    annotations,
};
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[test]
fn corridor() {
    let sample: Corridor = parse("corridor.yaml");
    assert_eq!(sample.spec.lambda_nm, [1550, 1551, 1552, 1553]);
    assert_eq!(sample.spec.min_gbps, 400);
    assert_eq!(sample.spec.recalibration.unwrap().target_ber, Some(1e-12));
}

#[test]
fn memory_bundle() {
    let sample: MemoryBundle = parse("memorybundle.yaml");
    assert_eq!(sample.spec.bytes, 256 << 30);
    assert_eq!(sample.spec.latency_class, LatencyClass::T1);
    let schedule = sample.spec.schedule.unwrap();
    assert_eq!(schedule.time_zone, "Europe/Berlin");
    assert_eq!(schedule.windows[1].days, [Day::Sat, Day::Sun]);
    assert_eq!(schedule.windows[1].bandwidth_floor_gbs, 25);
}

#[test]
fn attestation_policy() {
    let sample: AttestationPolicy = parse("attestationpolicy.yaml");
    assert_eq!(sample.spec.allowed_tenants, ["team-b"]);
    assert_eq!(sample.spec.device_selectors.unwrap().match_labels["vendor"], "lumen");
    assert_eq!(sample.spec.required_claims["secureBoot"], "enabled");
}

#[test]
fn pod_refers_to_the_sample_corridor() {
    let corridor: Corridor = parse("corridor.yaml");
    let pod: Pod = parse("pod-with-corridor.yaml");
    assert_eq!(pod.spec.unwrap().scheduler_name.as_deref(), Some(SCHEDULER_NAME));

    let wanted = pod.metadata.annotations.unwrap();
    let (namespace, name) = wanted[annotations::CORRIDOR_REF].split_once('/').unwrap();
    assert_eq!(corridor.metadata.namespace.as_deref(), Some(namespace));
    assert_eq!(corridor.metadata.name.as_deref(), Some(name));
    let gbps: u32 = wanted[annotations::CORRIDOR_GBPS].parse().unwrap();
    assert!(gbps <= corridor.spec.min_gbps);
}

#[test]
fn each_kind_has_a_sample_and_each_sample_a_comment() {
    let mut kinds = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{} does not say what it shows", path.display());
        let object: Value = serde_saphyr::from_str(&text).unwrap();
        kinds.insert(object["kind"].as_str().unwrap().to_owned());
    }
    for crd in crds::all() {
        let kind = crd.spec.names.kind;
        assert!(kinds.contains(&kind), "{kind} has no sample in config/samples");
    }
}

#[test]
fn the_smallest_spec_gets_the_documented_defaults() {
    let spec: CorridorSpec =
        serde_json::from_str(r#"{"lanes": 1, "lambdaNm": [1550], "minGbps": 10}"#).unwrap();
    assert_eq!(spec, CorridorSpec::new(1, [1550], 10));
    assert!(spec.attestation_required);
}

/// Parses a sample and checks that the type knows every field of it.
fn parse<T: DeserializeOwned + Serialize>(file: &str) -> T {
    let text = fs::read_to_string(folder().join(file)).unwrap();
    let written: Value = serde_saphyr::from_str(&text).unwrap();
    let parsed: T = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
    let understood = serde_json::to_value(&parsed).unwrap();
    assert_eq!(understood["spec"], written["spec"], "{file} has a field that the type drops");
    parsed
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/samples")
}
