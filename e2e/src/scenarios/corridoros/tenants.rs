//! The whole life of objects and Pods, managed by a user with the rights of a tenant.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::{bundle_spec, corridor_spec, until_bound, with};
use crate::SCHEDULER_NAME;
use crate::cluster::Cluster;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::custom::{Custom, CustomKind};
use crate::objects::pods::{
    CORRIDOR_GBPS, CORRIDOR_ID, CORRIDOR_REF, FFM_HANDLE, GRANT, MEMORY_BUNDLE_REF, PodState as _,
    PodTemplate, TICKET_HASH, delete_pod,
};
use crate::observe::{PATIENCE, Seen, until, until_pods};
use crate::site::{Site, SiteOptions};

const APP: &str = "app";

/// A tenant creates a Corridor and a MemoryBundle, uses both by a Pod and by a Deployment, and takes
/// everything away again; nothing is left in the daemons. Needs kube-controller-manager, and a namespace
/// in which the tenant may edit.
pub async fn a_tenant_uses_and_leaves(
    cluster: &Cluster,
    tenant: &Client,
    namespace: &str,
) -> Result<()> {
    let site = Site::start(cluster, SiteOptions::default()).await?;
    let attested = with(corridor_spec(), json!({ "attestationRequired": true }));
    let corridor = Custom::create(tenant, CustomKind::Corridor, namespace, "c1", attested).await?;
    let bundle =
        Custom::create(tenant, CustomKind::MemoryBundle, namespace, "b1", bundle_spec()).await?;
    for object in [&corridor, &bundle] {
        object.until_ready().await?;
    }
    let both = PodTemplate::small().refer(&corridor, Some("40")).refer(&bundle, Some("2"));
    both.create(tenant, namespace, "user").await?;
    let user = until_bound(cluster, namespace, "user").await?;
    for result in [CORRIDOR_ID, FFM_HANDLE, TICKET_HASH, GRANT] {
        ensure(user.annotation(result).is_some(), || format!("the Pod has no {result}"))?;
    }
    deploy_and_undeploy(cluster, tenant, &corridor, &bundle).await?;

    delete_pod(tenant, namespace, "user").await?;
    for object in [&corridor, &bundle] {
        object.patch(json!({ "metadata": { "labels": { "leaving": "soon" } } })).await?;
        object.delete().await?;
    }
    for object in [&corridor, &bundle] {
        object.until_gone().await?;
    }
    site.ensure_nothing_left().await
}

/// Other controllers make the Pod and take it away.
async fn deploy_and_undeploy(
    cluster: &Cluster,
    tenant: &Client,
    corridor: &Custom,
    bundle: &Custom,
) -> Result<()> {
    let namespace = &corridor.namespace;
    let deployments: Api<Deployment> = Api::namespaced(tenant.clone(), namespace);
    let doing = format!("creating Deployment {namespace}/{APP}");
    let labels = json!({ "app": APP });
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": APP },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": {
                    CORRIDOR_REF: corridor.reference(),
                    CORRIDOR_GBPS: "1",
                    MEMORY_BUNDLE_REF: bundle.reference(),
                }},
                "spec": {
                    "schedulerName": SCHEDULER_NAME,
                    "containers": [{ "name": "main", "image": "never-pulled:1" }],
                },
            },
        },
    }))
    .doing(doing.clone())?;
    deployments.create(&PostParams::default(), &deployment).await.doing(doing)?;

    let pods = cluster.pods(namespace);
    let is_of_it = |pod: &Pod| pod.labels().get("app").is_some_and(|app| app == APP);
    let bound = |seen: &Seen<Pod>| seen.values().any(|pod| is_of_it(pod) && pod.node().is_some());
    until_pods(&pods, "the Deployment's Pod to be bound", PATIENCE, bound).await?;

    let background = DeleteParams::background();
    let deleting = format!("deleting Deployment {namespace}/{APP}");
    deployments.delete(APP, &background).await.map(drop).doing(deleting)?;
    let replica_sets: Api<ReplicaSet> = Api::namespaced(tenant.clone(), namespace);
    until(&replica_sets, "its ReplicaSet to be collected", PATIENCE, Seen::is_empty).await?;
    let asked_to_end = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
    let all_asked =
        |seen: &Seen<Pod>| seen.values().filter(|pod| is_of_it(pod)).all(|pod| asked_to_end(&pod));
    let seen = until_pods(&pods, "its Pod to be asked to end", PATIENCE, all_asked).await?;
    // There is no kubelet to say that it has ended.
    for pod in seen.values().filter(|pod| is_of_it(pod)) {
        delete_pod(cluster.admin(), namespace, &pod.name_any()).await?;
    }
    Ok(())
}
