//! The scheduler is killed, or loses the lead, between any two of the writes by which a Pod with devices is bound.

use std::fs;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::gate::{GatedScheduler, Then, Write};
use super::{CANNOT_ALLOCATE, DeviceSite, GPU, TEAM};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::devices::{DeviceClaim, Uses, claims_in};
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::observe::PATIENCE;
use crate::replicas::LEASE_DURATION;
use crate::supervised::Signal;

const ONE: &str = "one-gpu";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A write, and whether it is carried out.
const POINTS: [(Write, bool); 5] = [
    (Write::Finalizer, false),
    (Write::Finalizer, true),
    (Write::Status, false),
    (Write::Status, true),
    (Write::Binding, false),
];

/// The next process goes on from what is written. There is one device more than there are Pods at each time, so that a
/// device that is lost, and one that is given out again, shows.
pub async fn killed_between_any_two_writes(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[2, 1]).await?;
    site.create_template(ONE, &DeviceClaim::of(GPU, 1)).await?;
    let mut before: Option<String> = None;
    for (number, (write, is_carried_out)) in POINTS.into_iter().enumerate() {
        let then = if is_carried_out { Then::HoldReply } else { Then::HoldCall };
        let scheduler = GatedScheduler::start(&site.cluster, vec![(write, then)]).await?;
        let pod = format!("pod-{number}");
        site.create_pod(&pod, &[Uses::Template(ONE)]).await?;
        scheduler.kill_when_reached().await?;
        let was_bound = site.until_pod(&pod, "there", |_| true).await?.node().is_some();
        ensure(!was_bound, || format!("{pod} was bound before {write:?} was done"))?;

        let next = site.cluster.start_scheduler().await?;
        let other = format!("other-{number}");
        site.create_pod(&other, &[Uses::Template(ONE)]).await?;
        site.until_bound(&pod).await?;
        site.until_bound(&other).await?;
        site.end_pod(&other).await?;
        if let Some(before) = before.replace(pod) {
            site.end_pod(&before).await?;
        }
        let code = next.terminate().await?;
        ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))?;
    }
    Ok(())
}

/// Each leader is stopped behind one of the writes and knows nothing of its answer; the next one goes on. When all are
/// continued, late, nothing changes any more.
pub async fn leaders_change_between_any_two_writes(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[2]).await?;
    site.create_template(ONE, &DeviceClaim::of(GPU, 1)).await?;
    let election = Election::new()?;
    let flags = election.flags();
    let mut stopped = Vec::new();
    for (number, write) in Write::ALL.into_iter().enumerate() {
        let then = if write == Write::Binding { Then::HoldCall } else { Then::HoldReply };
        let plans = vec![(write, then)];
        let mut leader = GatedScheduler::start_with(&site.cluster, plans, &flags).await?;
        if number == 0 {
            site.create_pod("pod", &[Uses::Template(ONE)]).await?;
        }
        leader.until_reached(1, PATIENCE).await?;
        leader.process().signal(Signal::Stop)?;
        stopped.push(leader);
    }
    let _last = GatedScheduler::start_with(&site.cluster, vec![], &flags).await?;
    site.until_bound("pod").await?;
    for leader in &mut stopped {
        leader.process().signal(Signal::Continue)?;
    }
    site.create_pod("second", &[Uses::Template(ONE)]).await?;
    site.until_bound("second").await.map(drop)
}

/// A leader has sent the devices of a claim and is stopped; the write arrives when another leader has long given the
/// device to another claim.
pub async fn late_leader_gives_nothing_out(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    for claim in ["former", "next"] {
        site.create_claim(claim, &DeviceClaim::of(GPU, 1)).await?;
    }
    let election = Election::new()?;
    let flags = election.flags();
    let plans = vec![(Write::Status, Then::Late)];
    let mut late = GatedScheduler::start_with(&site.cluster, plans, &flags).await?;
    site.create_pod("former", &[Uses::Claim("former")]).await?;
    late.until_reached(1, PATIENCE).await?;
    until_the_fence_is_heeded(site, "former").await?;
    late.process().signal(Signal::Stop)?;
    delete_pod(site.admin(), TEAM, "former").await?;
    let _leader = GatedScheduler::start_with(&site.cluster, vec![], &flags).await?;
    site.create_pod("next", &[Uses::Claim("next")]).await?;
    site.until_bound("next").await?;
    let code = late.let_late_arrive().await?;
    ensure(code.is_client_error(), || format!("the late leader's write was answered {code}"))
}

/// A leader ends, and the next one has not heard yet what became of the claims: its watch of them is behind. It gives
/// nothing out that the last one has given out.
pub async fn next_leader_knows_what_the_last_gave_out(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    for claim in ["former", "next"] {
        site.create_claim(claim, &DeviceClaim::of(GPU, 1)).await?;
    }
    let election = Election::new()?;
    let flags = election.flags();
    let leader = GatedScheduler::start_with(&site.cluster, vec![], &flags).await?;
    site.create_pod_as("plain", &PodTemplate::small()).await?;
    site.until_bound("plain").await?;
    let next = GatedScheduler::start_with(&site.cluster, vec![], &flags).await?;
    next.silence_claims();
    site.create_pod("former", &[Uses::Claim("former")]).await?;
    site.until_bound("former").await?;
    leader.kill().await?;
    site.create_pod("next", &[Uses::Claim("next")]).await?;
    site.until_held("next", &[CANNOT_ALLOCATE]).await
}

/// The API server refuses what no leader writes.
async fn until_the_fence_is_heeded(site: &DeviceSite, claim: &str) -> Result<()> {
    let nobody = PatchParams {
        dry_run: true,
        field_manager: Some("corridor-leader:nobody/0".to_owned()),
        ..PatchParams::default()
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let patch = Patch::Merge(json!({ "status": { "reservedFor": null } }));
        let written = claims_in(site.admin(), TEAM).patch_status(claim, &nobody, &patch).await;
        match written.doing("trying out the fence") {
            Err(problem) if problem.api_code() == Some(422) => return Ok(()),
            written => written.map(drop)?,
        }
        ensure(Instant::now() < deadline, || "the fence does not hold".to_owned())?;
        sleep(LOOK_EVERY).await;
    }
}

/// Schedulers of which one leads, with a Lease that ends soon.
struct Election {
    _folder: TempDir,
    config: String,
}

impl Election {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir().doing("making a folder for a configuration")?;
        let config = folder.path().join("config.yaml");
        let election = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": { "leaseDuration": format!("{}s", LEASE_DURATION.as_secs()) },
        });
        fs::write(&config, election.to_string()).doing("writing a configuration")?;
        Ok(Self { config: config.to_string_lossy().into_owned(), _folder: folder })
    }

    fn flags(&self) -> [&str; 3] {
        ["--leader-elect=true", "--config", &self.config]
    }
}
