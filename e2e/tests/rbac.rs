//! What the scheduler's ServiceAccount may do: what it needs, and nothing more. Every verb on every
//! resource that the API server serves is held against the table below, in both directions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::collections::BTreeSet;

use e2e::control_plane::config_from;
use e2e::{ControlPlane, SYSTEM_NAMESPACE};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

const ELSEWHERE: &str = "default";
const LEADER_LEASE: &str = "corridor-scheduler";
/// The ConfigMap.
const SETTINGS: &str = "corridor-scheduler";
const ALL_VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const READING: [&str; 3] = ["get", "list", "watch"];
const FOLLOWING: [&str; 2] = ["list", "watch"];
/// A group must have at least this many, or the comparison has not seen the API.
const RESOURCES_MIN: usize = 80;

/// Where a right holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everywhere,
    /// In the scheduler's own namespace.
    Ours,
    /// There, and for this name alone.
    Named(&'static str),
}
use Scope::{Everywhere, Named, Ours};

type Row = (Scope, &'static str, &'static str, &'static [&'static str]);

const NEEDED: &[Row] = &[
    (Everywhere, "", "pods", &READING),
    (Everywhere, "", "pods", &["delete"]),
    (Everywhere, "", "pods/binding", &["create"]),
    (Everywhere, "", "pods/status", &["patch"]),
    (Everywhere, "", "nodes", &READING),
    (Everywhere, "", "namespaces", &READING),
    (Everywhere, "", "services", &FOLLOWING),
    (Everywhere, "", "replicationcontrollers", &FOLLOWING),
    (Everywhere, "apps", "replicasets", &FOLLOWING),
    (Everywhere, "apps", "statefulsets", &FOLLOWING),
    (Everywhere, "", "persistentvolumes", &READING),
    (Everywhere, "", "persistentvolumes", &["patch"]),
    (Everywhere, "", "persistentvolumeclaims", &READING),
    (Everywhere, "", "persistentvolumeclaims", &["patch"]),
    (Everywhere, "storage.k8s.io", "storageclasses", &FOLLOWING),
    (Everywhere, "storage.k8s.io", "csinodes", &FOLLOWING),
    (Everywhere, "storage.k8s.io", "csidrivers", &FOLLOWING),
    (Everywhere, "storage.k8s.io", "csistoragecapacities", &FOLLOWING),
    (Everywhere, "storage.k8s.io", "volumeattachments", &FOLLOWING),
    (Everywhere, "resource.k8s.io", "resourceslices", &FOLLOWING),
    (Everywhere, "resource.k8s.io", "deviceclasses", &FOLLOWING),
    (Everywhere, "resource.k8s.io", "resourceclaims", &READING),
    (Everywhere, "resource.k8s.io", "resourceclaims", &["patch"]),
    (Everywhere, "resource.k8s.io", "resourceclaims/status", &["patch"]),
    (Everywhere, "policy", "poddisruptionbudgets", &FOLLOWING),
    (Everywhere, "", "events", &["create"]),
    (Everywhere, "corridoros.io", "corridors", &READING),
    (Everywhere, "corridoros.io", "memorybundles", &READING),
    (Everywhere, "corridoros.io", "attestationpolicies", &READING),
    (Everywhere, "corridoros.io", "corridors", &["patch"]),
    (Everywhere, "corridoros.io", "memorybundles", &["patch"]),
    (Everywhere, "corridoros.io", "corridors/status", &["patch"]),
    (Everywhere, "corridoros.io", "memorybundles/status", &["patch"]),
    (Everywhere, "corridoros.io", "attestationpolicies/status", &["patch"]),
    (Everywhere, "authentication.k8s.io", "tokenreviews", &["create"]),
    (Everywhere, "authorization.k8s.io", "subjectaccessreviews", &["create"]),
    (Ours, "coordination.k8s.io", "leases", &READING),
    (Ours, "coordination.k8s.io", "leases", &["create"]),
    (Named(LEADER_LEASE), "coordination.k8s.io", "leases", &["update"]),
    (Named(SETTINGS), "", "configmaps", &READING),
    (Named("corridor-backend-corrd"), "coordination.k8s.io", "leases", &["patch"]),
    (Named("corridor-backend-memqosd"), "coordination.k8s.io", "leases", &["patch"]),
    (Named("corridor-backend-attestd"), "coordination.k8s.io", "leases", &["patch"]),
];

/// Names that rights are asked for by, besides what is served: group, resource and verb.
const NAMES_OF_RIGHTS: [(&str, &str, &str); 1] =
    [("resource.k8s.io", "resourceclaims/binding", "patch")];

