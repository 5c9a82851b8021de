//! The end of Corridors and MemoryBundles: released, and only when no Pod uses them any more.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::Value;

use super::{
    TEAM, bind_user, bundle_spec, corridor_spec, create_bundle, create_corridor, ensure_contains,
    ensure_told, ensure_told_once, site, until_bound, until_held,
};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, FORCE_RELEASE, condition, is_true};
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::observe::{PATIENCE, Seen, until, until_pods};
use crate::site::{Site, SiteOptions};

const DOOMED: &str = "doomed";

/// Idle objects go at once. Objects in use wait, say `Releasing` and name their users, keep their
/// allocation and take no new Pods; when the Pod is gone, they are released and gone.
pub async fn deletion_waits_for_users(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let idle = [create_corridor(&site, "idle").await?, create_bundle(&site, "idle").await?];
    let used = [create_corridor(&site, "used").await?, create_bundle(&site, "used").await?];
    for (object, finalizer) in
        idle.iter().zip(["corridoros.io/corridor-finalizer", "corridoros.io/ffm-finalizer"])
    {
        let ready = object.until_ready().await?;
        let finalizers = &ready["metadata"]["finalizers"];
        ensure(finalizers.as_array().is_some_and(|all| all.contains(&finalizer.into())), || {
            format!("{} has the finalizers {finalizers}, not {finalizer}", object.title())
        })?;
        object.delete().await?;
        object.until_gone().await?;
        let left = site.allocations_of(object).await?;
        ensure(left.is_empty(), || format!("{} is gone, its {left:?} not", object.title()))?;
    }
    for object in &used {
        object.until_ready().await?;
    }
    let both = PodTemplate::small().refer(&used[0], Some("1")).refer(&used[1], Some("1"));
    both.create(site.admin(), TEAM, "user").await?;
    until_bound(cluster, TEAM, "user").await?;
    for object in &used {
        object.delete().await?;
        ensure_waits_and_says_so(&site, object).await?;
    }
    delete_pod(site.admin(), TEAM, "user").await?;
    for object in &used {
        object.until_gone().await?;
    }
    site.ensure_nothing_left().await
}

async fn ensure_waits_and_says_so(site: &Site, object: &Custom) -> Result<()> {
    let says_so = |it: &Value| {
        it["status"]["phase"] == "Releasing"
            && condition(it, "Ready")["reason"] == "Releasing"
            && is_true(it, "InUse")
            && condition(it, "Drained")["status"] == "False"
    };
    let waiting = object.until("Releasing, InUse and not Drained", says_so).await?;
    let why = condition(&waiting, "Ready")["message"].as_str().unwrap_or_default();
    ensure(why.contains("Pod"), || format!("it should say what it waits for: {why:?}"))?;
    ensure(waiting["status"]["inUseBy"][0]["name"] == "user", || {
        format!("inUseBy is {}, which does not name the Pod", waiting["status"]["inUseBy"])
    })?;
    let late = format!("late-{}", object.kind.name().to_lowercase());
    let one = PodTemplate::small().refer(object, Some("1"));
    one.create(site.admin(), TEAM, &late).await?;
    let message = until_held(&site.cluster, TEAM, &late).await?;
    ensure_contains(&message, &["is being released"])?;
    let held = site.allocations_of(object).await?;
    ensure(held.len() == 1, || format!("{} is in use, and has {held:?}", object.title()))
}

/// `force-release` releases at once what is in use, whether it comes before or after the deletion, and an Event says
/// so and names who used it.
pub async fn force_release_does_not_wait(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let corridor = create_corridor(&site, "c1").await?;
    let bundle = create_bundle(&site, "b1").await?;
    for object in [&corridor, &bundle] {
        object.until_ready().await?;
        bind_user(&site, object, "1", &format!("user-{}", object.name)).await?;
    }
    corridor.delete().await?;
    corridor.until_phase("Releasing").await?;
    corridor.annotate(FORCE_RELEASE, "true").await?;
    corridor.until_gone().await?;
    bundle.annotate(FORCE_RELEASE, "true").await?;
    bundle.delete().await?;
    bundle.until_gone().await?;
    // Whoever runs there learns why the path is gone.
    for (object, user) in [(&corridor, "team-a/user-c1"), (&bundle, "team-a/user-b1")] {
        let words = ["released by its annotation, though Pods use it", user];
        ensure_told(&site, object, "ForcedRelease", "Warning", &words).await?;
        ensure_told_once(&site, object, "ForcedRelease").await?;
    }
    site.ensure_nothing_left().await
}

/// With kube-controller-manager running, a namespace with everything in it goes, and nothing is left
/// in the daemons.
pub async fn namespace_deletion_finishes(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    cluster.ensure_namespace(DOOMED).await?;
    let admin = site.admin();
    let corridor = site.create(CustomKind::Corridor, DOOMED, "c1", corridor_spec()).await?;
    let bundle = site.create(CustomKind::MemoryBundle, DOOMED, "b1", bundle_spec()).await?;
    let policy = serde_json::json!({ "allowedTenants": [TEAM], "pqcRequired": false });
    site.create(CustomKind::AttestationPolicy, DOOMED, "p1", policy).await?;
    corridor.until_ready().await?;
    bundle.until_ready().await?;
    let both = PodTemplate::small().refer(&corridor, Some("1")).refer(&bundle, Some("1"));
    both.create(admin, DOOMED, "user").await?;
    until_bound(cluster, DOOMED, "user").await?;
    // From elsewhere: the objects stay in use while their own namespace is emptied.
    both.create(admin, TEAM, "tenant").await?;
    until_bound(cluster, TEAM, "tenant").await?;

    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let deleting = format!("deleting the namespace {DOOMED}");
    namespaces.delete(DOOMED, &DeleteParams::default()).await.map(drop).doing(deleting)?;
    play_kubelet(cluster).await?;
    corridor.until_phase("Releasing").await?;
    delete_pod(admin, TEAM, "tenant").await?;
    let gone = |seen: &Seen<Namespace>| !seen.contains_key(DOOMED);
    let outcome = until(&namespaces, "the namespace to be gone", PATIENCE, gone).await;
    if let Err(problem) = outcome {
        let left = namespaces.get(DOOMED).await.doing("reading the namespace")?;
        return Err(Error::Violated(format!("{problem}\nit says {:?}", left.status)));
    }
    site.ensure_nothing_left().await
}

/// A Pod on a Node without a kubelet ends only when the test ends it.
async fn play_kubelet(cluster: &Cluster) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.admin().clone(), DOOMED);
    let asked_to_end =
        |seen: &Seen<Pod>| seen.values().all(|pod| pod.metadata.deletion_timestamp.is_some());
    until_pods(&pods, "every Pod to be asked to end", PATIENCE, asked_to_end).await?;
    let left = pods.list(&ListParams::default()).await.doing("listing Pods that should end")?;
    for pod in left.iter().filter(|pod| pod.node().is_some()) {
        delete_pod(cluster.admin(), DOOMED, pod.metadata.name.as_deref().unwrap_or_default())
            .await?;
    }
    Ok(())
}
