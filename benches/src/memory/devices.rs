//! The devices of a workload, and the claims that are made of templates for its Pods, as kube-controller-manager does.

use std::collections::HashMap;

use driver::DeviceObjects;
use e2e::{Error, Result};
use engine::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use model::{PodClaim, PodClaimSource, TemplateClaim};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An entry of `spec.resourceClaims` of a Pod.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PodClaimFragment {
    name: String,
    resource_claim_template_name: String,
}

#[derive(Debug, Default)]
pub struct Devices {
    objects: DeviceObjects,
    templates: HashMap<String, ResourceClaimSpec>,
}

impl Devices {
    /// What the engine is told of the object. `None`: it is of another kind.
    pub fn events(&mut self, object: &Value) -> Result<Option<Vec<Event>>> {
        Ok(Some(match object["kind"].as_str() {
            Some("DeviceClass") => self.objects.class(&read(object)?),
            Some("ResourceSlice") => self.objects.slice(&read(object)?),
            Some("ResourceClaimTemplate") => {
                let ResourceClaimTemplate { metadata, spec } = read(object)?;
                self.templates.insert(metadata.name.unwrap_or_default(), spec.spec);
                Vec::new()
            }
            _ => return Ok(None),
        }))
    }

    /// The claims of a Pod, which come before it.
    pub fn make_claims(&mut self, pod: &Value) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let of: ObjectReference = read(&pod["metadata"])?;
        let (namespace, name) = (of.namespace.unwrap_or_default(), of.name.unwrap_or_default());
        for entry in pod["spec"]["resourceClaims"].as_array().into_iter().flatten() {
            let PodClaimFragment { name: entry, resource_claim_template_name: template } =
                read(entry)?;
            let spec = self.templates.get(&template);
            let spec = spec.ok_or_else(|| Error::malformed("reading a Pod", &template))?.clone();
            let claim = claim_name(&name, &entry);
            let owner = OwnerReference {
                uid: name.clone(),
                controller: Some(true),
                ..OwnerReference::default()
            };
            let metadata = ObjectMeta {
                uid: Some(claim.clone()),
                name: Some(claim),
                namespace: Some(namespace.clone()),
                resource_version: Some("1".to_owned()),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            };
            events.extend(self.objects.claim(&ResourceClaim { metadata, spec, status: None }));
        }
        Ok(events)
    }
}

/// What the Pod says of its claims once they are made.
pub fn pod_claims(pod: &str, fragments: &[PodClaimFragment]) -> Vec<PodClaim> {
    let claim = |it: &PodClaimFragment| PodClaim {
        name: it.name.as_str().into(),
        source: PodClaimSource::Template(TemplateClaim::Made(claim_name(pod, &it.name).into())),
    };
    fragments.iter().map(claim).collect()
}

/// Names are unique in a workload, so they serve as UIDs too.
fn claim_name(pod: &str, entry: &str) -> String {
    format!("{pod}-{entry}")
}

fn read<T: DeserializeOwned>(object: &Value) -> Result<T> {
    let doing = "reading an object of the workload";
    T::deserialize(object).map_err(|problem| Error::malformed(doing, problem))
}
