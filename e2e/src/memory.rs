//! What the scheduler keeps of each Pod and each Node, in resident memory.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::binaries::say;
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::error::{Error, Result};
use crate::metrics;
use crate::population::{NAMESPACE, create_bound_pods, create_nodes};
use crate::process_cost::resident_kib;
use crate::scheduler_process::SchedulerProcess;

/// Memory is given back, or not, within this long after everything is known.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub nodes: usize,
    pub pods: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub size: Size,
    pub empty_kib: u64,
    pub with_nodes_kib: u64,
    pub with_pods_kib: u64,
    /// Until it knew everything.
    pub started_within: Duration,
}

impl Figures {
    pub fn bytes_per_node(&self) -> f64 {
        per(self.with_nodes_kib, self.empty_kib, self.size.nodes)
    }

    pub fn bytes_per_pod(&self) -> f64 {
        per(self.with_pods_kib, self.with_nodes_kib, self.size.pods)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per(with_kib: u64, without_kib: u64, count: usize) -> f64 {
    (with_kib as f64 - without_kib as f64) * 1024.0 / count.max(1) as f64
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "empty cluster: {} KiB resident", self.empty_kib)?;
        writeln!(
            f,
            "{} Nodes: {} KiB, {:.0} bytes each",
            self.size.nodes,
            self.with_nodes_kib,
            self.bytes_per_node()
        )?;
        write!(
            f,
            "and {} Pods: {} KiB, {:.0} bytes each, ready after {:.1} s",
            self.size.pods,
            self.with_pods_kib,
            self.bytes_per_pod(),
            self.started_within.as_secs_f64()
        )
    }
}

/// Starts the scheduler three times: on an empty cluster, on one with Nodes, on one with Pods too.
pub async fn measure(size: Size) -> Result<Figures> {
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let cluster = plane.cluster().await?;
    cluster.ensure_namespace(NAMESPACE).await?;
    let (empty_kib, _) = resident(&cluster, 0).await?;
    create_nodes(cluster.admin(), size.nodes).await?;
    let (with_nodes_kib, _) = resident(&cluster, 0).await?;
    say("creating Pods");
    create_bound_pods(cluster.admin(), size.pods, size.nodes).await?;
    let (with_pods_kib, started_within) = resident(&cluster, size.pods).await?;
    Ok(Figures { size, empty_kib, with_nodes_kib, with_pods_kib, started_within })
}

async fn resident(cluster: &Cluster, pods: usize) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let scheduler = cluster.start_scheduler().await?;
    let started_within = began.elapsed();
    await_known(&scheduler, pods).await?;
    sleep(SETTLES_WITHIN).await;
    let process =
        scheduler.process_id().ok_or_else(|| Error::malformed("measuring", "it ended"))?;
    let kib = resident_kib(process)?;
    scheduler.terminate().await?;
    Ok((kib, started_within))
}

/// Its metrics follow its readiness by a moment.
async fn await_known(scheduler: &SchedulerProcess, pods: usize) -> Result<()> {
    let began = Instant::now();
    loop {
        let metrics = scheduler.metrics().await?;
        let known = metrics::sum(&metrics, "scheduler_cache_size", &["type=\"pods\""]);
        #[expect(clippy::cast_precision_loss, reason = "far below the limit")]
        let is_complete = (known - pods as f64).abs() < 0.5;
        if is_complete {
            return Ok(());
        }
        if began.elapsed() > SETTLES_WITHIN {
            let problem = format!("{known} Pods are known, not {pods}");
            return Err(Error::malformed("looking at the metrics", problem));
        }
        sleep(Duration::from_millis(50)).await;
    }
}
