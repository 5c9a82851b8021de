//! What drivers say of themselves, of Nodes, and of what they have attached and can still make.

use serde_json::{Value, json};

use super::size;
use crate::random::Random;

const DRIVERS: [&str; 5] =
    ["x.csi", "y.csi", "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"];
const MIGRATED: [&str; 5] = [
    "kubernetes.io/aws-ebs",
    "kubernetes.io/gce-pd",
    "kubernetes.io/azure-disk",
    "kubernetes.io/cinder",
    "kubernetes.io/portworx-volume",
];

pub(super) fn drivers(random: &mut Random) -> Vec<Value> {
    let mut drivers = vec![];
    for name in ["x.csi", "y.csi", "kubernetes.io/aws-ebs"] {
        match random.below(4) {
            0 => {}
            1 => drivers.push(json!({"metadata": {"name": name}, "spec": {}})),
            _ => {
                drivers
                    .push(json!({"metadata": {"name": name}, "spec": {"storageCapacity": true}}));
            }
        }
    }
    drivers
}

pub(super) fn csi_nodes(random: &mut Random, nodes: &[Value]) -> Vec<Value> {
    let mut csi_nodes = vec![];
    let is_limited = random.chance(60);
    for node in nodes {
        if random.chance(20) {
            continue;
        }
        let mut drivers = vec![];
        for name in DRIVERS {
            let mut driver = json!({"name": name, "nodeID": "n", "topologyKeys": []});
            match random.below(8) {
                0 => continue,
                1..5 if is_limited => {
                    let count = random.pick(&[0, 1, 1, 2, 2, 3]);
                    driver["allocatable"] = json!({"count": count});
                }
                5 => driver["allocatable"] = json!({}),
                _ => {}
            }
            drivers.push(driver);
        }
        let mut csi_node = json!({
            "metadata": {"name": node["metadata"]["name"]}, "spec": {"drivers": drivers},
        });
        if random.chance(60) {
            let names: Vec<_> = MIGRATED.into_iter().filter(|_| random.chance(70)).collect();
            csi_node["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"] =
                json!(names.join(","));
        }
        csi_nodes.push(csi_node);
    }
    csi_nodes
}

pub(super) fn attachments(random: &mut Random, nodes: &[Value], volumes: usize) -> Vec<Value> {
    if nodes.is_empty() {
        return vec![];
    }
    let count = random.below(5);
    (0..count)
        .map(|number| {
            let volume = if random.chance(10) { 98 } else { random.below(volumes.max(1)) };
            let source = if random.chance(8) {
                json!({"inlineVolumeSpec": {"csi": {"driver": "x.csi", "volumeHandle": "h0"}}})
            } else {
                json!({"persistentVolumeName": format!("pv{volume}")})
            };
            json!({
                "metadata": {"name": format!("va{number}")},
                "spec": {
                    "attacher": random.pick(&["x.csi", "x.csi", "y.csi"]),
                    "nodeName": random.pick(nodes)["metadata"]["name"],
                    "source": source,
                },
            })
        })
        .collect()
}

pub(super) fn capacities(random: &mut Random) -> Vec<Value> {
    let count = random.below(9);
    (0..count)
        .map(|number| {
            let namespace = random.pick(&["drivers", "team-a"]);
            let mut capacity = json!({
                "metadata": {"namespace": namespace, "name": format!("cap{number}")},
                "storageClassName": random.pick(&["dyn", "dyn", "dyn2", "ebs", "imm"]),
            });
            if random.chance(85) {
                capacity["capacity"] = json!((size(random) * 2).to_string());
            }
            if random.chance(40) {
                capacity["maximumVolumeSize"] = json!(size(random).to_string());
            }
            let topologies = [
                json!(null),
                json!({}),
                json!({}),
                json!({"matchLabels": {"zone": "a"}}),
                json!({"matchLabels": {"topology.kubernetes.io/zone": "b"}}),
                json!({"matchLabels": {"kubernetes.io/hostname": "n0"}}),
                json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "c"]}]}),
            ];
            let topology = random.pick(&topologies);
            if !topology.is_null() {
                capacity["nodeTopology"] = topology;
            }
            capacity
        })
        .collect()
}
