//! The chart by a real Helm, and what it renders before a real API server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use e2e::ControlPlane;
use e2e::binaries::{Helm, monitoring_crds};
use e2e::control_plane::CONFIG_DIR;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

const NAMESPACE: [&str; 2] = ["--namespace", "corridor-system"];

/// The sets of values that are tried: each switch on and off, each kind of backend.
const VALUES: [(&str, &str); 4] = [
    ("as it is", ""),
    (
        "everything on",
        "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true,\
         https.tlsSecretName=corridor-https,backends.tls.enabled=true,\
         attestation.trustedKeys[0].kid=a,attestation.trustedKeys[0].alg=ML-DSA-65,\
         attestation.trustedKeys[0].publicKeyPem=pem,\
         quotas[0].namespace=team-a,quotas[0].gbps=400,nodeSelector.disk=ssd,\
         tolerations[0].operator=Exists,image.tag=x",
    ),
    (
        "everything off",
        "admission.enabled=false,flowcontrol.enabled=false,podDisruptionBudget.enabled=false,\
         networkPolicy.enabled=false,priorityClassName=,backends.kind=none,replicas=1",
    ),
    ("simulated", "backends.kind=simulated,failurePolicy=FailFast,networkPolicy.daemonPorts=null"),
];

fn chart() -> String {
    format!("{CONFIG_DIR}/helm/corridor")
}

/// What the chart makes of these values, with its custom resource definitions.
fn render(helm: &Helm, home: &Path, values: &str) -> e2e::Result<String> {
    let chart = chart();
    let mut arguments = vec!["template", "corridor", &chart, "--include-crds"];
    arguments.extend(NAMESPACE);
    if !values.is_empty() {
        arguments.extend(["--set", values]);
    }
    helm.run(home, &arguments)
}

/// Kind, namespace and name.
type Key = [String; 3];

fn objects(yaml: &str) -> BTreeMap<Key, Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let key = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        [text(&object["kind"]), text(&meta["namespace"]), text(&meta["name"])]
    };
    documents.into_iter().filter(Value::is_object).map(|it| (key(&it), it)).collect()
}

#[test]
fn helm_has_nothing_to_say_against_the_chart() {
    let (helm, home) = (Helm::locate().unwrap(), tempfile::tempdir().unwrap());
    for (name, values) in VALUES {
        let chart = chart();
        let mut arguments = vec!["lint", "--strict", &chart];
        arguments.extend(NAMESPACE);
        if !values.is_empty() {
            arguments.extend(["--set", values]);
        }
        let told = helm.run(home.path(), &arguments).unwrap();
        let is_clean = !told.contains("[WARNING]") && !told.contains("[ERROR]");
        assert!(is_clean && told.contains("0 chart(s) failed"), "{name}: {told}");
    }
}

#[test]
fn what_cannot_work_is_refused_before_it_is_installed() {
    let (helm, home) = (Helm::locate().unwrap(), tempfile::tempdir().unwrap());
    for (values, words) in [
        ("replicas=0", "replicas"),
        ("backends.kind=magic", "backends/kind"),
        ("noSuchValue=1", "noSuchValue"),
        ("leaderElection.leaseDuration=15", "leaseDuration"),
    ] {
        let refusal = render(&helm, home.path(), values).unwrap_err().to_string();
        assert!(refusal.contains(words), "{values}: {refusal}");
    }
    let elsewhere = ["template", "corridor", &chart(), "--namespace", "default"];
    let refusal = helm.run(home.path(), &elsewhere).unwrap_err().to_string();
    assert!(refusal.contains("--namespace corridor-system"), "{refusal}");
}

/// Settings as what they mean, and without the one annotation that only the chart has.
fn in_meaning(mut object: Value) -> Value {
    if object["kind"] == "ConfigMap" {
        for text in object["data"].as_object_mut().unwrap().values_mut() {
            *text = serde_saphyr::from_str(text.as_str().unwrap()).unwrap();
        }
    }
    if object["kind"] == "Deployment" {
        let metadata = object["spec"]["template"]["metadata"].as_object_mut().unwrap();
        assert!(
            metadata.remove("annotations").is_some_and(|it| !it.is_null()) || metadata.len() == 1
        );
    }
    object
}

