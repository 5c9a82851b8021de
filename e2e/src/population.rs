//! A cluster of a size that people have, with objects as large as theirs: Nodes of some 10 KB and Pods of some
//! 5 KB, the Pods of Deployments, running.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::error::{Doing as _, Error, Result};

/// Enough to keep the API server busy.
const WRITING_AT_ONCE: usize = 32;
/// Pods of one Deployment.
const REPLICAS: usize = 250;
const ZONES: usize = 3;
pub const NAMESPACE: &str = "population";

/// Creates `node-0` to `node-<count - 1>`.
pub async fn create_nodes(client: &Client, count: usize) -> Result<()> {
    stream::iter(0..count)
        .map(|number| async move { post(client, "/api/v1/nodes", &node(number)).await })
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect()
        .await
}

/// Creates so many Pods, spread over so many Nodes.
pub async fn create_bound_pods(client: &Client, count: usize, nodes: usize) -> Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    stream::iter(0..count)
        .map(|number| {
            let mut pod = pod(number);
            pod["spec"]["nodeName"] = json!(node_name(number % nodes.max(1)));
            let path = &path;
            async move { post(client, path, &pod).await }
        })
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect()
        .await
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<()> {
    let doing = || format!("POST {path}");
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("Content-Type", "application/json")
        .body(object.to_string().into_bytes())
        .map_err(|problem| Error::malformed(doing(), problem))?;
    client.request_text(request).await.doing(doing()).map(drop)
}

fn node_name(number: usize) -> String {
    format!("node-{number}")
}

/// As a kubelet and a cloud's controller describe it.
pub fn node(number: usize) -> Value {
    let name = node_name(number);
    let image = |index: usize| {
        json!({
            "names": [
                format!("registry.example/team/service-{index}@sha256:{:064x}", index * 7919),
                format!("registry.example/team/service-{index}:v1.{index}"),
            ],
            "sizeBytes": 40_000_000 + index * 1_000_003,
        })
    };
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": format!("Kubelet{kind}"),
            "message": format!("kubelet says that {kind} is {status} at the moment"),
        })
    };
    let amounts = json!({
        "cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let zone = format!("zone-{}", number % ZONES);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": "m.8xlarge",
                "topology.kubernetes.io/region": "region-1", "topology.kubernetes.io/zone": zone,
                "example.com/rack": format!("rack-{}", number % 40), "example.com/pool": "general",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "example.com/inventory": "x".repeat(2_200),
            },
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": format!("cloud:///{zone}/i-{number:08x}")},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [
                condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True"),
            ],
            "addresses": [
                {"type": "InternalIP", "address": format!("10.1.{}.{}", number / 250, number % 250)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "machineID": format!("{number:032x}"), "systemUUID": format!("{number:032x}"),
                "bootID": format!("{number:032x}"), "kernelVersion": "6.1.0", "osImage": "Debian",
                "containerRuntimeVersion": "containerd://2", "kubeletVersion": "v1.36.4",
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
            "images": (0..30).map(image).collect::<Vec<_>>(),
        },
    })
}

/// One of a Deployment, for kube-scheduler unless the caller changes that.
pub fn pod(number: usize) -> Value {
    let app = format!("service-{}", number / REPLICAS);
    let hash = format!("{:010x}", (number / REPLICAS) * 104_729);
    let variable = |index: usize| json!({"name": format!("SERVICE_SETTING_{index}"), "value": format!("value-{index}-{}", "v".repeat(40))});
    let container = |name: &str, cpu: &str, memory: &str| {
        json!({
            "name": name,
            "image": format!("registry.example/team/{app}-{name}:v1.2.3"),
            "env": (0..14).map(variable).collect::<Vec<_>>(),
            "args": ["--listen=0.0.0.0:8080", "--log-format=json", "--shutdown-grace=30s"],
            "ports": [{"name": "http", "containerPort": 8080}],
            "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/service"}],
            "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}, "periodSeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": format!("{app}-{hash}-{number:05x}"),
            "labels": {
                "app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": hash, "tier": "backend",
            },
            "annotations": {
                "prometheus.io/scrape": "true", "prometheus.io/port": "8080",
                "example.com/config-hash": format!("{number:064x}"),
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-{hash}"),
                "uid": "00000000-0000-4000-8000-000000000000", "controller": true,
            }],
        },
        "spec": {
            "containers": [container("main", "250m", "256Mi"), container("proxy", "50m", "64Mi")],
            "volumes": [{"name": "config", "configMap": {"name": app}}],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "terminationGracePeriodSeconds": 30,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_as_large_as_they_should_be() {
        let bytes = |object: &Value| object.to_string().len();
        assert!((9_000..12_000).contains(&bytes(&node(7))), "{}", bytes(&node(7)));
        // The API server adds defaults, identity and managed fields.
        assert!((4_000..5_500).contains(&bytes(&pod(7))), "{}", bytes(&pod(7)));
    }
}
