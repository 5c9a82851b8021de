//! Pods: templates to make them, and what their state says.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use crate::SCHEDULER_NAME;
use crate::error::{Doing as _, Result};
use crate::objects::bundles::Bundle;
use crate::objects::corridors::Corridor;
use crate::objects::custom::{Custom, CustomKind};
use crate::objects::volumes::{ClaimTemplate, HOSTNAME};

pub const CORRIDOR_REF: &str = "corridoros.io/corridorRef";
pub const CORRIDOR_GBPS: &str = "corridoros.io/corridorGbps";
pub const CORRIDOR_ID: &str = "corridoros.io/corridorId";
pub const MEMORY_BUNDLE_REF: &str = "corridoros.io/memoryBundleRef";
pub const MEMORY_BUNDLE_GBS: &str = "corridoros.io/memoryBundleGBs";
pub const FFM_HANDLE: &str = "corridoros.io/ffmHandle";
pub const TICKET_HASH: &str = "corridoros.io/attestationTicketHash";
pub const FAILURE_POLICY: &str = "corridoros.io/failurePolicy";
pub const GRANT: &str = "corridoros.io/grant";

/// A Pod to be, for our scheduler unless it says otherwise.
#[derive(Debug, Clone)]
pub struct PodTemplate {
    annotations: Map<String, Value>,
    cpu: String,
    memory: String,
    spec: Map<String, Value>,
}

impl PodTemplate {
    pub fn new(cpu: &str, memory: &str) -> Self {
        let mut spec = Map::new();
        spec.insert("schedulerName".into(), json!(SCHEDULER_NAME));
        Self { annotations: Map::new(), cpu: cpu.into(), memory: memory.into(), spec }
    }

    /// Small enough to fit anywhere: for scenarios that are not about CPU and memory.
    pub fn small() -> Self {
        Self::new("100m", "64Mi")
    }

    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.into(), json!(value));
        self
    }

    /// Sets a field of the spec.
    #[must_use]
    pub fn spec(mut self, field: &str, value: Value) -> Self {
        self.spec.insert(field.into(), value);
        self
    }

    /// Asks for so many Gbps of a corridor.
    #[must_use]
    pub fn corridor(self, corridor: &Corridor, gbps: &str) -> Self {
        self.annotation(CORRIDOR_REF, &corridor.reference()).annotation(CORRIDOR_GBPS, gbps)
    }

    /// Asks for so many GB/s of a bundle.
    #[must_use]
    pub fn bundle(self, bundle: &Bundle, gbs: &str) -> Self {
        self.annotation(MEMORY_BUNDLE_REF, &bundle.reference()).annotation(MEMORY_BUNDLE_GBS, gbs)
    }

    /// Refers to a Corridor or a MemoryBundle, and asks for so much of it if anything is given.
    #[must_use]
    pub fn refer(self, object: &Custom, amount: Option<&str>) -> Self {
        let (reference, key) = match object.kind {
            CustomKind::MemoryBundle => (MEMORY_BUNDLE_REF, MEMORY_BUNDLE_GBS),
            CustomKind::Corridor | CustomKind::AttestationPolicy => (CORRIDOR_REF, CORRIDOR_GBPS),
        };
        let this = self.annotation(reference, &object.reference());
        match amount {
            Some(amount) => this.annotation(key, amount),
            None => this,
        }
    }

    /// Uses these claims of its namespace, each as the volume of the same name.
    #[must_use]
    pub fn claims(self, names: &[&str]) -> Self {
        names.iter().fold(self, |this, name| {
            this.volume(json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }))
        })
    }

    /// Has a claim made for itself that ends with it.
    #[must_use]
    pub fn ephemeral(self, name: &str, claim: &ClaimTemplate) -> Self {
        let template = json!({ "spec": claim.spec() });
        self.volume(json!({ "name": name, "ephemeral": { "volumeClaimTemplate": template } }))
    }

    fn volume(mut self, volume: Value) -> Self {
        let volumes = self.spec.entry("volumes").or_insert_with(|| json!([]));
        if let Value::Array(volumes) = volumes {
            volumes.push(volume);
        }
        self
    }

    /// Ends at once when it is deleted: there is no kubelet to end it gracefully.
    #[must_use]
    pub fn without_grace(self) -> Self {
        self.spec("terminationGracePeriodSeconds", json!(0))
    }

    /// May be placed only on this node.
    #[must_use]
    pub fn only_on(self, node: &str) -> Self {
        self.spec("nodeSelector", json!({ HOSTNAME: node }))
    }

    /// Both the class and the number: the API server wants them to agree, and a model of it without
    /// admission knows only the number.
    #[must_use]
    pub fn priority(self, class: &str, value: i32) -> Self {
        self.spec("priorityClassName", json!(class)).spec("priority", json!(value))
    }

    pub async fn create(&self, client: &Client, namespace: &str, name: &str) -> Result<Pod> {
        let doing = format!("creating Pod {namespace}/{name}");
        let pod = serde_json::from_value(self.object(namespace, name)).doing(doing.clone())?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        pods.create(&PostParams::default(), &pod).await.doing(doing)
    }

    fn object(&self, namespace: &str, name: &str) -> Value {
        let mut spec = self.spec.clone();
        let requests = json!({ "cpu": self.cpu, "memory": self.memory });
        spec.entry("containers").or_insert_with(|| {
            json!([{
                "name": "main",
                "image": "never-pulled:1",
                "resources": { "requests": requests },
            }])
        });
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": namespace,
                "name": name,
                "annotations": self.annotations,
            },
            "spec": spec,
        })
    }
}

/// Deletes a Pod at once: there is no kubelet to end it gracefully.
pub async fn delete_pod(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let now = DeleteParams::default().grace_period(0);
    pods.delete(name, &now).await.map(drop).doing(format!("deleting Pod {namespace}/{name}"))
}

/// What a Pod's state says about its scheduling.
pub trait PodState {
    /// The Node it is bound to.
    fn node(&self) -> Option<&str>;
    /// The condition PodScheduled.
    fn scheduled_condition(&self) -> Option<&PodCondition>;
    /// Why it waits, if the scheduler has said so.
    fn waiting_message(&self) -> Option<&str>;
    fn annotation(&self, key: &str) -> Option<&str>;
    fn uid_str(&self) -> &str;
}

impl PodState for Pod {
    fn node(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
    }

    fn scheduled_condition(&self) -> Option<&PodCondition> {
        let conditions = self.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == "PodScheduled")
    }

    fn waiting_message(&self) -> Option<&str> {
        let condition = self.scheduled_condition()?;
        (condition.status == "False").then_some(condition.message.as_deref()?)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn uid_str(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }
}