#[test]
fn the_chart_renders_what_kubectl_installs() {
    let (helm, home) = (Helm::locate().unwrap(), tempfile::tempdir().unwrap());
    let rendered = objects(&render(&helm, home.path(), "").unwrap());
    let config = Path::new(CONFIG_DIR);
    let mut installed = BTreeMap::new();
    for file in ["deploy/operator.yaml", "deploy/config.yaml"] {
        installed.extend(objects(&fs::read_to_string(config.join(file)).unwrap()));
    }
    for entry in fs::read_dir(config.join("crd")).unwrap() {
        installed.extend(objects(&fs::read_to_string(entry.unwrap().path()).unwrap()));
    }
    // Helm makes the namespace itself.
    installed.retain(|[kind, ..], _| kind != "Namespace");
    let names = |objects: &BTreeMap<Key, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&rendered), names(&installed));
    for (key, object) in rendered {
        assert_eq!(in_meaning(object), in_meaning(installed[&key].clone()), "{key:?}");
    }
}

/// The Pod that the Deployment would make.
fn pod_of(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "one", "namespace": "corridor-system", "labels": template["metadata"]["labels"],
        },
        "spec": template["spec"],
    })
}

/// Installs them, and waits until the API server serves what they define.
async fn install(plane: &ControlPlane, crds: &[PathBuf]) {
    for crd in crds {
        let path = crd.to_string_lossy();
        plane.kubectl(&["apply", "--server-side", "--filename", &path]).await.unwrap();
    }
    let wait = ["wait", "--for", "condition=Established", "crd", "--all", "--timeout=60s"];
    plane.kubectl(&wait).await.unwrap();
}

#[tokio::test]
async fn the_api_server_takes_what_the_chart_renders() {
    let (helm, crds) =
        spawn_blocking(|| (Helm::locate().unwrap(), monitoring_crds().unwrap())).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let plane = ControlPlane::start().await.unwrap();
    install(&plane, &crds).await;

    let file = home.path().join("rendered.yaml");
    let file = file.to_string_lossy();
    for (name, values) in VALUES {
        let rendered = render(&helm, home.path(), values).unwrap();
        fs::write(&*file, &rendered).unwrap();
        let tried = ["apply", "--dry-run=server", "--filename", &file];
        let told = plane.kubectl(&tried).await.unwrap();
        assert_eq!(told.lines().count(), objects(&rendered).len(), "{name}: {told}");
        assert!(told.lines().all(|line| line.contains("(server dry run)")), "{name}: {told}");
    }

    let rendered = render(&helm, home.path(), VALUES[1].1).unwrap();
    fs::write(&*file, &rendered).unwrap();
    plane.kubectl(&["apply", "--filename", &file]).await.unwrap();
    // Its namespace takes Pods under PodSecurity `restricted` only, and this is one.
    let deployed =
        ["get", "deployment", "corridor-scheduler", NAMESPACE[0], NAMESPACE[1], "-ojson"];
    let deployment: Value = serde_json::from_str(&plane.kubectl(&deployed).await.unwrap()).unwrap();
    let mut pod = pod_of(&deployment);
    let create = ["create", "--dry-run=server", "--filename", &file];
    fs::write(&*file, pod.to_string()).unwrap();
    plane.kubectl(&create).await.unwrap();
    pod["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
    fs::write(&*file, pod.to_string()).unwrap();
    let refusal = plane.kubectl(&create).await.unwrap_err().to_string();
    assert!(refusal.contains("restricted"), "{refusal}");
}

#[tokio::test]
async fn the_api_server_takes_the_kustomize_base_and_the_service_monitor() {
    let crds = spawn_blocking(|| monitoring_crds().unwrap()).await.unwrap();
    let plane = ControlPlane::start().await.unwrap();
    install(&plane, &crds).await;
    let base = format!("{CONFIG_DIR}/deploy");
    plane.kubectl(&["apply", "--dry-run=server", "--kustomize", &base]).await.unwrap();
    let monitor = format!("{CONFIG_DIR}/deploy/servicemonitor.yaml");
    let told = plane.kubectl(&["apply", "--dry-run=server", "--filename", &monitor]).await.unwrap();
    assert!(told.contains("servicemonitor.monitoring.coreos.com/corridor-scheduler"), "{told}");
    // What is made of the folders is what is kept.
    let made = plane.kubectl(&["kustomize", &format!("{base}/operator")]).await.unwrap();
    let kept = fs::read_to_string(format!("{base}/operator.yaml")).unwrap();
    assert_eq!(
        objects(&made),
        objects(&kept),
        "config/deploy/operator.yaml is old: `just operator`"
    );
}
