//! Corridors and bundles whose status only the controllers write.

use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::Value;

use super::{TEAM, until_bound};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::bundles::{Bundle, bundles_in};
use crate::objects::corridors::{Corridor, corridors_in};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{CORRIDOR_ID, FFM_HANDLE, PodState as _, PodTemplate, delete_pod};
use crate::observe::{PATIENCE, until};

/// Created, allocated by the daemons, Ready; a Pod with both references is bound with both handles;
/// deletion waits for the Pod, then releases and is complete.
pub async fn corridor_and_bundle_live_and_end(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_namespace(crate::SYSTEM_NAMESPACE).await?;
    cluster.create_nodes(3, &NodeTemplate::new("4", "16Gi")).await?;
    let _scheduler = cluster.start_scheduler_with_daemons().await?;
    let corridor = Corridor::create(cluster.admin(), TEAM, "c1", 100).await?;
    let bundle = Bundle::create(cluster.admin(), TEAM, "b1", 8).await?;
    let both = PodTemplate::small().corridor(&corridor, "40").bundle(&bundle, "2");
    both.create(cluster.admin(), TEAM, "user").await?;

    let corridors = corridors_in(cluster.admin(), TEAM);
    let bundles = bundles_in(cluster.admin(), TEAM);
    let allocated =
        until_object(&corridors, "Ready", |it| it["status"]["phase"] == "Ready").await?;
    let achieved = until_object(&bundles, "Ready", |it| it["status"]["phase"] == "Ready").await?;
    let pod = until_bound(cluster, TEAM, "user").await?;
    let handles = [
        (CORRIDOR_ID, &allocated["status"]["corridorId"]),
        (FFM_HANDLE, &achieved["status"]["ffmHandle"]),
    ];
    for (key, handle) in handles {
        let found = pod.annotation(key);
        ensure(found.is_some() && found == handle.as_str(), || {
            format!("{key} is {found:?}, the daemon says {handle}")
        })?;
    }

    for (objects, name) in [(&corridors, "c1"), (&bundles, "b1")] {
        let deleting = format!("deleting {name}");
        objects.delete(name, &DeleteParams::default()).await.map(drop).doing(deleting)?;
    }
    until_object(&corridors, "Releasing, and not drained", |it| {
        let conditions = it["status"]["conditions"].as_array().into_iter().flatten();
        it["status"]["phase"] == "Releasing"
            && conditions.into_iter().any(|it| it["type"] == "Drained" && it["status"] == "False")
    })
    .await?;
    delete_pod(cluster.admin(), TEAM, "user").await?;
    for (objects, what) in [(&corridors, "the corridor"), (&bundles, "the bundle")] {
        let awaited = format!("{what} to be released and gone");
        until(objects, &awaited, PATIENCE, std::collections::BTreeMap::is_empty).await?;
    }
    Ok(())
}

async fn until_object(
    objects: &Api<DynamicObject>,
    awaited: &str,
    done: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let awaited = format!("an object to be {awaited}");
    let seen = until(objects, &awaited, PATIENCE, |seen| {
        seen.values().any(|object: &DynamicObject| done(&object.data))
    })
    .await?;
    Ok(seen.into_values().map(|object| object.data).find(|data| done(data)).unwrap_or_default())
}
