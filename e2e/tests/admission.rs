//! The policies of `config/admission/` and the roles of tenants on a real API server: who is refused what,
//! who is not in the way, and whole lives with the policies installed.
//!
//! A new case is a line in `cases/admission.yaml`; a new actor a line in [`ACTORS`], with its rights in
//! `cases/admission-actors.yaml`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use e2e::admission_cases::{Case, Kind, NAMESPACE, binding, merge};
use e2e::binaries::say;
use e2e::control_plane::{ControllerManager, DryRun, config_from};
use e2e::objects::custom::remove_all;
use e2e::observe::{PATIENCE, Seen, until};
use e2e::scenarios::corridoros;
use e2e::{Cluster, ControlPlane, Result, SYSTEM_NAMESPACE};
use http::Method;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::Mutex;

const CASES_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
/// What must never shrink unnoticed.
const CASES_MIN: usize = 100;

const ADMINISTRATOR: &str = "administrator";
const SCHEDULER: &str = "scheduler";
const TENANT: &str = "tenant";

/// Who acts, and as which user. The administrator and the scheduler have credentials of their own.
const ACTORS: [(&str, &str); 9] = [
    (TENANT, "tina"),
    ("viewer", "vera"),
    ("owner", "otto"),
    ("deputy", "dora"),
    ("other-scheduler", "system:kube-scheduler"),
    ("kubelet", "system:node:node-1"),
    ("garbage-collector", "system:serviceaccount:kube-system:generic-garbage-collector"),
    ("namespace-controller", "system:serviceaccount:kube-system:namespace-controller"),
    ("replicaset-controller", "system:serviceaccount:kube-system:replicaset-controller"),
];

const POLICIES: [&str; 7] = [
    "corridor-foreign-scheduler",
    "corridor-leader-fence",
    "corridor-leader-fence-devices",
    "corridor-object-metadata",
    "corridor-object-status",
    "corridor-placed-pods",
    "corridor-result-annotations",
];

/// Objects as people and the scheduler leave them. Those without annotations have no map of them.
async fn create_objects(admin: &Client, scheduler: &Client) -> BTreeMap<String, String> {
    let held = |finalizers: &[&str]| {
        json!({ "metadata": {
            "finalizers": finalizers,
            "annotations": {
                "corridoros.io/allocationIntent": r#"{"key":"k"}"#,
                "corridoros.io/attestationTicket": "genuine",
            },
        }})
    };
    let corridor = held(&["example.com/other", "corridoros.io/corridor-finalizer"]);
    let overridden = json!({ "metadata": { "annotations": { "corridoros.io/override": "true" } } });
    let nothing = json!({});
    // Name, what the administrator and then the scheduler lay over it.
    let objects = [
        ("waiting-pod", &nothing, &nothing),
        ("bound-pod", &nothing, &nothing),
        ("corridor", &nothing, &nothing),
        ("held-corridor", &nothing, &corridor),
        ("open-corridor", &overridden, &corridor),
        ("bundle", &nothing, &nothing),
        ("held-bundle", &nothing, &held(&["corridoros.io/ffm-finalizer"])),
        ("policy", &nothing, &nothing),
    ];
    let mut versions = BTreeMap::new();
    for (name, by_admin, by_scheduler) in objects {
        let (kind, api) = (Kind::of(name).unwrap(), |client: &Client| {
            let resource = Kind::of(name).unwrap().resource();
            Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &resource)
        });
        let mut object = kind.object(name);
        merge(&mut object, by_admin);
        let object = serde_json::from_value(object).unwrap();
        let mut made = api(admin).create(&PostParams::default(), &object).await.unwrap();
        if *by_scheduler != nothing {
            let patch = Patch::Merge(by_scheduler);
            made = api(scheduler).patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
        versions.insert(name.to_owned(), made.metadata.resource_version.unwrap());
    }
    let results = json!({
        "corridoros.io/corridorId": "cor-1",
        "corridoros.io/ffmHandle": "ffm-1",
        "corridoros.io/attestationTicketHash": "aa",
        "corridoros.io/grant": r#"{"v":1}"#,
    });
    let path = format!("{}/bound-pod/binding", Kind::Pod.path());
    let bind = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(binding("bound-pod", &results).to_string().into_bytes());
    scheduler.request_text(bind.unwrap()).await.unwrap();
    versions
}

/// Lets the Lease say so, and returns when the fence has heard of it.
async fn set_lease(admin: &Client, scheduler: &Client, lease: &str) {
    const NAME: &str = "corridor-scheduler";
    let (holder, transitions) = lease.split_once('/').unwrap();
    let transitions: i32 = transitions.parse().unwrap();
    let leases: Api<Lease> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": NAME },
        "spec": { "holderIdentity": holder, "leaseTransitions": transitions },
    });
    let params = PatchParams::apply("e2e").force();
    leases.patch(NAME, &params, &Patch::Apply(object)).await.unwrap();
    let nobody = binding("waiting-pod", &json!({ "corridoros.io/leader": "nobody/0" }));
    let path = format!("{}/waiting-pod/binding", Kind::Pod.path());
    let probe = DryRun::new(Method::POST, path, nobody);
    probe.until_refused(scheduler, &format!("lease is {lease}")).await.unwrap();
}

async fn actors(plane: &ControlPlane) -> BTreeMap<&'static str, Client> {
    let as_user = |(actor, user): (&'static str, &str)| (actor, plane.client_as(user).unwrap());
    let mut clients: BTreeMap<_, _> = ACTORS.into_iter().map(as_user).collect();
    let scheduler = config_from(plane.scheduler_kubeconfig()).await.unwrap();
    clients.insert(SCHEDULER, Client::try_from(scheduler).unwrap());
    clients.insert(ADMINISTRATOR, plane.admin());
    clients
}

