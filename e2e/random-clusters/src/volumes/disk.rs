//! Disks that a Pod names itself.

use serde_json::{Value, json};

use crate::random::Random;

pub(super) fn inline(random: &mut Random) -> Value {
    let is_read_only = random.coin();
    match random.below(20) {
        0..4 => {
            json!({"gcePersistentDisk": {"pdName": random.pick(&["d0", "d1"]), "readOnly": is_read_only}})
        }
        4..8 => {
            let id = random.pick(&["vol-0", "vol-0", "vol-1", "aws://a/vol-0", "aws://a/bad"]);
            json!({"awsElasticBlockStore": {"volumeID": id, "readOnly": is_read_only}})
        }
        8..11 => json!({"iscsi": {
            "iqn": random.pick(&["q0", "q1"]), "lun": random.below(2), "targetPortal": "p",
            "readOnly": is_read_only,
        }}),
        11..15 => json!({"rbd": {
            "monitors": random.list(1, 2, |random| random.pick(&["m0", "m1", "m2"])),
            "pool": random.pick(&["p", "p", "q"]), "image": "i", "readOnly": is_read_only,
        }}),
        15..17 => {
            let kind = random.pick(&[json!(null), json!("Managed"), json!("Dedicated")]);
            json!({"azureDisk": {"diskName": "d", "diskURI": random.pick(&["u0", "u1"]), "kind": kind}})
        }
        17 => json!({"cinder": {"volumeID": random.pick(&["s0", "s1"])}}),
        18 => json!({"portworxVolume": {"volumeID": random.pick(&["w0", "w1"])}}),
        _ => json!({"csi": {"driver": "x.csi"}}),
    }
}

/// The source of a PersistentVolume of that class. Those of `local` are seldom counted by a driver.
pub(super) fn source(random: &mut Random, class: &str) -> (&'static str, Value) {
    if class == "local" && random.chance(80) {
        return ("local", json!({"path": "/d"}));
    }
    match random.below(20) {
        0..10 => {
            let handle = format!("h{}", random.below(7));
            (
                "csi",
                json!({"driver": random.pick(&["x.csi", "x.csi", "y.csi"]), "volumeHandle": handle}),
            )
        }
        10..13 => {
            let ids = ["vol-0", "vol-1", "vol-2", "aws://a/vol-3"];
            let id = if random.chance(6) { "aws://a/bad" } else { random.pick(&ids) };
            ("awsElasticBlockStore", json!({"volumeID": id}))
        }
        13..16 => ("gcePersistentDisk", json!({"pdName": random.pick(&["d0", "d1", "d2"])})),
        16 => {
            let kind = random.pick(&["Managed", "Managed", "Dedicated"]);
            (
                "azureDisk",
                json!({"diskName": "d", "diskURI": random.pick(&["u0", "u1"]), "kind": kind}),
            )
        }
        17 => ("cinder", json!({"volumeID": random.pick(&["s0", "s1"])})),
        18 => ("portworxVolume", json!({"volumeID": random.pick(&["w0", "w1"])})),
        _ => ("hostPath", json!({"path": "/d"})),
    }
}
