//! The three steps of `docs/install.md` with the real kubectl, and then what the Deployment would start: two
//! replicas with its flags and the ConfigMap, under the roles and policies that the steps brought.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::fs;

use e2e::control_plane::servers::free_port;
use e2e::control_plane::{CONFIG_DIR, PlaneOptions};
use e2e::objects::custom::{Custom, CustomKind};
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::observe::{PATIENCE, Seen, until_pods};
use e2e::scheduler_process::scheduler_binary;
use e2e::{ControlPlane, DaemonsProcess, SYSTEM_NAMESPACE, SchedulerProcess};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

const NAME: &str = "corridor-scheduler";
const TEAM: &str = "team-a";

/// The ConfigMap with the places filled in that the file asks people to fill in.
async fn fill_in(maps: &Api<ConfigMap>, daemons: &DaemonsProcess) {
    let keys = fs::read_to_string(daemons.trusted_keys()).unwrap();
    let keys: Value = serde_saphyr::from_str(&keys).unwrap();
    let mut config = maps.get(NAME).await.unwrap();
    for text in config.data.iter_mut().flat_map(|data| data.values_mut()) {
        let mut document: Value = serde_saphyr::from_str(text).unwrap();
        if document["kind"] == "CorridorConfiguration" {
            for daemon in ["corrdUrl", "memqosdUrl", "attestdUrl"] {
                assert!(document["backends"][daemon].is_string(), "{text}");
                document["backends"][daemon] = json!(daemons.url());
            }
            document["attestation"] = keys["attestation"].clone();
        }
        *text = document.to_string();
    }
    maps.replace(NAME, &PostParams::default(), &config).await.unwrap();
}

/// The Deployment's flags, with addresses of this machine.
fn flags(deployment: &Deployment) -> Vec<String> {
    let template = deployment.spec.clone().unwrap().template.spec.unwrap();
    let mut arguments = template.containers[0].args.clone().unwrap().into_iter();
    assert_eq!(arguments.next().as_deref(), Some("run"));
    let here = |argument: String| match argument.split_once('=') {
        Some(("--https", _)) => format!("--https=127.0.0.1:{}", free_port().unwrap()),
        _ => argument,
    };
    // As it is without the flag; the fixture would say otherwise.
    arguments.map(here).chain(["--leader-elect=true".to_owned()]).collect()
}

#[tokio::test]
async fn three_steps_and_a_pod_with_both_references_is_bound() {
    let plane = ControlPlane::start().await.unwrap();
    for step in ["crd/", "deploy/operator.yaml", "deploy/config.yaml"] {
        plane.kubectl(&["apply", "--filename", &format!("{CONFIG_DIR}/{step}")]).await.unwrap();
    }
    let wait = ["wait", "--for", "condition=Established", "crd", "--all", "--timeout=60s"];
    plane.kubectl(&wait).await.unwrap();
    let admin = plane.admin();
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
    let deployments: Api<Deployment> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
    let deployment = deployments.get(NAME).await.unwrap();

    let daemons = DaemonsProcess::start(&scheduler_binary().await.unwrap(), &[]).await.unwrap();
    fill_in(&maps, &daemons).await;
    let mut replicas = vec![];
    for _ in 0..deployment.spec.as_ref().unwrap().replicas.unwrap() {
        let flags = flags(&deployment);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let access = plane.scheduler_kubeconfig();
        replicas.push(SchedulerProcess::start(access, &flags).await.unwrap());
    }
    assert_eq!(replicas.len(), 2);

    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await.unwrap();
    let spec = json!({ "lanes": 4, "lambdaNm": [1550], "minGbps": 100 });
    let corridor = Custom::create(&admin, CustomKind::Corridor, TEAM, "c1", spec).await.unwrap();
    let spec = json!({ "bytes": 1 << 30, "latencyClass": "T2", "bandwidthFloorGBs": 10 });
    let bundle = Custom::create(&admin, CustomKind::MemoryBundle, TEAM, "b1", spec).await.unwrap();
    let both = PodTemplate::small().refer(&corridor, Some("40")).refer(&bundle, Some("4"));
    both.create(&admin, TEAM, "both").await.unwrap();
    let pod = cluster.until_pod(TEAM, "both", "bound", |pod| pod.node().is_some()).await.unwrap();
    for result in ["grant", "corridorId", "ffmHandle", "leader", "attestationTicketHash"] {
        let value = pod.annotation(&format!("corridoros.io/{result}"));
        assert!(value.is_some_and(|value| !value.is_empty()), "{result} is missing: {pod:?}");
    }
}

/// The Deployment's Pods are system-cluster-critical, and not in kube-system.
#[tokio::test]
async fn its_pods_are_made_where_a_quota_guards_the_priority_classes_of_the_system() {
    let plane = ControlPlane::start_with(PlaneOptions { guards_classes: true }).await.unwrap();
    let _controllers = plane.start_controller_manager().await.unwrap();
    for step in ["crd/", "deploy/operator.yaml"] {
        plane.kubectl(&["apply", "--filename", &format!("{CONFIG_DIR}/{step}")]).await.unwrap();
    }
    let admin = plane.admin();
    let pods: Api<Pod> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
    let both_replicas = |seen: &Seen<Pod>| seen.len() == 2;
    let made = until_pods(&pods, "the Deployment's Pods", PATIENCE, both_replicas).await;
    if let Err(problem) = made {
        let arguments = ["get", "events", "--namespace", SYSTEM_NAMESPACE];
        panic!("{problem}\n{}", plane.kubectl(&arguments).await.unwrap());
    }
    // The guard is there: elsewhere such a Pod is refused.
    let elsewhere =
        PodTemplate::small().spec("priorityClassName", json!("system-cluster-critical"));
    let refusal = elsewhere.create(&admin, "default", "critical").await.unwrap_err().to_string();
    assert!(refusal.contains("insufficient quota to match these scopes"), "{refusal}");
}
