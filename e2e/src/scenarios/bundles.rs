//! A Pod that needs light and memory at once.

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::bundles::Bundle;
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{CORRIDOR_ID, FFM_HANDLE, GRANT, PodState as _, PodTemplate};

/// A Pod with both references is bound only when both are Ready, and carries both handles and one
/// grant. What the bundle lacks, the Pod says, in GB/s.
pub async fn pod_waits_for_corridor_and_bundle(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(3, &NodeTemplate::new("4", "16Gi")).await?;
    let _corrd = cluster.hold_corrd_lease().await?;
    let _memqosd = cluster.hold_memqosd_lease().await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    let bundle = Bundle::create(cluster.admin(), TEAM, "b1", 50).await?;
    let _scheduler = cluster.start_scheduler().await?;

    let both = PodTemplate::small().corridor(&corridor, "40").bundle(&bundle, "20");
    both.create(cluster.admin(), TEAM, "both").await?;
    let message = until_held(cluster, TEAM, "both").await?;
    ensure_contains(&message, &["memory bundle team-a/b1", "needs 20 GB/s", "short by 20 GB/s"])?;

    bundle.set_status("Ready", 55).await?;
    let pod = until_bound(cluster, TEAM, "both").await?;
    let grant = format!(
        r#"{{"v":1,"corridor":{{"uid":"{}","milliGbps":40000}},"bundle":{{"uid":"{}","milliGBs":20000}}}}"#,
        corridor.uid, bundle.uid
    );
    let expected =
        [(CORRIDOR_ID, corridor.corridor_id()), (FFM_HANDLE, bundle.ffm_handle()), (GRANT, grant)];
    for (key, expected) in expected {
        let found = pod.annotation(key);
        ensure(found == Some(&expected), || format!("{key} is {found:?}, not {expected}"))?;
    }

    // The corridor has room for it, the bundle has not.
    let more = PodTemplate::small().corridor(&corridor, "1").bundle(&bundle, "40");
    more.create(cluster.admin(), TEAM, "more").await?;
    let message = until_held(cluster, TEAM, "more").await?;
    ensure_contains(&message, &["needs 40 GB/s, 30 of 50 GB/s free, short by 10 GB/s"])
}