/// One plane for all tests of this file, held by one at a time. It ends with the process.
static SHARED: Mutex<Option<(ControlPlane, ControllerManager)>> = Mutex::const_new(None);

async fn run(story: impl AsyncFnOnce(&ControlPlane, &Cluster) -> Result<()>) {
    let mut shared = SHARED.lock().await;
    let (plane, _) = match &mut *shared {
        Some(plane) => &*plane,
        none => &*none.insert(start_guarded_plane().await),
    };
    let cluster = plane.cluster().await.unwrap();
    // Before and not after: what a failed story leaves behind may explain it.
    remove_all(cluster.admin()).await.unwrap();
    cluster.clear().await.unwrap();
    if let Err(problem) = story(plane, &cluster).await {
        panic!("{problem}");
    }
}

async fn start_guarded_plane() -> (ControlPlane, ControllerManager) {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let manager = plane.start_controller_manager().await.unwrap();
    plane.install_admission().await.unwrap();
    let rights = format!("{CASES_DIR}/admission-actors.yaml");
    plane.kubectl(&["apply", "--server-side", "--filename", &rights]).await.unwrap();
    // A controller lets our roles become part of the built-in ones.
    let tenant = plane.client_as("tina").unwrap();
    let corridor = Kind::Corridor;
    let create = DryRun::new(Method::POST, corridor.path(), corridor.object("new"));
    create.until_allowed(&tenant).await.unwrap();
    (plane, manager)
}

#[tokio::test]
async fn everyone_may_do_what_they_should_and_nothing_more() {
    let cases = fs::read_to_string(format!("{CASES_DIR}/admission.yaml")).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_str(&cases).unwrap();
    assert!(cases.len() >= CASES_MIN, "there are only {} cases", cases.len());
    run(async |plane, _| {
        let actors = actors(plane).await;
        let (admin, scheduler) = (&actors[ADMINISTRATOR], &actors[SCHEDULER]);
        let versions = create_objects(admin, scheduler).await;
        let mut lease = None;
        let mut problems = vec![];
        for case in &cases {
            if case.lease != lease {
                let next = case.lease.as_deref().expect("cases without a Lease come first");
                set_lease(admin, scheduler, next).await;
                lease.clone_from(&case.lease);
            }
            let answer = case.write(&versions)?.refusal(&actors[case.actor.as_str()]).await?;
            problems.extend(case.judge(answer.as_deref()));
        }
        let classes: BTreeSet<_> = cases.iter().map(|case| case.class.as_str()).collect();
        say(&format!("{} cases of {classes:?}, {} wrong", cases.len(), problems.len()));
        assert!(problems.is_empty(), "{} wrong:\n{}", problems.len(), problems.join("\n"));
        Ok(())
    })
    .await;
}

/// kube-controller-manager checks the types in the expressions, for every kind that they are about.
#[tokio::test]
async fn expressions_have_no_type_warnings() {
    run(async |plane, _| {
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(plane.admin());
        let checked = |seen: &Seen<ValidatingAdmissionPolicy>| {
            POLICIES.iter().all(|name| {
                let status = seen.get(*name).and_then(|policy| policy.status.as_ref());
                status.is_some_and(|status| status.type_checking.is_some())
            })
        };
        let seen =
            until(&policies, "every policy's types to be checked", PATIENCE, checked).await?;
        assert_eq!(seen.len(), POLICIES.len(), "a policy is missing in POLICIES");
        for (name, policy) in seen {
            let warnings = policy.status.and_then(|it| it.type_checking?.expression_warnings);
            assert_eq!(warnings.unwrap_or_default(), [], "{name}");
        }
        Ok(())
    })
    .await;
}

/// A Pod for another scheduler is created, with a warning that its references have no effect.
#[tokio::test]
async fn a_reference_for_another_scheduler_is_warned_about() {
    run(async |plane, _| {
        let warnings = async |scheduler: &str, annotation: &str| {
            let mut pod = Kind::Pod.object("warned");
            merge(
                &mut pod,
                &json!({
                    "metadata": { "annotations": { annotation: "a/b" } },
                    "spec": { "schedulerName": scheduler },
                }),
            );
            let request = http::Request::post(format!("{}?dryRun=All", Kind::Pod.path()))
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(Body::from(pod.to_string().into_bytes()));
            let reply = plane.admin().send(request.unwrap()).await.unwrap();
            assert!(reply.status().is_success(), "{reply:?}");
            let warnings = reply.headers().get_all(http::header::WARNING).into_iter();
            warnings.map(|it| it.to_str().unwrap_or_default().to_owned()).collect::<String>()
        };
        let told = warnings("default-scheduler", "corridoros.io/corridorRef").await;
        let parts = ["corridoros.io/corridorRef has no effect", "placed by default-scheduler"];
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        assert_eq!(warnings("corridor-scheduler", "corridoros.io/corridorRef").await, "");
        assert_eq!(warnings("default-scheduler", "example.com/any").await, "");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_tenant_uses_what_the_policies_guard() {
    run(async |plane, cluster| {
        let tenant = plane.client_as("tina")?;
        corridoros::a_tenant_uses_and_leaves(cluster, &tenant, NAMESPACE).await
    })
    .await;
}

#[tokio::test]
async fn namespace_deletion_finishes() {
    run(async |_, cluster| corridoros::namespace_deletion_finishes(cluster).await).await;
}
