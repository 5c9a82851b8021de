//! The users of a corridor, and the end of its last use.

use kube::api::DynamicObject;
use serde_json::Value;

use super::{TEAM, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::corridors::{Corridor, corridors_in};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::observe::{PATIENCE, until};

/// The status of a corridor names its users. A corridor that is being released takes no new Pods, is not
/// drained while a Pod uses it, and is drained when the last one is gone.
pub async fn releasing_corridor_drains(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    let _lease = cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    let _scheduler = cluster.start_scheduler().await?;

    let forty = PodTemplate::small().corridor(&corridor, "40");
    forty.create(cluster.admin(), TEAM, "user").await?;
    until_bound(cluster, TEAM, "user").await?;
    let status = until_status(cluster, "in use by one Pod", |status| {
        status["inUse"] == 1 && condition(status, "InUse") == "True"
    })
    .await?;
    let user = &status["inUseBy"][0];
    ensure(user["namespace"] == TEAM && user["name"] == "user", || {
        format!("inUseBy names {user}, not {TEAM}/user")
    })?;
    ensure(status["phase"] == "Ready" && status["achievableGbps"] == 100, || {
        format!("what the controller wrote must stay: {status}")
    })?;

    corridor.set_status("Releasing", 100).await?;
    until_status(cluster, "not drained", |status| condition(status, "Drained") == "False").await?;
    forty.create(cluster.admin(), TEAM, "late").await?;
    let message = until_held(cluster, TEAM, "late").await?;
    ensure(message.contains("is being released"), || format!("{message:?} gives another reason"))?;

    delete_pod(cluster.admin(), TEAM, "user").await?;
    until_status(cluster, "drained", |status| {
        condition(status, "Drained") == "True" && status["inUse"] == 0
    })
    .await
    .map(drop)
}

async fn until_status(
    cluster: &Cluster,
    awaited: &str,
    done: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let corridors = corridors_in(cluster.admin(), TEAM);
    let status = |object: &DynamicObject| object.data["status"].clone();
    let awaited = format!("Corridor {TEAM}/c1 to be {awaited}");
    let seen = until(&corridors, &awaited, PATIENCE, |seen| {
        seen.values().any(|object| done(&status(object)))
    })
    .await?;
    Ok(seen.values().map(status).find(|status| done(status)).unwrap_or_default())
}

fn condition<'a>(status: &'a Value, name: &str) -> &'a str {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut named = conditions.filter(|condition| condition["type"] == name);
    named.next().and_then(|condition| condition["status"].as_str()).unwrap_or_default()
}
