//! The scheduler is killed at the worst time, again and again.

use futures::future::try_join3;
use k8s_openapi::api::core::v1::Pod;

use super::TEAM;
use crate::checkers::{Limits, ensure_bound_once, ensure_never_rebound};
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::observe::{PATIENCE, Seen, until_pods};
use crate::recorder::{Recorder, bound_count};
use crate::scheduler_process::SchedulerProcess;

/// One wave before the first kill, and one behind each: however fast it is, work is left.
const WAVE_PODS: usize = 110;
const PLAIN_PODS: usize = WAVE_PODS * (1 + KILLS);
/// They ask 2 Gbps each of a corridor of 100: 50 fit.
const CORRIDOR_PODS: usize = 60;
const CORRIDOR_PODS_THAT_FIT: usize = 50;
const BOUND_IN_THE_END: usize = PLAIN_PODS + CORRIDOR_PODS_THAT_FIT;
/// 40 Pods fit on each, so there is little room to hide a mistake in.
const NODES: usize = 13;
const KILLS: usize = 3;
/// Killed when so many Pods of a wave are bound.
const KILLED_AFTER: usize = 5;

/// 500 Pods; the scheduler is killed three times on the way. Every Pod is bound at most once, no Node
/// and no corridor is above its limit in any version, and nothing waits that fits.
pub async fn killed_in_the_middle_of_500_pods(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(NODES, &NodeTemplate::new("4", "64Gi")).await?;
    let _lease = cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    let limits = Limits::read(cluster.admin(), &[&corridor]).await?;
    let recorder = Recorder::start(cluster.admin()).await?;

    let plain = PodTemplate::small();
    let with_corridor = PodTemplate::small().corridor(&corridor, "2");
    let (_, _, scheduler) = try_join3(
        cluster.create_pods(TEAM, "plain", WAVE_PODS, &plain),
        cluster.create_pods(TEAM, "corridor", CORRIDOR_PODS, &with_corridor),
        kill_again_and_again(cluster, &recorder, &plain),
    )
    .await?;

    let pods = until_pods(&cluster.pods(TEAM), "every Pod that fits", PATIENCE, all_done).await?;
    let code = scheduler.terminate().await?;
    ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))?;
    let versions = recorder.finish(PATIENCE).await?;
    ensure_never_rebound(&versions)?;
    let reserved = limits.check(&versions)?;
    let free = 100_000 - reserved.get(&corridor.uid).copied().unwrap_or(0);
    ensure(free < 2_000, || format!("Pods that ask 2 Gbps wait with {free} milli-Gbps free"))?;
    match cluster.audit() {
        Some(audit) => ensure_bound_once(audit, pods.values()).await,
        None => Ok(()),
    }
}

/// Returns the last scheduler, which lives.
async fn kill_again_and_again(
    cluster: &Cluster,
    recorder: &Recorder,
    plain: &PodTemplate,
) -> Result<SchedulerProcess> {
    let mut bound = 0;
    let mut scheduler = cluster.start_scheduler().await?;
    for wave in 1..=KILLS {
        let count = bound + KILLED_AFTER;
        let awaited = format!("{count} Pods to be bound");
        recorder.until(&awaited, PATIENCE, |versions| bound_count(versions) >= count).await?;
        scheduler.kill9().await?;
        let look = |versions: &[_]| {
            bound = bound_count(versions);
            true
        };
        recorder.until("a look at the Pods", PATIENCE, look).await?;
        ensure(bound < BOUND_IN_THE_END, || "the scheduler was done before it was killed".into())?;
        cluster.create_pods(TEAM, &format!("plain-{wave}"), WAVE_PODS, plain).await?;
        scheduler = cluster.start_scheduler().await?;
    }
    Ok(scheduler)
}

/// Those that fit are bound, and those that do not have been told so.
fn all_done(seen: &Seen<Pod>) -> bool {
    let (bound, waiting): (Vec<_>, Vec<_>) = seen.values().partition(|pod| pod.node().is_some());
    // More than fit would be a mistake, which the record will show more clearly.
    bound.len() >= BOUND_IN_THE_END
        && seen.len() == PLAIN_PODS + CORRIDOR_PODS
        && waiting.iter().all(|pod| pod.waiting_message().is_some())
}
