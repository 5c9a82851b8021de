//! A control plane, a proxy with faults, and the story that is played behind it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tempfile::TempDir;

use super::gate::Faults;
use crate::checkers::{Limits, ensure_bound_once, ensure_never_rebound};
use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, config_from};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::leases::BackendLease;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::observe::{PATIENCE, Seen, until_pods};
use crate::proxy::{Proxy, Server};
use crate::recorder::Recorder;
use crate::scheduler_process::SchedulerProcess;

pub const TEAM: &str = "team-a";
/// A Pod that the scheduler cannot read, and did not bind.
pub const UNREADABLE: &str = "unreadable";
/// Ten small Pods fit on each.
const NODES: usize = 6;
const PLACES: usize = 60;
/// A few more than there is room for: what is promised twice shows.
pub const PODS: usize = 56;
const CORRIDOR_PODS: usize = 8;

/// Everything but the fault.
#[derive(Debug)]
pub struct FaultSite {
    pub scheduler: SchedulerProcess,
    pub cluster: Cluster,
    limits: Limits,
    recorder: Recorder,
    corridor: Corridor,
    has_whole_audit: bool,
    _lease: BackendLease,
    _proxy: Proxy,
    _folder: TempDir,
}

impl FaultSite {
    /// An empty cluster, with a scheduler that meets the faults.
    pub async fn start(plane: &ControlPlane, faults: &Arc<Faults>) -> Result<Self> {
        Self::start_as(plane, faults, |binary| Ok(binary.to_owned()), &[]).await
    }

    /// The same, with whatever `program` makes of the scheduler's binary, and with more flags.
    pub async fn start_as(
        plane: &ControlPlane,
        faults: &Arc<Faults>,
        program: impl FnOnce(&Path) -> Result<PathBuf>,
        flags: &[&str],
    ) -> Result<Self> {
        let cluster = plane.cluster().await?;
        cluster.clear().await?;
        cluster.ensure_namespace(TEAM).await?;
        cluster.create_nodes(NODES, &NodeTemplate::new("1", "64Gi")).await?;
        let lease = cluster.hold_corrd_lease().await?;
        let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 16).await?;
        let limits = Limits::read(cluster.admin(), &[&corridor]).await?;
        let recorder = Recorder::start(cluster.admin()).await?;
        let mut access = config_from(plane.scheduler_kubeconfig()).await?;
        access.default_retry = false;
        let upstream =
            Client::try_from(access).doing("making a client with the scheduler's rights")?;
        let gate = Arc::clone(faults);
        let proxy = Proxy::start(Server::ApiServer, upstream, gate).await?;
        let folder = tempfile::tempdir().doing("making a folder for a kubeconfig")?;
        let kubeconfig = proxy.write_kubeconfig(folder.path())?;
        let binary = program(cluster.scheduler_binary())?;
        let scheduler = SchedulerProcess::start_binary(&binary, &kubeconfig, flags).await?;
        Ok(Self {
            scheduler,
            cluster,
            limits,
            recorder,
            corridor,
            has_whole_audit: true,
            _lease: lease,
            _proxy: proxy,
            _folder: folder,
        })
    }

    /// An API server that is killed takes the last lines of its audit log with it: the record of versions
    /// alone has to show that no Pod was bound twice.
    #[must_use]
    pub fn without_whole_audit(mut self) -> Self {
        self.has_whole_audit = false;
        self
    }

    /// As many Pods as there are places, and some more.
    pub async fn create_pods(&self) -> Result<()> {
        self.create_corridor_pods().await?;
        self.create_plain_pods().await
    }

    pub async fn create_plain_pods(&self) -> Result<()> {
        let plain = PodTemplate::small();
        self.cluster.create_pods(TEAM, "plain", PODS, &plain).await.map(drop)
    }

    /// Those that ask for bandwidth: as much as there is, all together.
    pub async fn create_corridor_pods(&self) -> Result<()> {
        let asking = PodTemplate::small().corridor(&self.corridor, "2");
        self.cluster.create_pods(TEAM, "corridor", CORRIDOR_PODS, &asking).await.map(drop)
    }

    /// Waits until so many Pods are bound.
    pub async fn until_bound(&self, count: usize) -> Result<()> {
        let awaited = format!("{count} Pods to be bound");
        let done =
            |seen: &Seen<Pod>| seen.values().filter(|pod| pod.node().is_some()).count() >= count;
        until_pods(&self.cluster.pods(TEAM), &awaited, PATIENCE, done).await.map(drop)
    }

    /// Waits until every Pod that fits is bound, and checks that each was bound once, and no limit was
    /// exceeded in any version.
    pub async fn finish(self, places: usize, patience: Duration) -> Result<BTreeMap<String, Pod>> {
        let done = |seen: &Seen<Pod>| {
            let bound = seen.values().filter(|pod| pod.node().is_some()).count();
            bound >= places.min(seen.len())
        };
        let awaited = "every Pod that fits to be bound";
        until_pods(&self.cluster.pods(TEAM), awaited, patience, done).await?;
        // More may be bound than were waited for: from here on nothing is.
        let code = self.scheduler.terminate().await?;
        ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))?;
        let now = |_: &Seen<Pod>| true;
        let pods = until_pods(&self.cluster.pods(TEAM), "a last look", patience, now).await?;
        let versions = self.recorder.finish(PATIENCE).await?;
        ensure_never_rebound(&versions)?;
        self.limits.check(&versions)?;
        if let Some(audit) = self.cluster.audit().filter(|_| self.has_whole_audit) {
            let ours = pods.values().filter(|pod| pod.metadata.name.as_deref() != Some(UNREADABLE));
            ensure_bound_once(audit, ours).await?;
        }
        Ok(pods.into_iter().collect())
    }

    /// The whole of it, for faults that take no place away.
    pub async fn play(self, patience: Duration) -> Result<()> {
        self.create_pods().await?;
        self.finish(PLACES, patience).await.map(drop)
    }
}