/// What Kubernetes allows every authenticated user: questions about itself.
const EVERYONES: &[Row] = &[
    (Everywhere, "authentication.k8s.io", "selfsubjectreviews", &["create"]),
    (Everywhere, "authorization.k8s.io", "selfsubjectaccessreviews", &["create"]),
    (Everywhere, "authorization.k8s.io", "selfsubjectrulesreviews", &["create"]),
];

/// And these paths they may get.
const EVERYONES_PATHS: [&str; 8] =
    ["/.well-known/", "/api", "/healthz", "/livez", "/openapi", "/openid/", "/readyz", "/version"];

/// `verb resource.group`, with a name if it is for that alone.
type Right = String;

fn shown(group: &str, resource: &str, verb: &str, name: Option<&str>) -> Right {
    let name = name.map(|it| format!(" {it}")).unwrap_or_default();
    format!("{verb} {resource}.{group}{name}")
}

fn expected(namespace: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for (scope, group, resource, verbs) in NEEDED.iter().chain(EVERYONES) {
        let name = match scope {
            Named(name) => Some(*name),
            Everywhere | Ours => None,
        };
        if *scope == Everywhere || namespace == SYSTEM_NAMESPACE {
            rights.extend(verbs.iter().map(|verb| shown(group, resource, verb, name)));
        }
    }
    rights
}

/// Group and `resource` or `resource/subresource` of all that is served, in every version.
async fn served(admin: &Client) -> BTreeSet<(String, String)> {
    let mut served = BTreeSet::new();
    for version in admin.list_core_api_versions().await.unwrap().versions {
        let list = admin.list_core_api_resources(&version).await.unwrap();
        served.extend(list.resources.into_iter().map(|it| (String::new(), it.name)));
    }
    for group in admin.list_api_groups().await.unwrap().groups {
        for version in group.versions {
            let list = admin.list_api_group_resources(&version.group_version).await.unwrap();
            served.extend(list.resources.into_iter().map(|it| (group.name.clone(), it.name)));
        }
    }
    served
}

async fn rules(client: &Client, namespace: &str) -> SubjectRulesReviewStatus {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) },
        ..SelfSubjectRulesReview::default()
    };
    let reviews: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    assert!(!status.incomplete, "the API server does not tell everything: {status:?}");
    status
}

/// As RBAC reads a rule.
fn permits(rule: &ResourceRule, group: &str, resource: &str, verb: &str) -> bool {
    let names = |list: &[String], wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
    let of_any = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
    let resources = rule.resources.as_deref().unwrap_or_default();
    names(&rule.verbs, verb)
        && names(rule.api_groups.as_deref().unwrap_or_default(), group)
        && (names(resources, resource) || of_any.is_some_and(|any| resources.contains(&any)))
}

/// Everything that the rules allow of what is served, verb by verb.
fn allowed(rules: &[ResourceRule], served: &BTreeSet<(String, String)>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for (group, resource) in served {
        for verb in ALL_VERBS {
            for rule in rules.iter().filter(|rule| permits(rule, group, resource, verb)) {
                let of_names = rule.resource_names.as_deref().unwrap_or_default();
                if of_names.is_empty() {
                    rights.insert(shown(group, resource, verb, None));
                }
                let right = |name: &String| shown(group, resource, verb, Some(name));
                rights.extend(of_names.iter().map(right));
            }
        }
    }
    rights
}

/// Rights on resources that are neither served nor names of rights, and verbs beyond reading and writing, such as `impersonate`.
fn strange(rules: &[ResourceRule], served: &BTreeSet<(String, String)>) -> Vec<String> {
    let is_strange = |rule: &&ResourceRule| {
        let groups = rule.api_groups.as_deref().unwrap_or_default();
        let resources = rule.resources.as_deref().unwrap_or_default();
        let is_served = |resource: &String| {
            groups.iter().all(|group| served.contains(&(group.clone(), resource.clone())))
        };
        let is_name_of_right = NAMES_OF_RIGHTS.iter().any(|(group, resource, verb)| {
            groups == [*group] && resources == [*resource] && rule.verbs == [*verb]
        });
        !is_name_of_right
            && (!rule.verbs.iter().all(|verb| ALL_VERBS.contains(&verb.as_str()))
                || !resources.iter().all(is_served))
    };
    rules.iter().filter(is_strange).map(|rule| format!("{rule:?}")).collect()
}

