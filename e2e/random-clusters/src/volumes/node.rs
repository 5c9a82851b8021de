//! Labels by which volumes tell Nodes apart.

use serde_json::{Value, json};

use crate::random::Random;

pub(super) fn label_nodes(random: &mut Random, nodes: &mut [Value]) {
    // A hostname is a label, and need not be the name of the Node.
    let is_renamed = random.chance(40);
    for node in nodes {
        let name = node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let labels = &mut node["metadata"]["labels"];
        if is_renamed && labels["kubernetes.io/hostname"].is_string() {
            labels["kubernetes.io/hostname"] = json!(format!("host-{name}"));
        }
        let zone = random.pick(&["a", "b"]);
        let mut label = |key: &str, value: &str, percent: usize| {
            if random.chance(percent) {
                labels[key] = json!(value);
            }
        };
        label("topology.kubernetes.io/region", "r1", 25);
        label("failure-domain.beta.kubernetes.io/zone", zone, 12);
        label("failure-domain.beta.kubernetes.io/region", "r1", 8);
        label("topology.ebs.csi.aws.com/zone", zone, 50);
        label("topology.gke.io/zone", zone, 50);
        // JSON makes an absent label null when it is looked at.
        if let Some(labels) = labels.as_object_mut() {
            labels.retain(|_, value| !value.is_null());
        }
    }
}
