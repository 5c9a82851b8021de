//! A Pod that waits for its corridor, and how it is bound in the end.

use k8s_openapi::api::core::v1::Pod;

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::checkers::Limits;
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{CORRIDOR_ID, GRANT, PodState, PodTemplate, delete_pod};
use crate::observe::PATIENCE;
use crate::recorder::{PodVersion, Recorder, versions_of};

/// A watch is never far behind: more probes than this mean that the scheduler does not listen.
const PROBES_MAX: usize = 100;

/// A corridor falls below its floor: a Pod is held and says so. It recovers: the Pod is bound, and
/// its node, its corridor and its grant appear in one and the same version.
pub async fn pod_waits_for_its_corridor(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(5, &NodeTemplate::new("4", "16Gi")).await?;
    let _lease = cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    let limits = Limits::read(cluster.admin(), &[&corridor]).await?;
    let recorder = Recorder::start(cluster.admin()).await?;
    let _scheduler = cluster.start_scheduler().await?;

    let sixty = PodTemplate::small().corridor(&corridor, "60");
    sixty.create(cluster.admin(), TEAM, "first").await?;
    let first = until_bound(cluster, TEAM, "first").await?;
    ensure_granted(&first, &corridor, 60)?;

    corridor.set_status("Ready", 40).await?;
    until_scheduler_knows(cluster, &corridor).await?;
    let forty = PodTemplate::small().corridor(&corridor, "40");
    forty.create(cluster.admin(), TEAM, "second").await?;
    let message = until_held(cluster, TEAM, "second").await?;
    let corridor_and_phase = "0/5 nodes are available: corridor team-a/c1 (Ready): ";
    ensure_contains(&message, &[corridor_and_phase, "needs 40 Gbps", "short by 40 Gbps"])?;
    let event = cluster.until_event(TEAM, "second", "FailedScheduling").await?;
    ensure_contains(event.message.as_deref().unwrap_or_default(), &[corridor_and_phase])?;

    corridor.set_status("Ready", 100).await?;
    let second = until_bound(cluster, TEAM, "second").await?;
    ensure_granted(&second, &corridor, 40)?;
    let versions = recorder.finish(PATIENCE).await?;
    for pod in [&first, &second] {
        ensure_bound_in_one_version(&versions_of(&versions, pod.uid_str()))?;
    }
    limits.check(&versions).map(drop)
}

/// Returns when a small Pod that asks for the fallen corridor is held: the watches of Pods and of
/// Corridors are separate, so a Pod created after the fall can be seen before it.
async fn until_scheduler_knows(cluster: &Cluster, corridor: &Corridor) -> Result<()> {
    let tiny = PodTemplate::small().corridor(corridor, "0.001");
    for number in 0..PROBES_MAX {
        let name = format!("probe-{number}");
        tiny.create(cluster.admin(), TEAM, &name).await?;
        let decided = |pod: &Pod| pod.node().is_some() || pod.waiting_message().is_some();
        let probe = cluster.until_pod(TEAM, &name, "decided", decided).await?;
        delete_pod(cluster.admin(), TEAM, &name).await?;
        if probe.node().is_none() {
            return Ok(());
        }
    }
    Err(Error::Violated(format!(
        "{PROBES_MAX} Pods in a row were bound with Corridor {} below its floor",
        corridor.reference()
    )))
}

fn ensure_granted(pod: &Pod, corridor: &Corridor, gbps: u64) -> Result<()> {
    let expected = [(CORRIDOR_ID, corridor.corridor_id()), (GRANT, corridor.grant(gbps))];
    for (key, expected) in expected {
        let found = pod.annotation(key);
        ensure(found == Some(&expected), || format!("{key} is {found:?}, not {expected}"))?;
    }
    Ok(())
}

fn ensure_bound_in_one_version(versions: &[&PodVersion]) -> Result<()> {
    let facts = |version: &PodVersion| {
        let pod = &version.pod;
        [
            pod.node().is_some(),
            pod.annotation(CORRIDOR_ID).is_some(),
            pod.annotation(GRANT).is_some(),
        ]
    };
    let bound_at = versions.iter().position(|version| version.pod.node().is_some());
    let [.., before, bound] = &versions[..bound_at.map_or(0, |at| at + 1)] else {
        return Err(Error::Violated("a Pod was never seen both waiting and bound".into()));
    };
    ensure(facts(before) == [false; 3] && facts(bound) == [true; 3], || {
        format!(
            "node, corridor and grant should appear together: {:?} at version {}, {:?} at version {}",
            facts(before),
            before.resource_version,
            facts(bound),
            bound.resource_version,
        )
    })
}
