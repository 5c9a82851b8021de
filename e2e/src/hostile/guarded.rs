//! The same writes where `config/admission/` is installed, as dry runs by a user with every right in its
//! namespaces.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::case::{Case, Words};
use crate::admission_cases::merge;
use crate::control_plane::{ControlPlane, config_from};
use crate::error::{Doing as _, Error, Result};
use crate::objects::custom::CustomKind;

const NAMESPACE: &str = "attacked";
const GUEST: &str = "attacked-guest";
const MALLORY: &str = "mallory";
const GRANT: &str = r#"{"v":1,"corridor":{"uid":"c","milliGbps":60000}}"#;

/// A plane with the policies, and things worth attacking.
#[derive(Debug)]
pub struct Guarded {
    plane: ControlPlane,
    words: Words,
}

impl Guarded {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start().await?;
        plane.install_crds().await?;
        plane.install_admission().await?;
        for namespace in [NAMESPACE, GUEST] {
            plane.kubectl(&["create", "namespace", namespace]).await?;
            let rights = [
                "create",
                "rolebinding",
                MALLORY,
                "--clusterrole",
                "cluster-admin",
                "--user",
                MALLORY,
                "--namespace",
                namespace,
            ];
            plane.kubectl(&rights).await?;
        }
        let scheduler = Client::try_from(config_from(plane.scheduler_kubeconfig()).await?)
            .doing("making a client of the scheduler")?;
        let uid = create_objects(&plane.admin(), &scheduler).await?;
        create_pods(&plane.admin(), &scheduler).await?;
        let words = Words(vec![
            ("namespace", NAMESPACE.into()),
            ("guest", GUEST.into()),
            ("reference", format!("{NAMESPACE}/object")),
            ("uid", uid),
            ("handle", "cor-1".into()),
            ("grant", GRANT.into()),
            ("ticket", "genuine".into()),
            ("expired_ticket", "expired".into()),
            ("neighbours_reference", format!("{GUEST}/object")),
            ("neighbours_uid", "another".into()),
            ("neighbours_ticket", "another's".into()),
        ]);
        Ok(Self { plane, words })
    }

    /// What is wrong with the answers, if anything.
    pub async fn judge(&self, case: &Case) -> Result<Option<String>> {
        let mallory = self.plane.client_as(MALLORY)?;
        let mut refusals = vec![];
        for step in &case.steps {
            let refusal = case.write(step, &self.words).refusal(&mallory, true).await?;
            // What an earlier step would have made or unmade, had it not been forgotten.
            let is_of_order =
                |it: &String| it.contains("not found") || it.contains("already exists");
            refusals.extend(refusal.filter(|it| !is_of_order(it)));
        }
        let is_right = match case.with_policies.as_str() {
            "allowed" => refusals.is_empty(),
            "refused" => !refusals.is_empty(),
            other => return Err(Error::malformed("reading a case", other)),
        };
        let problem = || format!("{}: the answers are {refusals:?}", case.title());
        Ok((!is_right).then(problem))
    }
}

/// A Corridor and a MemoryBundle as the controllers leave them. Returns the Corridor's UID.
async fn create_objects(admin: &Client, scheduler: &Client) -> Result<String> {
    let mut uid = String::new();
    let rows = [
        (CustomKind::MemoryBundle, "corridoros.io/ffm-finalizer", true),
        (CustomKind::Corridor, "corridoros.io/corridor-finalizer", false),
    ];
    for (kind, finalizer, bundle) in rows {
        let case = case_of(bundle);
        let object = json!({
            "apiVersion": "corridoros.io/v1alpha1",
            "kind": kind.name(),
            "metadata": { "name": "object", "namespace": NAMESPACE },
            "spec": case.spec(),
        });
        let object: DynamicObject = serde_json::from_value(object).doing("making an object")?;
        let api = kind.objects_in(admin, NAMESPACE);
        let made = api.create(&PostParams::default(), &object).await.doing("making an object")?;
        let held = json!({ "metadata": {
            "finalizers": [finalizer],
            "annotations": {
                "corridoros.io/allocationIntent": r#"{"key":"k"}"#,
                "corridoros.io/attestationTicket": "genuine",
            },
        }});
        let api = kind.objects_in(scheduler, NAMESPACE);
        let patch = Patch::Merge(held);
        api.patch("object", &PatchParams::default(), &patch).await.doing("holding an object")?;
        uid = made.metadata.uid.unwrap_or_default();
    }
    let (api, policy) = (CustomKind::AttestationPolicy.objects_in(admin, NAMESPACE), policy());
    let policy = serde_json::from_value(policy).doing("making a policy")?;
    api.create(&PostParams::default(), &policy).await.doing("making a policy")?;
    Ok(uid)
}

fn policy() -> Value {
    json!({
        "apiVersion": "corridoros.io/v1alpha1",
        "kind": "AttestationPolicy",
        "metadata": { "name": "policy", "namespace": NAMESPACE },
        "spec": { "pqcRequired": false },
    })
}

/// A row that is only asked for its object.
fn case_of(bundle: bool) -> Case {
    let row = json!({
        "class": "", "name": "", "bundle": bundle, "steps": [], "with_policies": "allowed",
        "without": "no effect", "after_restart": "no effect",
    });
    match serde_json::from_value(row) {
        Ok(case) => case,
        Err(problem) => unreachable!("a row without steps can be read: {problem}"),
    }
}

async fn create_pods(admin: &Client, scheduler: &Client) -> Result<()> {
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(admin.clone(), NAMESPACE);
    for name in ["victim", "waiter"] {
        let mut pod = json!({
            "metadata": { "name": name, "annotations": {
                "corridoros.io/corridorRef": format!("{NAMESPACE}/object"),
            }},
            "spec": { "containers": [{ "name": "main", "image": "never-pulled:1" }] },
        });
        merge(&mut pod, &json!({ "spec": { "schedulerName": "nobody" } }));
        let pod = serde_json::from_value(pod).doing("making a Pod")?;
        pods.create(&PostParams::default(), &pod).await.doing("making a Pod")?;
    }
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": "victim", "namespace": NAMESPACE, "annotations": results() },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "node-1" },
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/victim/binding");
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(binding.to_string().into_bytes())
        .map_err(|problem| Error::malformed("binding a Pod", problem))?;
    scheduler.request_text(request).await.map(drop).doing("binding a Pod")
}

fn results() -> Value {
    json!({
        "corridoros.io/corridorId": "cor-1",
        "corridoros.io/grant": GRANT,
    })
}
