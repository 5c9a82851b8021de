//! Claims, of Pods and of their ephemeral volumes.

use serde_json::{Value, json};

use super::class::CLASSES;
use super::{delete, put_class, size};
use crate::random::Random;
use crate::{asked_node, key_of, name_of};

/// `c0` and so on.
pub(super) const CLAIM_NAMES: usize = 5;

pub(super) fn claim_uid(namespace: &str, name: &str) -> String {
    format!("claim-{namespace}-{name}")
}

pub(super) fn claim(
    random: &mut Random,
    namespace: &str,
    number: usize,
    nodes: &[Value],
    volumes: usize,
) -> Value {
    named(random, namespace, &format!("c{number}"), nodes, volumes)
}

fn named(
    random: &mut Random,
    namespace: &str,
    name: &str,
    nodes: &[Value],
    volumes: usize,
) -> Value {
    let mut claim = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": claim_uid(namespace, name),
            "resourceVersion": "1",
        },
        "spec": {"accessModes": access_modes(random), "resources": {}},
        "status": {"phase": "Pending"},
    });
    if random.chance(98) {
        claim["spec"]["resources"]["requests"] = json!({"storage": size(random).to_string()});
    }
    let delayed: Vec<_> =
        CLASSES.into_iter().filter(|it| !["imm", "gone", "nomode"].contains(it)).collect();
    let is_bound = random.chance(45);
    let class = if !is_bound && random.chance(96) {
        random.pick(&delayed)
    } else if random.chance(15) {
        ""
    } else {
        random.pick(&CLASSES)
    };
    put_class(random, &mut claim, class);
    if is_bound {
        bind(random, &mut claim, volumes);
    } else if random.chance(15) {
        let node = match random.below(6) {
            0 => "gone".to_owned(),
            1 => String::new(),
            _ if nodes.is_empty() => asked_node(random),
            _ => random.pick(nodes)["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        };
        claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!(node);
    }
    if random.chance(20) {
        claim["spec"]["selector"] = json!({"matchLabels": {"tier": "fast"}});
    }
    if random.chance(5) {
        claim["spec"]["volumeMode"] = json!(random.pick(&["Block", "Filesystem"]));
    }
    if random.chance(3) {
        claim["spec"]["volumeAttributesClassName"] = json!("gold");
    }
    if random.chance(2) {
        delete(&mut claim);
    }
    claim
}

fn bind(random: &mut Random, claim: &mut Value, volumes: usize) {
    let volume = if random.chance(4) { 99 } else { random.below(volumes.max(1)) };
    claim["spec"]["volumeName"] = json!(format!("pv{volume}"));
    claim["status"]["phase"] = json!(if random.chance(2) { "Lost" } else { "Bound" });
    if random.chance(97) {
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
    }
}

/// The claim of an ephemeral volume: the Pod's own, another's, or none.
pub(super) fn ephemeral_claim(
    random: &mut Random,
    pod: &Value,
    volume: &str,
    nodes: &[Value],
    volumes: usize,
) -> Option<Value> {
    if random.chance(6) {
        return None;
    }
    let (namespace, name) = name_of(pod);
    let mut claim = named(random, namespace, &format!("{name}-{volume}"), nodes, volumes);
    let owner = if random.chance(5) { "another".to_owned() } else { key_of(pod) };
    claim["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": owner, "controller": true},
    ]);
    Some(claim)
}

pub(super) fn access_modes(random: &mut Random) -> Value {
    let once = "ReadWriteOnce";
    random.pick(&[
        json!([once]),
        json!([once]),
        json!([once]),
        json!([once, "ReadOnlyMany"]),
        json!(["ReadOnlyMany"]),
        json!(["ReadWriteOncePod"]),
    ])
}
