//! What devices are made of: ResourceSlices, DeviceClasses, ResourceClaims and their templates, the Pods that use
//! them, and what the state of a claim says.

mod reading;
mod removing;

pub use reading::DeviceClaimState;
pub use removing::clear_devices;

use k8s_openapi::api::resource::v1::{
    DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Doing as _, Result};
use crate::objects::pods::PodTemplate;

/// The only request of a claim that has one.
pub const REQUEST: &str = "device";

/// A ResourceSlice to be, the only one of its pool unless it says otherwise.
#[derive(Debug, Clone)]
pub struct SliceTemplate {
    spec: Map<String, Value>,
}

impl SliceTemplate {
    /// The devices of a node, in a pool of its name.
    pub fn on_node(driver: &str, node: &str) -> Self {
        Self::new(driver, node).set("nodeName", json!(node))
    }

    /// Devices that every node reaches.
    pub fn everywhere(driver: &str, pool: &str) -> Self {
        Self::new(driver, pool).set("allNodes", json!(true))
    }

    fn new(driver: &str, pool: &str) -> Self {
        let this = Self { spec: Map::new() }.set("driver", json!(driver));
        this.set("pool", json!({ "name": pool, "generation": 1, "resourceSliceCount": 1 }))
    }

    /// Sets a field of the spec.
    #[must_use]
    pub fn set(mut self, field: &str, value: Value) -> Self {
        self.spec.insert(field.into(), value);
        self
    }

    /// The pool has so many slices.
    #[must_use]
    pub fn one_of(mut self, slices: usize) -> Self {
        self.spec["pool"]["resourceSliceCount"] = json!(slices);
        self
    }

    /// Devices without attributes.
    #[must_use]
    pub fn devices(self, names: &[&str]) -> Self {
        names.iter().fold(self, |this, name| this.device(name, json!({})))
    }

    #[must_use]
    pub fn device(mut self, name: &str, mut fields: Value) -> Self {
        fields["name"] = json!(name);
        let devices = self.spec.entry("devices").or_insert_with(|| json!([]));
        if let Value::Array(devices) = devices {
            devices.push(fields);
        }
        self
    }

    pub async fn create(&self, client: &Client, name: &str) -> Result<ResourceSlice> {
        let object = json!({ "metadata": { "name": name }, "spec": self.spec });
        create(&Api::all(client.clone()), "ResourceSlice", name, object).await
    }

    /// Publishes it anew under the same name.
    pub async fn replace(&self, client: &Client, name: &str) -> Result<()> {
        let slices: Api<ResourceSlice> = Api::all(client.clone());
        let patch = Patch::Merge(json!({ "spec": self.spec }));
        let patched = slices.patch(name, &PatchParams::default(), &patch).await;
        patched.map(drop).doing(format!("publishing ResourceSlice {name} anew"))
    }
}

/// The class of all devices of which the expression is true.
pub async fn create_device_class(client: &Client, name: &str, expression: &str) -> Result<()> {
    let selector = json!({ "cel": { "expression": expression } });
    let object = json!({ "metadata": { "name": name }, "spec": { "selectors": [selector] } });
    let classes: Api<DeviceClass> = Api::all(client.clone());
    create(&classes, "DeviceClass", name, object).await.map(drop)
}

/// The class of all devices of a driver.
pub async fn create_class_of_driver(client: &Client, name: &str, driver: &str) -> Result<()> {
    create_device_class(client, name, &format!("device.driver == '{driver}'")).await
}

/// A ResourceClaim to be, or a template of some.
#[derive(Debug, Clone, Default)]
pub struct DeviceClaim {
    requests: Vec<Value>,
    constraints: Vec<Value>,
}

impl DeviceClaim {
    /// So many devices of a class.
    pub fn of(class: &str, count: usize) -> Self {
        Self::default().exactly(REQUEST, &json!({ "deviceClassName": class, "count": count }))
    }

    /// One device, as these fields of the request say.
    pub fn one(class: &str, mut fields: Value) -> Self {
        fields["deviceClassName"] = json!(class);
        Self::default().exactly(REQUEST, &fields)
    }

    #[must_use]
    pub fn exactly(mut self, name: &str, exactly: &Value) -> Self {
        self.requests.push(json!({ "name": name, "exactly": exactly }));
        self
    }

    /// The first of these classes of which there are so many devices. An alternative has the name of its class up to the
    /// first dot, as names of requests have none.
    #[must_use]
    pub fn first_available(mut self, name: &str, classes: &[(&str, usize)]) -> Self {
        let alternative = |(class, count): &(&str, usize)| {
            let name = class.split('.').next();
            json!({ "name": name, "deviceClassName": class, "count": count })
        };
        let alternatives: Vec<_> = classes.iter().map(alternative).collect();
        self.requests.push(json!({ "name": name, "firstAvailable": alternatives }));
        self
    }

    #[must_use]
    pub fn constraint(mut self, constraint: Value) -> Self {
        self.constraints.push(constraint);
        self
    }

    fn spec(&self) -> Value {
        json!({ "devices": { "requests": self.requests, "constraints": self.constraints } })
    }

    pub async fn create(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<ResourceClaim> {
        let metadata = json!({ "namespace": namespace, "name": name });
        let object = json!({ "metadata": metadata, "spec": self.spec() });
        create(&claims_in(client, namespace), "ResourceClaim", name, object).await
    }

    pub async fn create_template(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<ResourceClaimTemplate> {
        let metadata = json!({ "namespace": namespace, "name": name });
        let object = json!({ "metadata": metadata, "spec": { "spec": self.spec() } });
        let templates = Api::namespaced(client.clone(), namespace);
        create(&templates, "ResourceClaimTemplate", name, object).await
    }
}

/// Where a Pod has a claim from.
#[derive(Debug, Clone, Copy)]
pub enum Uses<'a> {
    Claim(&'a str),
    /// One is made for the Pod.
    Template(&'a str),
}

impl PodTemplate {
    /// Uses devices by these claims.
    #[must_use]
    pub fn devices(self, uses: &[Uses<'_>]) -> Self {
        let entry = |(number, uses): (usize, &Uses<'_>)| {
            let (field, name) = match uses {
                Uses::Claim(name) => ("resourceClaimName", name),
                Uses::Template(name) => ("resourceClaimTemplateName", name),
            };
            json!({ "name": format!("claim-{number}"), field: name })
        };
        let entries: Vec<_> = uses.iter().enumerate().map(entry).collect();
        self.spec("resourceClaims", json!(entries))
    }
}

pub fn claims_in(client: &Client, namespace: &str) -> Api<ResourceClaim> {
    Api::namespaced(client.clone(), namespace)
}

/// Asks for the end of a claim. It is there until nothing uses it.
pub async fn delete_device_claim(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let deleted = claims_in(client, namespace).delete(name, &DeleteParams::default()).await;
    deleted.map(drop).doing(format!("deleting ResourceClaim {namespace}/{name}"))
}

/// Writes fields of a claim's status, as another scheduler, a driver or a controller does.
pub async fn write_claim_status(
    client: &Client,
    namespace: &str,
    name: &str,
    status: Value,
) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    let claims = claims_in(client, namespace);
    let written = claims.patch_status(name, &PatchParams::default(), &patch).await;
    written.map(drop).doing(format!("writing the status of ResourceClaim {namespace}/{name}"))
}

async fn create<K>(api: &Api<K>, kind: &str, name: &str, object: Value) -> Result<K>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let doing = format!("creating {kind} {name}");
    let object = serde_json::from_value(object).doing(doing.clone())?;
    api.create(&PostParams::default(), &object).await.doing(doing)
}
