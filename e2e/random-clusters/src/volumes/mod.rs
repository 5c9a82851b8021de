//! Volumes: few claims, PersistentVolumes and classes under few names, so that they meet. They are put on a cluster that
//! is made already: without them it is the same cluster.

mod checked;
mod claim;
mod class;
mod csi;
mod disk;
mod node;
mod persistent_volume;

use serde_json::{Value, json};

use crate::cluster::GeneratedCluster;
use crate::name_of;
use crate::random::Random;

use claim::{CLAIM_NAMES, claim, ephemeral_claim};

/// What stands behind the volumes of a cluster's Pods, each with its status.
#[derive(Debug, Default)]
pub struct GeneratedVolumes {
    pub classes: Vec<Value>,
    pub volumes: Vec<Value>,
    pub claims: Vec<Value>,
    pub csi_nodes: Vec<Value>,
    pub csi_drivers: Vec<Value>,
    pub capacities: Vec<Value>,
    pub attachments: Vec<Value>,
}

impl GeneratedVolumes {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "classes": self.classes,
            "volumes": self.volumes,
            "claims": self.claims,
            "csiNodes": self.csi_nodes,
            "csiDrivers": self.csi_drivers,
            "capacities": self.capacities,
            "attachments": self.attachments,
        })
    }
}

/// A Pod's volumes: usually one.
const COUNTS: [usize; 7] = [1, 1, 1, 2, 2, 3, 4];
const COUNTS_OF_PLACED: [usize; 3] = [1, 1, 2];
/// The same name elsewhere is another claim.
const ELSEWHERE_PERCENT: usize = 40;
/// Of clusters whose Pods to schedule are in several namespaces.
const ELSEWHERE_ALIKE_PERCENT: usize = 97;

/// Gives volumes to the Pod to schedule, to some of those that are placed or nominated, and labels to Nodes, unchecked.
/// Pods must have their names and UIDs; a placed Pod's UID is `namespace/name`.
pub fn add_volumes(
    random: &mut Random,
    cluster: &mut GeneratedCluster,
    incoming: &mut Value,
    nominated: &mut [Value],
) -> GeneratedVolumes {
    let mut made = behind(random, cluster, name_of(incoming).0, ELSEWHERE_PERCENT);
    let count = random.pick(&COUNTS);
    let own = put_volumes(random, &made, &cluster.nodes, incoming, count);
    made.claims.extend(own);
    put_on_placed(random, &mut made, cluster);
    for nominated in nominated {
        if random.chance(60) {
            let own = put_volumes(random, &made, &cluster.nodes, nominated, 1);
            made.claims.extend(own);
        }
    }
    made
}

/// Gives volumes to a cluster whose Pods to schedule get them one by one ([`give_volumes`]). An API server stores all
/// of it, when it is told the UIDs of its own.
pub fn add_checked_volumes(random: &mut Random, cluster: &mut GeneratedCluster) {
    let mut made = behind(random, cluster, "team-a", ELSEWHERE_ALIKE_PERCENT);
    put_on_placed(random, &mut made, cluster);
    for placed in &mut cluster.placed {
        checked::correct_pod(&mut placed.object);
    }
    checked::correct(&mut made);
    cluster.volumes = made;
}

/// Gives volumes of that cluster to a Pod to schedule, which has its name. What comes back are the claims of its
/// ephemeral volumes; its own have `namespace/name` for the UID of their owner.
pub fn give_volumes(
    random: &mut Random,
    cluster: &GeneratedCluster,
    pod: &mut Value,
) -> Vec<Value> {
    let count = random.pick(&COUNTS);
    let mut own = put_volumes(random, &cluster.volumes, &cluster.nodes, pod, count);
    checked::correct_pod(pod);
    checked::correct_own_claims(&mut own, &cluster.volumes.volumes);
    own
}

/// Labels the Nodes, and makes all that stands behind volumes.
fn behind(
    random: &mut Random,
    cluster: &mut GeneratedCluster,
    namespace: &str,
    elsewhere_percent: usize,
) -> GeneratedVolumes {
    node::label_nodes(random, &mut cluster.nodes);
    let mut made = GeneratedVolumes {
        classes: class::classes(random),
        volumes: persistent_volume::volumes(random, namespace),
        csi_drivers: csi::drivers(random),
        capacities: csi::capacities(random),
        ..GeneratedVolumes::default()
    };
    let nodes = &cluster.nodes;
    made.csi_nodes = csi::csi_nodes(random, nodes);
    made.attachments = csi::attachments(random, nodes, made.volumes.len());
    for number in 0..CLAIM_NAMES {
        if random.chance(97) {
            made.claims.push(claim(random, namespace, number, nodes, made.volumes.len()));
        }
        let elsewhere = if namespace == "team-a" { "team-b" } else { "team-a" };
        if random.chance(elsewhere_percent) {
            made.claims.push(claim(random, elsewhere, number, nodes, made.volumes.len()));
        }
    }
    made
}

fn put_on_placed(random: &mut Random, made: &mut GeneratedVolumes, cluster: &mut GeneratedCluster) {
    for placed in &mut cluster.placed {
        if random.chance(35) {
            let count = random.pick(&COUNTS_OF_PLACED);
            let own = put_volumes(random, made, &cluster.nodes, &mut placed.object, count);
            made.claims.extend(own);
        }
    }
}

/// What comes back are the claims of its ephemeral volumes.
fn put_volumes(
    random: &mut Random,
    made: &GeneratedVolumes,
    nodes: &[Value],
    pod: &mut Value,
    count: usize,
) -> Vec<Value> {
    let mut own = vec![];
    let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    let mut last_claim = None;
    for number in 0..count {
        let name = format!("v{number}");
        let mut volume = match random.below(100) {
            0..70 => {
                let twice = last_claim.filter(|_| random.chance(12));
                let claim = twice.unwrap_or_else(|| random.below(CLAIM_NAMES));
                last_claim = Some(claim);
                json!({"persistentVolumeClaim": {"claimName": format!("c{claim}")}})
            }
            70..82 => {
                own.extend(ephemeral_claim(random, pod, &name, nodes, made.volumes.len()));
                json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
            }
            _ => disk::inline(random),
        };
        volume["name"] = json!(name);
        volumes.push(volume);
    }
    pod["spec"]["volumes"] = json!(volumes);
    own
}

/// Of an object that is being deleted. The pretended API server refuses one that waits for nothing.
fn delete(object: &mut Value) {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = json!(["x/y"]);
}

const GIB: u64 = 1 << 30;

/// In bytes: around the sizes that others ask for.
fn size(random: &mut Random) -> u64 {
    let whole = random.pick(&[1, 2, 2, 3]) * GIB;
    random.pick(&[whole - 1, whole, whole, whole, whole, whole + 1])
}

/// Classes by annotation or by field, sometimes both.
fn put_class(random: &mut Random, object: &mut Value, class: &str) {
    let by_annotation = random.chance(8);
    if by_annotation {
        object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"] = json!(class);
    }
    if !by_annotation {
        object["spec"]["storageClassName"] = json!(class);
    } else if random.coin() {
        object["spec"]["storageClassName"] = json!("other");
    }
}
