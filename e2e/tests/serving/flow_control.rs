//! `config/flowcontrol/`: which of the API server's lines the scheduler's calls stand in, by what it says
//! in the headers of its answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::ControlPlane;
use e2e::control_plane::{CONFIG_DIR, config_from};
use http::{Method, Request};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::time::sleep;

/// The API server reads new schemas from its own watch.
const HEEDED_TIME_MAX: Duration = Duration::from_secs(30);

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/corridor-system/leases";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CORRIDORS: &str = "/apis/corridoros.io/v1alpha1/namespaces/default/corridors";

/// Names of the schema and level that an answer tells by UID.
struct Lines {
    names: BTreeMap<String, String>,
}

impl Lines {
    async fn read(admin: &Client) -> Self {
        let mut names = BTreeMap::new();
        let schemas: Api<FlowSchema> = Api::all(admin.clone());
        for schema in schemas.list(&ListParams::default()).await.unwrap() {
            names.insert(schema.uid().unwrap(), schema.name_any());
        }
        let levels: Api<PriorityLevelConfiguration> = Api::all(admin.clone());
        for level in levels.list(&ListParams::default()).await.unwrap() {
            names.insert(level.uid().unwrap(), level.name_any());
        }
        Self { names }
    }

    /// Schema and level of a call. Nothing is written: what the call would do is tried out only, and
    /// whether it succeeds does not matter; it has stood in its line by then.
    async fn of(&self, client: &Client, method: &Method, path: &str) -> (String, String) {
        let body = match method {
            &Method::PATCH => json!({ "metadata": { "labels": { "a": "b" } } }),
            _ => json!({}),
        };
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{path}?dryRun=All"))
            .header("content-type", "application/merge-patch+json")
            .body(body.to_string().into_bytes().into())
            .unwrap();
        let reply = client.send(request).await.unwrap();
        let named = |header: &str| {
            let uid = reply.headers().get(header).map(|it| it.to_str().unwrap().to_owned());
            uid.and_then(|uid| self.names.get(&uid).cloned()).unwrap_or_default()
        };
        (named("x-kubernetes-pf-flowschema-uid"), named("x-kubernetes-pf-prioritylevel-uid"))
    }
}

#[tokio::test]
async fn bindings_and_leases_have_lines_of_their_own() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let folder = format!("{CONFIG_DIR}/flowcontrol");
    plane.kubectl(&["apply", "--server-side", "--filename", &folder]).await.unwrap();
    let admin = plane.admin();
    let lines = Lines::read(&admin).await;
    let config = config_from(plane.scheduler_kubeconfig()).await.unwrap();
    let scheduler = Client::try_from(config).unwrap();

    let ours = |schema: &str, level: &str| (schema.to_owned(), level.to_owned());
    let writes = ours("corridor-writes", "workload-high");
    let leases = ours("corridor-leases", "leader-election");
    let leader = format!("{LEASES}/corridor-scheduler");
    let deadline = Instant::now() + HEEDED_TIME_MAX;
    let binding = format!("{PODS}/p/binding");
    // The later of the two by name is heeded last, if they are not heeded at once.
    while lines.of(&scheduler, &Method::POST, &binding).await != writes {
        assert!(Instant::now() < deadline, "the schemas are not heeded");
        sleep(Duration::from_millis(100)).await;
    }
    for (method, path, line) in [
        (Method::GET, leader.clone(), Some(&leases)),
        (Method::POST, LEASES.to_owned(), Some(&leases)),
        (Method::PUT, leader.clone(), Some(&leases)),
        (Method::PATCH, format!("{LEASES}/corridor-backend-corrd"), Some(&leases)),
        (Method::POST, binding.clone(), Some(&writes)),
        (Method::PATCH, format!("{PODS}/p/status"), Some(&writes)),
        (Method::DELETE, format!("{PODS}/p"), Some(&writes)),
        (Method::PATCH, format!("{CORRIDORS}/c"), Some(&writes)),
        (Method::PATCH, format!("{CORRIDORS}/c/status"), Some(&writes)),
        // The line of every account.
        (Method::GET, PODS.to_owned(), None),
        (Method::POST, "/api/v1/namespaces/default/events".to_owned(), None),
        (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(), None),
        (Method::PUT, LEASES.replace("corridor-system", "default") + "/l", None),
    ] {
        let everyones = ours("service-accounts", "workload-low");
        let found = lines.of(&scheduler, &method, &path).await;
        assert_eq!(&found, line.unwrap_or(&everyones), "{method} {path}");
        let others = lines.of(&admin, &method, &path).await;
        assert!(
            !others.0.starts_with("corridor-"),
            "an administrator's {method} {path}: {others:?}"
        );
        assert!(!others.0.is_empty(), "{method} {path}");
    }
}
