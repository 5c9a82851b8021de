//! What the scheduler's ServiceAccount may do: what it needs, and nothing more.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::control_plane::config_from;
use e2e::{ControlPlane, SYSTEM_NAMESPACE};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};

const ELSEWHERE: &str = "default";
const READING: [&str; 3] = ["get", "list", "watch"];
const FOLLOWING: [&str; 2] = ["list", "watch"];
const CHANGING: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Verbs on `resource` or `resource/subresource` of a group.
struct Right {
    namespace: &'static str,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
}

const fn right(
    namespace: &'static str,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { namespace, group, resource, verbs }
}

const NEEDED: [Right; 22] = [
    right(ELSEWHERE, "", "pods", &READING),
    right(ELSEWHERE, "", "pods", &["delete"]),
    right(ELSEWHERE, "", "pods/binding", &["create"]),
    right(ELSEWHERE, "", "pods/status", &["patch"]),
    right(ELSEWHERE, "", "nodes", &READING),
    right(ELSEWHERE, "", "namespaces", &READING),
    right(ELSEWHERE, "", "services", &FOLLOWING),
    right(ELSEWHERE, "", "replicationcontrollers", &FOLLOWING),
    right(ELSEWHERE, "apps", "replicasets", &FOLLOWING),
    right(ELSEWHERE, "apps", "statefulsets", &FOLLOWING),
    right(ELSEWHERE, "policy", "poddisruptionbudgets", &FOLLOWING),
    right(ELSEWHERE, "", "events", &["create"]),
    right(ELSEWHERE, "corridoros.io", "corridors", &READING),
    right(ELSEWHERE, "corridoros.io", "memorybundles", &READING),
    right(ELSEWHERE, "corridoros.io", "attestationpolicies", &READING),
    right(ELSEWHERE, "corridoros.io", "corridors", &["patch"]),
    right(ELSEWHERE, "corridoros.io", "memorybundles", &["patch"]),
    right(ELSEWHERE, "corridoros.io", "corridors/status", &["patch"]),
    right(ELSEWHERE, "corridoros.io", "memorybundles/status", &["patch"]),
    right(ELSEWHERE, "corridoros.io", "attestationpolicies/status", &["patch"]),
    right(SYSTEM_NAMESPACE, "coordination.k8s.io", "leases", &["create"]),
    right(SYSTEM_NAMESPACE, "coordination.k8s.io", "leases", &READING),
];

/// Pods go one by one, by name and UID.
const CHANGING_PODS: [&str; 4] = ["create", "update", "patch", "deletecollection"];

const REFUSED: [Right; 29] = [
    right(ELSEWHERE, "", "pods", &CHANGING_PODS),
    right(SYSTEM_NAMESPACE, "", "pods", &CHANGING_PODS),
    right(ELSEWHERE, "", "services", &CHANGING),
    right(ELSEWHERE, "", "replicationcontrollers", &CHANGING),
    right(ELSEWHERE, "apps", "replicasets", &CHANGING),
    right(ELSEWHERE, "apps", "statefulsets", &CHANGING),
    right(ELSEWHERE, "apps", "deployments", &READING),
    right(ELSEWHERE, "policy", "poddisruptionbudgets", &CHANGING),
    right(ELSEWHERE, "", "pods/status", &["update"]),
    right(ELSEWHERE, "", "pods/eviction", &["create"]),
    right(ELSEWHERE, "", "pods/exec", &["create", "get"]),
    right(ELSEWHERE, "", "nodes", &CHANGING),
    right(ELSEWHERE, "", "nodes/status", &CHANGING),
    right(ELSEWHERE, "", "secrets", &READING),
    right(SYSTEM_NAMESPACE, "", "secrets", &READING),
    right(SYSTEM_NAMESPACE, "", "serviceaccounts/token", &["create"]),
    right(ELSEWHERE, "", "configmaps", &READING),
    right(ELSEWHERE, "", "namespaces", &CHANGING),
    right(ELSEWHERE, "", "events", &READING),
    right(ELSEWHERE, "corridoros.io", "corridors", &["create", "update", "delete"]),
    right(ELSEWHERE, "corridoros.io", "corridors/status", &["update"]),
    right(ELSEWHERE, "corridoros.io", "attestationpolicies/status", &["update"]),
    right(ELSEWHERE, "corridoros.io", "memorybundles", &["create", "update", "delete"]),
    right(ELSEWHERE, "corridoros.io", "attestationpolicies", &CHANGING),
    right(ELSEWHERE, "corridoros.io", "corridors", &["override"]),
    right(ELSEWHERE, "coordination.k8s.io", "leases", &READING),
    right("kube-system", "coordination.k8s.io", "leases", &READING),
    right(SYSTEM_NAMESPACE, "coordination.k8s.io", "leases", &["update", "patch", "delete"]),
    right(ELSEWHERE, "rbac.authorization.k8s.io", "clusterrolebindings", &CHANGING),
];

async fn may(client: &Client, right: &Right, verb: &str) -> bool {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (right.resource, None),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(right.namespace.into()),
                group: Some(right.group.into()),
                resource: Some(resource.into()),
                subresource: subresource.map(Into::into),
                verb: Some(verb.into()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

/// The rights that are not as they should be.
async fn wrong(client: &Client, rights: &[Right], expected: bool) -> Vec<String> {
    let mut wrong = vec![];
    for right in rights {
        for verb in right.verbs {
            if may(client, right, verb).await != expected {
                let Right { namespace, group, resource, .. } = right;
                wrong.push(format!("{verb} {resource}.{group} in {namespace}"));
            }
        }
    }
    wrong
}

#[tokio::test]
async fn the_scheduler_may_do_what_it_needs_and_nothing_more() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let config = config_from(plane.scheduler_kubeconfig()).await.unwrap();
    let client = Client::try_from(config).unwrap();

    let lacking = wrong(&client, &NEEDED, true).await;
    assert!(lacking.is_empty(), "it may not, but needs to: {lacking:#?}");
    let too_much = wrong(&client, &REFUSED, false).await;
    assert!(too_much.is_empty(), "it may, but should not: {too_much:#?}");

    // The reviews are not merely a theory.
    let pods: Api<Pod> = Api::all(client.clone());
    pods.list(&ListParams::default()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), ELSEWHERE);
    assert_forbidden(
        pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await.map(drop),
    );
    let secrets: Api<Secret> = Api::all(client);
    assert_forbidden(secrets.list(&ListParams::default()).await);
}

fn assert_forbidden<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) {
    match outcome {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{status:?}"),
        other => panic!("not forbidden: {other:?}"),
    }
}
