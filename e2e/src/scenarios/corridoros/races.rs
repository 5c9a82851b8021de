//! Deletions that come while a Pod is being bound.

use std::time::Duration;

use futures::future::{Either, select, try_join};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;

use super::{TEAM, count_from, create_corridor, site, until_bound};
use crate::binaries::say;
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::custom::Custom;
use crate::objects::pods::{CORRIDOR_ID, PodState as _, PodTemplate, delete_pod};
use crate::site::{Site, SiteOptions};

const RACES: usize = 20;
/// Side by side, so that passes and binds of others come in between.
const RACING_AT_ONCE: usize = 5;
/// Around the time that it takes to create a Pod and bind it: the one is asked for so much later
/// than the other, from the Pod first to the deletion first.
const HEAD_STARTS: usize = 16;
const HEAD_START_STEP: Duration = Duration::from_millis(2);
/// So many of them are the deletion's.
const HEAD_STARTS_OF_DELETION: usize = 4;

/// Whichever wins, no Pod is ever bound to a corridor that was released: either the Pod is bound and
/// the Corridor waits for it with its allocation, or the Corridor is gone and the Pod is not bound.
pub async fn bind_races_delete(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let races = count_from("CORRIDOR_E2E_RACES", RACES)?;
    let pods_won: Vec<bool> = stream::iter(0..races)
        .map(|number| race(&site, number))
        .buffer_unordered(RACING_AT_ONCE)
        .try_collect()
        .await?;
    let won = pods_won.iter().filter(|won| **won).count();
    say(&format!("{races} deletions raced a bind: the bind came first {won} times"));
    site.ensure_nothing_left().await
}

/// Returns whether the Pod was bound first.
async fn race(site: &Site, number: usize) -> Result<bool> {
    let name = format!("race-{number}");
    let corridor = create_corridor(site, &name).await?;
    corridor.until_ready().await?;
    let whole = PodTemplate::small().refer(&corridor, Some("100"));
    let steps = number % HEAD_STARTS;
    // Not to wait for anything: to meet the bind at another point each time.
    let pause = async |steps: usize| {
        sleep(HEAD_START_STEP * u32::try_from(steps).unwrap_or(0)).await;
    };
    let creating = async {
        pause(HEAD_STARTS_OF_DELETION.saturating_sub(steps)).await;
        whole.create(site.admin(), TEAM, &name).await
    };
    let deleting = async {
        pause(steps.saturating_sub(HEAD_STARTS_OF_DELETION)).await;
        corridor.delete().await
    };
    try_join(creating, deleting).await?;

    let bound = Box::pin(until_bound(&site.cluster, TEAM, &name));
    let gone = Box::pin(corridor.until_gone());
    match select(bound, gone).await {
        Either::Left((pod, _)) => {
            ensure_served(site, &corridor, &pod?).await?;
            delete_pod(site.admin(), TEAM, &name).await?;
            corridor.until_gone().await?;
            Ok(true)
        }
        Either::Right((gone, _)) => {
            gone?;
            ensure_not_bound(site, &name).await?;
            Ok(false)
        }
    }
}

/// While the Pod is there, its corridor is its own.
async fn ensure_served(site: &Site, corridor: &Custom, pod: &Pod) -> Result<()> {
    let id = pod.annotation(CORRIDOR_ID).unwrap_or_default();
    corridor
        .until("waiting for its user", |it| {
            it["status"]["phase"] == "Releasing" && it["status"]["inUse"] == 1
        })
        .await?;
    let held = site.allocations_of(corridor).await?;
    let is_served = held.len() == 1 && held[0]["corridor_id"] == id;
    ensure(is_served, || format!("a Pod is bound with {id:?}, corrd has {held:?}"))
}

/// A Pod created later is bound: by then a late bind of the racer would have shown.
async fn ensure_not_bound(site: &Site, name: &str) -> Result<()> {
    let after = format!("{name}-after");
    PodTemplate::small().create(site.admin(), TEAM, &after).await?;
    until_bound(&site.cluster, TEAM, &after).await?;
    let pod = site.cluster.pods(TEAM).get(name).await.doing(format!("reading Pod {name}"))?;
    if let Some(node) = pod.node() {
        return Err(Error::Violated(format!(
            "Pod {name} is bound to {node} with {:?}, and its Corridor is gone",
            pod.annotation(CORRIDOR_ID)
        )));
    }
    delete_pod(site.admin(), TEAM, name).await?;
    delete_pod(site.admin(), TEAM, &after).await
}
