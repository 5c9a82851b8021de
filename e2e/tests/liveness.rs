//! A scheduler of which a part hangs notices it, says so at `/livez`, and makes way for another. A signal would stop
//! the whole process, which shows nothing; here one thread alone hangs, or one folder.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::time::Duration;

use e2e::binaries::say;
use e2e::faults::hang::Hang;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::replicas::site::ReplicaSite;
use e2e::scheduler_process::scheduler_binary;
use e2e::{ControlPlane, Error, Result, SchedulerProcess};
use tokio::time::{Instant, sleep};

const TEAM: &str = "team-a";
/// How long a thread may not move before it counts as stuck: docs/replicas.md. And some time to notice.
const STUCK_WITHIN: Duration = Duration::from_secs(60 + 30);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const FAILURE: i32 = 1;

/// What `/livez` says when it does not say that all is well, and after how long.
async fn until_it_says_that_it_is_stuck(process: &SchedulerProcess) -> Result<(String, Duration)> {
    let began = Instant::now();
    loop {
        match process.download("/livez").await {
            Ok(_) if began.elapsed() > STUCK_WITHIN => {
                let problem = format!("/livez says that all is well after {STUCK_WITHIN:?}");
                return Err(Error::Violated(problem));
            }
            Ok(_) => sleep(LOOK_INTERVAL).await,
            Err(problem) => return Ok((problem.to_string(), began.elapsed())),
        }
    }
}

async fn hang_as_leader(thread: &str, says: &str) -> Result<()> {
    let hang = Hang::new().await?;
    let binary = hang.wrap(&scheduler_binary().await?, thread)?;
    let mut site = ReplicaSite::start_with(binary, 2).await?;
    site.cluster.ensure_namespace(TEAM).await?;
    site.cluster.create_nodes(1, &NodeTemplate::new("4", "64Gi")).await?;
    let leader = site.leader().await?;
    PodTemplate::small().create(site.admin(), TEAM, "before").await?;
    site.cluster.until_pod(TEAM, "before", "bound", |pod| pod.node().is_some()).await?;
    let former = site.term().await?;

    let mut stuck = site.replicas.swap_remove(leader);
    hang.strike(stuck.process.process_id().unwrap())?;
    let (said, after) = until_it_says_that_it_is_stuck(&stuck.process).await?;
    say(&format!("{thread}: after {} s /livez says: {said}", after.as_secs()));
    assert!(said.contains("500"), "{said}");
    assert!(said.contains(says), "{said}");

    PodTemplate::small().create(site.admin(), TEAM, "after").await?;
    assert_eq!(stuck.process.exit_code().await?, FAILURE, "{}", stuck.process.log());
    let log = stuck.process.log();
    assert!(log.contains(says) && log.contains("the Lease is given back"), "{log}");
    let pod = site.cluster.until_pod(TEAM, "after", "bound", |pod| pod.node().is_some()).await?;
    let leader = pod.annotation("corridoros.io/leader").unwrap_or_default().to_owned();
    assert_ne!(leader, former, "it was bound by the replica that is stuck");
    assert_eq!(leader, site.term().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_loop_hangs_says_so_gives_its_lease_back_and_ends() {
    let says = "the loop that decides has not moved for 60 s";
    hang_as_leader("deciding", says).await.unwrap_or_else(|problem| panic!("{problem}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_reads_nothing_any_more_says_so_gives_its_lease_back_and_ends() {
    let says = "the thread that reads the watches has not moved for 60 s";
    hang_as_leader("reading", says).await.unwrap_or_else(|problem| panic!("{problem}"));
}

#[tokio::test]
async fn a_journal_folder_that_hangs_costs_the_journal_and_not_the_scheduling() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    cluster.create_nodes(1, &NodeTemplate::new("4", "64Gi")).await.unwrap();
    let hang = Hang::new().await.unwrap();
    let binary = hang.wrap_with_folder(cluster.scheduler_binary()).unwrap();
    let folder = hang.folder();
    let flags = ["--journal-dir", folder.to_str().unwrap()];
    let scheduler = SchedulerProcess::start_binary(&binary, plane.scheduler_kubeconfig(), &flags)
        .await
        .unwrap();
    PodTemplate::small().create(cluster.admin(), TEAM, "p").await.unwrap();
    cluster.until_pod(TEAM, "p", "bound", |pod| pod.node().is_some()).await.unwrap();
    let log = scheduler.log();
    assert!(log.contains("the folder of --journal-dir does not answer"), "{log}");
    assert!(!scheduler.download("/api/journal").await.unwrap().is_empty(), "it can be asked for");
    assert_eq!(scheduler.terminate().await.unwrap(), 0, "it ends in order all the same");
}