async fn scheduler(plane: &ControlPlane) -> Client {
    Client::try_from(config_from(plane.scheduler_kubeconfig()).await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_scheduler_may_do_what_it_needs_and_nothing_more() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let client = scheduler(&plane).await;
    let served = served(&plane.admin()).await;
    assert!(served.len() >= RESOURCES_MIN, "only {} resources were found", served.len());

    for namespace in [SYSTEM_NAMESPACE, ELSEWHERE] {
        let status = rules(&client, namespace).await;
        let (allowed, expected) = (allowed(&status.resource_rules, &served), expected(namespace));
        let lacking: Vec<_> = expected.difference(&allowed).collect();
        assert!(lacking.is_empty(), "in {namespace} it may not, but needs to: {lacking:#?}");
        let too_much: Vec<_> = allowed.difference(&expected).collect();
        assert!(too_much.is_empty(), "in {namespace} it may, but should not: {too_much:#?}");
        let strange = strange(&status.resource_rules, &served);
        assert!(strange.is_empty(), "in {namespace}: {strange:#?}");
        for rule in status.non_resource_rules {
            assert_eq!(rule.verbs, ["get"], "{rule:?}");
            let is_everyones =
                |path: &String| EVERYONES_PATHS.iter().any(|it| path.starts_with(it));
            let paths = rule.non_resource_urls.unwrap_or_default();
            assert!(paths.iter().all(is_everyones), "{paths:?}");
        }
    }
    single_reviews_agree(&client).await;
    reviews_are_not_merely_a_theory(&client).await;
}

/// The rules were read by this test; here the API server judges.
async fn single_reviews_agree(client: &Client) {
    let (ours, leases) = (SYSTEM_NAMESPACE, "leases.coordination.k8s.io");
    let cases = [
        (true, "update", leases, ours, LEADER_LEASE),
        (true, "get", leases, ours, LEADER_LEASE),
        (false, "delete", leases, ours, LEADER_LEASE),
        (false, "patch", leases, ours, LEADER_LEASE),
        (false, "deletecollection", leases, ours, ""),
        (false, "update", leases, ours, "kube-scheduler"),
        (false, "update", leases, ours, ""),
        (true, "patch", leases, ours, "corridor-backend-corrd"),
        (false, "delete", leases, ours, "corridor-backend-corrd"),
        (false, "update", leases, ELSEWHERE, LEADER_LEASE),
        (false, "get", leases, "kube-system", "kube-scheduler"),
        (false, "override", "corridors.corridoros.io", ELSEWHERE, ""),
        (false, "impersonate", "users.", ELSEWHERE, ""),
        (false, "get", "secrets.", ours, ""),
        (true, "create", "tokenreviews.authentication.k8s.io", "", ""),
    ];
    for (expected, verb, resource, namespace, name) in cases {
        let (plural, group) = resource.split_once('.').unwrap();
        let attributes = ResourceAttributes {
            namespace: Some(namespace.into()),
            group: Some(group.into()),
            resource: Some(plural.into()),
            verb: Some(verb.into()),
            name: Some(name.into()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        let is_allowed = answer.status.unwrap().allowed;
        assert_eq!(is_allowed, expected, "{verb} {resource} {name:?} in {namespace:?}");
    }
}

async fn reviews_are_not_merely_a_theory(client: &Client) {
    let pods: Api<Pod> = Api::all(client.clone());
    pods.list(&ListParams::default()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), ELSEWHERE);
    assert_forbidden(
        pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await.map(drop),
    );
    let secrets: Api<Secret> = Api::all(client.clone());
    assert_forbidden(secrets.list(&ListParams::default()).await);

    // The leader takes the Lease and renews it; it may not delete it, nor renew Leases of others.
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let params = PostParams::default();
    for (name, is_ours) in [(LEADER_LEASE, true), ("somebody-elses", false)] {
        let lease = json!({ "metadata": { "name": name }, "spec": { "holderIdentity": "a" } });
        let mut lease =
            leases.create(&params, &serde_json::from_value(lease).unwrap()).await.unwrap();
        lease.spec.as_mut().unwrap().holder_identity = Some("b".to_owned());
        let renewed = leases.replace(name, &params, &lease).await;
        match renewed {
            Ok(_) => assert!(is_ours, "{name} is not ours to renew"),
            Err(refused) if is_ours => panic!("{name} cannot be renewed: {refused}"),
            Err(refused) => assert_forbidden::<Lease>(Err(refused)),
        }
        let patch = Patch::Merge(json!({ "spec": { "holderIdentity": "c" } }));
        assert_forbidden(leases.patch(name, &PatchParams::default(), &patch).await);
        assert_forbidden(leases.delete(name, &DeleteParams::default()).await.map(drop));
    }
}

fn assert_forbidden<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) {
    match outcome {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{status:?}"),
        other => panic!("not forbidden: {other:?}"),
    }
}
