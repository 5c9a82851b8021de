//! PersistentVolumes.

use serde_json::{Value, json};

use super::claim::{CLAIM_NAMES, access_modes, claim_uid};
use super::class::CLASSES;
use super::{delete, put_class, size};
use crate::random::Random;

pub(super) fn volumes(random: &mut Random, namespace: &str) -> Vec<Value> {
    let count = random.between(4, 14);
    (0..count).map(|number| volume(random, namespace, number)).collect()
}

fn volume(random: &mut Random, namespace: &str, number: usize) -> Value {
    let class = if random.chance(12) { "" } else { random.pick(&CLASSES) };
    let (source, value) = super::disk::source(random, class);
    let mut volume = json!({
        "metadata": {"name": format!("pv{number}"), "uid": format!("pv{number}"), "resourceVersion": "1"},
        "spec": {
            "capacity": {"storage": size(random).to_string()},
            "accessModes": access_modes(random),
            source: value,
        },
        "status": {"phase": random.pick(&[
            "Available", "Available", "Available", "Available", "Available", "Available", "Bound",
            "Pending", "Released", "Failed",
        ])},
    });
    put_class(random, &mut volume, class);
    if random.chance(25) {
        volume["spec"]["claimRef"] = claim_ref(random, namespace);
    }
    if random.chance(60) {
        volume["spec"]["nodeAffinity"] = json!({"required": affinity(random)});
    }
    if random.chance(6) {
        volume["spec"]["volumeMode"] = json!("Block");
    }
    if random.chance(5) {
        volume["spec"]["volumeAttributesClassName"] = json!("gold");
    }
    if random.chance(40) {
        volume["metadata"]["labels"] = zone_labels(random);
    }
    if random.chance(40) {
        volume["metadata"]["labels"]["tier"] = json!("fast");
    }
    if random.chance(4) {
        delete(&mut volume);
    }
    volume
}

fn claim_ref(random: &mut Random, namespace: &str) -> Value {
    let number = random.below(CLAIM_NAMES);
    let mut reference = json!({"namespace": namespace, "name": format!("c{number}")});
    match random.below(5) {
        0 => reference["namespace"] = json!("elsewhere"),
        1 => reference["uid"] = json!("stale"),
        2 => {}
        _ => reference["uid"] = json!(claim_uid(namespace, &format!("c{number}"))),
    }
    reference
}

fn affinity(random: &mut Random) -> Value {
    let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let zone = "topology.kubernetes.io/zone";
    let beta = "failure-domain.beta.kubernetes.io/zone";
    let one = |random: &mut Random| match random.below(24) {
        0..6 => term(zone, "In", &["a", "b"]),
        6..9 => term("kubernetes.io/hostname", "In", &["n0", "n1", "host-n2", "host-n3"]),
        9..11 => term("zone", "NotIn", &["a"]),
        11 => term("num", "Gt", &["3"]),
        12 => json!({}),
        13 => {
            json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]})
        }
        14 => term("zone", "In", &[]),
        15..18 => term(beta, "In", &["a", "b"]),
        18 => term(zone, "Exists", &[]),
        19 => json!({"matchExpressions": [
            {"key": beta, "operator": "In", "values": ["a"]},
            {"key": "failure-domain.beta.kubernetes.io/region", "operator": "In", "values": ["r1"]},
        ]}),
        _ => term("disk", "In", &["ssd"]),
    };
    let fewest = usize::from(!random.chance(4));
    let terms = random.list(fewest, 2, one);
    json!({"nodeSelectorTerms": terms})
}

fn zone_labels(random: &mut Random) -> Value {
    let mut labels = json!({});
    let zones = ["a", "a", "b", "a__b", "a__b", "a____b", "", "e-w-a__e-w-b"];
    if random.chance(70) {
        labels["topology.kubernetes.io/zone"] = json!(random.pick(&zones));
    }
    if random.chance(35) {
        labels["failure-domain.beta.kubernetes.io/zone"] = json!(random.pick(&zones));
    }
    if random.chance(15) {
        labels["topology.kubernetes.io/region"] = json!("r1");
    }
    labels
}
