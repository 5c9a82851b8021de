//! StorageClasses.

use serde_json::{Value, json};

use crate::random::Random;

/// That claims and PersistentVolumes name; an entry that stands there twice is twice as likely.
pub(super) const CLASSES: [&str; 12] = [
    "local", "local", "local", "local", "dyn", "dyn", "dyn", "dyn2", "ebs", "imm", "gone", "nomode",
];

pub(super) fn classes(random: &mut Random) -> Vec<Value> {
    let known = [
        ("local", "kubernetes.io/no-provisioner", Some("WaitForFirstConsumer")),
        ("dyn", "x.csi", Some("WaitForFirstConsumer")),
        ("dyn2", "y.csi", Some("WaitForFirstConsumer")),
        ("ebs", "kubernetes.io/aws-ebs", Some("WaitForFirstConsumer")),
        ("imm", "x.csi", Some("Immediate")),
        // An API server sets it.
        ("nomode", "x.csi", None),
    ];
    let mut classes = vec![];
    for (name, provisioner, mode) in known {
        if name == "nomode" && random.chance(80) {
            continue;
        }
        let mut class = json!({"metadata": {"name": name}, "provisioner": provisioner});
        if let Some(mode) = mode {
            class["volumeBindingMode"] = json!(mode);
        }
        if random.chance(45) {
            class["allowedTopologies"] = json!(random.list(1, 2, topology_term));
        }
        classes.push(class);
    }
    classes
}

fn topology_term(random: &mut Random) -> Value {
    let expression = |key: &str, values: &[&str]| json!({"matchLabelExpressions": [{"key": key, "values": values}]});
    match random.below(10) {
        0..4 => expression("topology.kubernetes.io/zone", &["a", "b"]),
        4..6 => expression("zone", &["a"]),
        6 => expression("kubernetes.io/hostname", &["n0", "host-n1"]),
        7 => expression("nobody-has-it", &["x"]),
        8 => json!({}),
        _ => json!({"matchLabelExpressions": [
            {"key": "zone", "values": ["a", "b"]}, {"key": "disk", "values": ["ssd"]},
        ]}),
    }
}
