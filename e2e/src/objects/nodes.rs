//! Nodes without kubelets: objects that say they are ready and what they have.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::error::{Doing as _, Result};

/// What a Node offers.
#[derive(Debug, Clone)]
pub struct NodeTemplate {
    cpu: String,
    memory: String,
    pods: u32,
    labels: Vec<(String, String)>,
    taints: Vec<Value>,
}

impl NodeTemplate {
    /// A Node with so much CPU and memory, and room for 110 Pods, which is a kubelet's default.
    pub fn new(cpu: &str, memory: &str) -> Self {
        Self { cpu: cpu.into(), memory: memory.into(), pods: 110, labels: vec![], taints: vec![] }
    }

    #[must_use]
    pub fn pods(mut self, pods: u32) -> Self {
        self.pods = pods;
        self
    }

    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.into(), value.into()));
        self
    }

    /// Adds a taint with the effect NoSchedule.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str) -> Self {
        self.taints.push(json!({ "key": key, "value": value, "effect": "NoSchedule" }));
        self
    }

    /// Creates the Node, then writes its status as a kubelet does.
    pub async fn create(&self, client: &Client, name: &str) -> Result<Node> {
        let doing = format!("creating Node {name}");
        let nodes: Api<Node> = Api::all(client.clone());
        let node = serde_json::from_value(self.object(name)).doing(doing.clone())?;
        nodes.create(&PostParams::default(), &node).await.doing(doing.clone())?;
        let status = json!({ "status": self.status() });
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.doing(doing)
    }

    fn object(&self, name: &str) -> Value {
        let mut labels: serde_json::Map<String, Value> =
            self.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        labels.insert("kubernetes.io/hostname".into(), json!(name));
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": name, "labels": labels },
            "spec": { "taints": self.taints },
        })
    }

    fn status(&self) -> Value {
        let amounts =
            json!({ "cpu": self.cpu, "memory": self.memory, "pods": self.pods.to_string() });
        json!({
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        })
    }
}
