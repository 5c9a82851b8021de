//! A Pod that does not exist, read from the body of a question.

use serde_json::Value;

use crate::profile_names::ProfileNames;
use crate::translate;
use crate::wire::WirePod;

/// What a Pod asks for, read as if it had just been created for this scheduler: by the profile it names, if
/// that is one of ours.
pub(crate) fn hypothetical_pod(
    pod: &[u8],
    profiles: &ProfileNames,
) -> Result<model::PodSpec, String> {
    let mut object: Value = serde_json::from_slice(pod).map_err(|error| error.to_string())?;
    drop_nulls(&mut object);
    if object["spec"]["containers"].as_array().is_none_or(Vec::is_empty) {
        return Err("spec.containers must name a container".to_owned());
    }
    let mut wire: WirePod = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let metadata = &mut wire.metadata;
    metadata.namespace.get_or_insert_with(|| "default".to_owned());
    metadata.name.get_or_insert_with(|| "what-if".to_owned());
    metadata.uid = Some("what-if".to_owned());
    metadata.resource_version = Some("0".to_owned());
    metadata.deletion_timestamp = None;
    if !profiles.has(&wire.spec.scheduler_name) {
        profiles.first().clone_into(&mut wire.spec.scheduler_name);
    }
    wire.spec.node_name.clear();
    wire.spec.scheduling_gates.clear();
    wire.status.phase.clear();
    let pod = translate::pod(&wire, profiles).ok_or("it has no identity")?;
    Ok(model::PodSpec::clone(&pod.spec))
}

/// A field without a value is absent to the API server, too: in YAML `volumes:` alone is one.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_without_a_value_is_as_if_it_were_not_there() {
        let pod = br#"{"metadata": {"labels": null}, "spec": {"volumes": null, "containers": [
            {"name": "c", "env": null, "resources": {"requests": {"cpu": "1"}}}]}}"#;
        let spec = hypothetical_pod(pod, &ProfileNames::default()).unwrap();
        assert!(spec.volumes.is_empty());
        assert_eq!(spec.scheduling.requests.asked.cpu_milli, 1000);
    }

    #[test]
    fn a_hypothetical_pod_is_read_like_a_real_one() {
        let pod = br#"{"metadata":{"namespace":"a","annotations":{
            "corridoros.io/corridorRef":"a/c1","corridoros.io/corridorGbps":"40"}},
            "spec":{"nodeName":"taken","containers":[{"name":"m"}]}}"#;
        let spec = hypothetical_pod(pod, &ProfileNames::default()).unwrap();
        assert_eq!(spec.needs.len(), 1);
        assert_eq!(&*spec.namespace, "a");
        for nonsense in [&b"[]"[..], b"{}", b"", br#"{"spec":{"containers":[]}}"#, b"\xff"] {
            assert!(hypothetical_pod(nonsense, &ProfileNames::default()).is_err());
        }
    }
}
