//! What an API server refuses of volumes, corrected.

use serde_json::{Value, json};

use super::GeneratedVolumes;
use crate::NAMESPACES;

pub(super) fn correct(made: &mut GeneratedVolumes) {
    made.classes.iter_mut().for_each(correct_class);
    made.volumes.iter_mut().for_each(correct_volume);
    correct_claims(&mut made.claims);
    // A driver of the old kind has no name that a CSIDriver can have.
    made.csi_drivers.retain(|driver| !text(&driver["metadata"]["name"]).contains('/'));
    for capacity in &mut made.capacities {
        let namespace = &mut capacity["metadata"]["namespace"];
        if !NAMESPACES.contains(&text(namespace)) {
            *namespace = json!(NAMESPACES[2]);
        }
    }
    for attachment in &mut made.attachments {
        if let Some(inline) = attachment["spec"]["source"].get_mut("inlineVolumeSpec") {
            inline["accessModes"] = json!(["ReadWriteOnce"]);
        }
    }
}

pub(super) fn correct_claims(claims: &mut [Value]) {
    for claim in claims {
        if claim["spec"]["resources"]["requests"].is_null() {
            claim["spec"]["resources"]["requests"] = json!({"storage": "1Gi"});
        }
    }
}

/// Of a Pod to schedule. This scheduler is asked about it as if it named them, so there must be nothing in which
/// ephemeral volumes are special: it is their owner, no Pod has one for itself, and a PersistentVolume is in no zone.
pub(super) fn correct_own_claims(claims: &mut [Value], volumes: &[Value]) {
    correct_claims(claims);
    let is_anywhere = |volume: &&Value| {
        let labels = volume["metadata"]["labels"].as_object();
        !labels.is_some_and(|it| it.keys().any(|key| key != "tier"))
    };
    let anywhere: Vec<&Value> =
        volumes.iter().filter(is_anywhere).map(|volume| &volume["metadata"]["name"]).collect();
    for claim in claims {
        let (namespace, owner) = (
            text(&claim["metadata"]["namespace"]).to_owned(),
            &mut claim["metadata"]["ownerReferences"][0],
        );
        owner["uid"] = json!(format!("{namespace}/{}", text(&owner["name"])));
        let spec = &mut claim["spec"];
        if spec["accessModes"] == json!(["ReadWriteOncePod"]) {
            spec["accessModes"] = json!(["ReadWriteOnce"]);
        }
        if spec["volumeName"].is_null() || anywhere.contains(&&spec["volumeName"]) {
            continue;
        }
        if let Some(volume) = anywhere.first() {
            spec["volumeName"] = (*volume).clone();
        } else {
            unbind(claim);
        }
    }
}

fn unbind(claim: &mut Value) {
    claim["spec"]["volumeName"] = Value::Null;
    if let Some(annotations) = claim["metadata"]["annotations"].as_object_mut() {
        annotations.remove("pv.kubernetes.io/bind-completed");
    }
    claim["status"]["phase"] = json!("Pending");
}

pub(super) fn correct_pod(pod: &mut Value) {
    let volumes = pod.pointer_mut("/spec/volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        if let Some(iscsi) = volume.get_mut("iscsi") {
            let name = format!("iqn.2026-01.com.example:{}", text(&iscsi["iqn"]));
            iscsi["iqn"] = json!(name);
        }
        if let Some(ephemeral) = volume.get_mut("ephemeral") {
            ephemeral["volumeClaimTemplate"]["spec"] = json!({
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            });
        }
        correct_azure(volume);
    }
}

/// No two terms may be the same, and none may be empty.
fn correct_class(class: &mut Value) {
    let Some(terms) = class["allowedTopologies"].as_array() else { return };
    let mut kept: Vec<Value> = vec![];
    for term in terms {
        if *term != json!({}) && !kept.contains(term) {
            kept.push(term.clone());
        }
    }
    class["allowedTopologies"] = json!(kept);
}

fn correct_volume(volume: &mut Value) {
    let spec = &mut volume["spec"];
    correct_azure(spec);
    for term in spec
        .pointer_mut("/nodeAffinity/required/nodeSelectorTerms")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        // Without them, it still matches nothing.
        if let Some(expressions) = term.get_mut("matchExpressions").and_then(Value::as_array_mut) {
            let is_empty = |it: &Value| it["operator"] == "In" && it["values"] == json!([]);
            expressions.retain(|expression| !is_empty(expression));
        }
    }
    let Some(spec) = spec.as_object_mut() else { return };
    let has_terms = |affinity: &Value| affinity["required"]["nodeSelectorTerms"] != json!([]);
    if !spec.get("nodeAffinity").is_some_and(has_terms) {
        spec.remove("nodeAffinity");
        // It needs one.
        if spec.remove("local").is_some() {
            spec.insert("hostPath".to_owned(), json!({"path": "/d"}));
        }
    }
    if !spec.contains_key("csi") {
        spec.remove("volumeAttributesClassName");
    }
}

/// The form of the address depends on the kind, and the kind that is set by default has none of a CSI driver.
fn correct_azure(parent: &mut Value) {
    let Some(azure) = parent.get_mut("azureDisk") else { return };
    if azure["kind"].is_null() {
        azure["kind"] = json!("Managed");
    }
    let start = if azure["kind"] == "Managed" { "/subscriptions/" } else { "https://" };
    azure["diskURI"] = json!(format!("{start}{}", text(&azure["diskURI"])));
}

fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::{add_checked_volumes, give_volumes};
    use crate::{GeneratedCluster, Random, Rules, incoming};

    /// A cluster with volumes, and a Pod with some of them.
    fn objects(seed: u64) -> String {
        let (random, rules) = (&mut Random::new(seed), Rules::all());
        let mut cluster = GeneratedCluster::new(random, &rules);
        add_checked_volumes(random, &mut cluster);
        let mut pod = incoming(random, &rules);
        pod["metadata"]["name"] = json!("incoming");
        let claims = give_volumes(random, &cluster, &mut pod);
        format!("{}{pod}{}", cluster.to_json(), json!(claims))
    }

    #[test]
    fn nothing_is_left_that_an_api_server_refuses() {
        let text: String = (0..120).map(objects).collect();
        for refused in [
            r#""allowedTopologies":[{}"#,
            r#""nodeSelectorTerms":[]"#,
            r#""operator":"In","values":[]"#,
            r#""iqn":"q"#,
            r#""diskURI":"u"#,
            r#""name":"kubernetes.io/aws-ebs""#,
            r#""namespace":"drivers""#,
            r#""resources":{}"#,
            r#""volumeClaimTemplate":{"spec":{}}"#,
        ] {
            assert!(!text.contains(refused), "{refused}");
        }
        for tried in ["rbd", "azureDisk", "ephemeral", "selected-node", "claimRef", "local"] {
            assert!(text.contains(tried), "{tried} is never tried");
        }
    }

    #[test]
    fn the_claims_of_a_pod_to_schedule_are_its_own() {
        for seed in 0..40 {
            assert_eq!(objects(seed), objects(seed));
            assert!(!objects(seed).contains(r#""name":"incoming","uid":"another""#), "{seed}");
        }
    }
}
