//! What was answered survives a kill.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use daemons::attestd::{Attestd, VerifyRequest};
use daemons::client::{Endpoint, Patience};
use daemons::corrd::{CorridorRequest, PathSpec};
use daemons::memqosd::{BundleRequest, BundleSpec, LatencyClass, Persistence};
use daemons::simulated::{SimulatedConfig, SimulatedDaemons, StartError, StoreError};
use daemons::{Owner, RefusalReason};

const STATE_DIR: &str = "DAEMONS_TEST_STATE_DIR";

/// Not a test by itself: the process that the tests below kill.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the other tests"]
async fn serve_until_killed() {
    let Ok(folder) = std::env::var(STATE_DIR) else { return };
    let config = SimulatedConfig { state_dir: Some(folder.into()), ..SimulatedConfig::default() };
    let daemons = SimulatedDaemons::start(config).await.unwrap();
    println!("\nLISTENING {}", daemons.url());
    std::future::pending::<()>().await;
}

/// A daemon in a process of its own. Killed, never asked to stop.
struct Process {
    child: Child,
    endpoint: Endpoint,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serve_until_killed", "--ignored", "--nocapture"])
            .env(STATE_DIR, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("LISTENING ").map(str::to_owned))
            .expect("the daemon tells its address");
        let endpoint = Endpoint::new(&url, Patience::default()).unwrap();
        Self { child, endpoint }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn corridor(number: u32) -> CorridorRequest {
    let path = PathSpec { lanes: 1, lambda_nm: vec![1550], min_gbps: 10, ..PathSpec::default() };
    let owner = Owner::new("cluster", format!("object-{number:03}")).unwrap();
    CorridorRequest { owner, path, ticket: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let memory = BundleSpec {
        bytes: 4096,
        latency_class: LatencyClass::T3,
        floor_gbs: 1,
        persistence: Persistence::Durable,
        ..BundleSpec::default()
    };
    let bundle = BundleRequest { owner: corridor(0).owner, memory, ticket: None };
    let question = VerifyRequest {
        device_id: "phot-0".into(),
        nonce: "a-nonce-that-counts-once".into(),
        subject: "object-000".into(),
        tenant: "team-a".into(),
        pqc: false,
    };

    let daemon = Process::start(folder.path());
    let first =
        daemon.endpoint.as_corrd().allocate(&corridor(0).key(), &corridor(0)).await.unwrap();
    let kept = daemon.endpoint.as_memqosd().allocate(&bundle.key(), &bundle).await.unwrap();
    daemon.endpoint.verify(&question).await.unwrap();
    let released =
        daemon.endpoint.as_corrd().allocate(&corridor(1).key(), &corridor(1)).await.unwrap();
    daemon.endpoint.as_corrd().release(&released.corridor_id, &released.owner).await.unwrap();
    drop(daemon);

    let daemon = Process::start(folder.path());
    let again =
        daemon.endpoint.as_corrd().allocate(&corridor(0).key(), &corridor(0)).await.unwrap();
    assert_eq!(again.corridor_id, first.corridor_id);
    assert_eq!(again.created_at, first.created_at);
    let list = daemon.endpoint.as_memqosd().list("cluster/").await.unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].ffm_handle, kept.ffm_handle);
    assert!(daemon.endpoint.as_corrd().get(&released.corridor_id).await.unwrap().is_none());
    let new = daemon.endpoint.as_corrd().allocate(&corridor(2).key(), &corridor(2)).await.unwrap();
    assert!(![first.corridor_id, released.corridor_id].contains(&new.corridor_id));
    let replayed = daemon.endpoint.verify(&question).await.unwrap_err();
    assert_eq!(replayed.refusal(), Some(RefusalReason::NonceReplayed));
}

/// Killed in the middle of a stream of requests: each wish ends with exactly one allocation.
#[tokio::test(flavor = "multi_thread")]
async fn killed_amid_requests_every_wish_ends_with_one_allocation() {
    const WISHES: u32 = 60;
    let folder = tempfile::tempdir().unwrap();
    let daemon = Process::start(folder.path());
    let endpoint = daemon.endpoint.clone();
    let sender = tokio::spawn(async move {
        let mut answered = Vec::new();
        for number in 0..WISHES {
            let wish = corridor(number);
            if let Ok(corridor) = endpoint.as_corrd().allocate(&wish.key(), &wish).await {
                answered.push((number, corridor.corridor_id));
            } else {
                break;
            }
        }
        answered
    });
    // In the middle, wherever that is: no result of the test depends on it.
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    drop(daemon);
    let answered = sender.await.unwrap();

    let daemon = Process::start(folder.path());
    for (number, id) in &answered {
        let wish = corridor(*number);
        let list = daemon.endpoint.as_corrd().list(&wish.owner.to_string()).await.unwrap();
        let ids: Vec<&String> = list.iter().map(|it| &it.corridor_id).collect();
        assert_eq!(ids, [id], "wish {number} was answered");
    }
    for number in 0..WISHES {
        let wish = corridor(number);
        daemon.endpoint.as_corrd().allocate(&wish.key(), &wish).await.unwrap();
    }
    let list = daemon.endpoint.as_corrd().list("cluster/").await.unwrap();
    assert_eq!(list.len(), WISHES as usize, "{} answered before the kill", answered.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_state_has_one_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let config = || SimulatedConfig {
        state_dir: Some(folder.path().to_owned()),
        ..SimulatedConfig::default()
    };
    let first = SimulatedDaemons::start(config()).await.unwrap();
    let second = SimulatedDaemons::start(config()).await;
    assert!(matches!(second, Err(StartError::Store(StoreError::InUse))), "{second:?}");
    first.stop().await;
    SimulatedDaemons::start(config()).await.unwrap().stop().await;
}

#[tokio::test]
async fn only_loopback_is_served() {
    let config =
        SimulatedConfig { listen: "0.0.0.0:0".parse().unwrap(), ..SimulatedConfig::default() };
    let refused = SimulatedDaemons::start(config).await;
    assert!(matches!(refused, Err(StartError::NotLoopback(_))), "{refused:?}");
}
