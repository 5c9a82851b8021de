//! SIGTERM in the middle of work.

use std::collections::BTreeMap;

use futures::future::try_join;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::TEAM;
use crate::checkers::{Limits, ensure_bound_once, ensure_never_rebound};
use crate::cluster::Cluster;
use crate::control_plane::AuditLog;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::observe::PATIENCE;
use crate::recorder::{Recorder, bound_count};

const PODS: usize = 300;
const STOPPED_AT: usize = 50;

/// It ends with exit code 0, its last binds are answered by then, and every other Pod is as its owner
/// made it.
pub async fn stops_gracefully_under_load(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(10, &NodeTemplate::new("4", "64Gi")).await?;
    let limits = Limits::read(cluster.admin(), &[]).await?;
    let recorder = Recorder::start(cluster.admin()).await?;
    let scheduler = cluster.start_scheduler().await?;

    let stopping = async {
        let enough = |versions: &[_]| bound_count(versions) >= STOPPED_AT;
        recorder.until("50 Pods to be bound", PATIENCE, enough).await?;
        let code = scheduler.terminate().await?;
        ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))?;
        nodes_by_pod(cluster).await
    };
    let template = PodTemplate::small();
    let creating = cluster.create_pods(TEAM, "pod", PODS, &template);
    let (created, at_exit) = try_join(creating, stopping).await?;

    // A bind that was still on its way at the exit would be in the record before this Pod.
    template.create(cluster.admin(), TEAM, "last").await?;
    let versions = recorder.finish(PATIENCE).await?;
    limits.check(&versions)?;
    ensure_never_rebound(&versions)?;
    let now = cluster.pods(TEAM).list(&ListParams::default()).await.doing("listing Pods")?;
    if let Some(audit) = cluster.audit() {
        ensure_bound_once(audit, now.items.iter()).await?;
        ensure_all_answered(audit, &now.items)?;
    }
    for pod in now {
        let name = pod.name_any();
        let node_at_exit = at_exit.get(&name).cloned().flatten();
        ensure(pod.node() == node_at_exit.as_deref(), || {
            format!("Pod {name} was bound after the scheduler had ended")
        })?;
        let before = created.iter().find(|created| created.name_any() == name);
        if let Some(before) = before.filter(|_| pod.node().is_none()) {
            ensure(pod.metadata.annotations == before.metadata.annotations, || {
                format!("Pod {name} is not bound, but its annotations have changed")
            })?;
        }
    }
    Ok(())
}

/// A client that ends before the answer leaves a cancelled request in the API server's record.
fn ensure_all_answered(audit: &AuditLog, pods: &[Pod]) -> Result<()> {
    for binding in audit.bindings()?.iter().filter(|binding| binding.was_cancelled()) {
        let ours = pods.iter().any(|pod| pod.uid_str() == binding.pod_uid);
        ensure(!ours, || format!("the scheduler ended before this was answered: {binding:?}"))?;
    }
    Ok(())
}

async fn nodes_by_pod(cluster: &Cluster) -> Result<BTreeMap<String, Option<String>>> {
    let pods = cluster.pods(TEAM).list(&ListParams::default()).await.doing("listing Pods")?;
    let pair = |pod: Pod| (pod.name_any(), pod.node().map(str::to_owned));
    Ok(pods.into_iter().map(pair).collect())
}
