//! A chaotic run against the real API server, and its journal carried out again: every decision comes out the same.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use e2e::binaries::say;
use e2e::control_plane::config_from;
use e2e::faults::gate::{BindFault, Faults, WatchFault};
use e2e::objects::corridors::Corridor;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate, delete_pod};
use e2e::observe::{Seen, until_pods};
use e2e::proxy::{Proxy, Server};
use e2e::random::Random;
use e2e::{Cluster, ControlPlane, Result, SchedulerProcess};
use flate2::read::MultiGzDecoder;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;

const TEAM: &str = "team-a";
const NODES: usize = 8;
/// More than fit at a time: what is bound makes room again.
const WAVES: usize = 8;
const PLAIN_IN_WAVE: usize = 75;
const WITH_CORRIDOR_IN_WAVE: usize = 15;
/// What the run must have decided, at least.
const BOUND_MIN: u64 = 500;
const PATIENCE: Duration = Duration::from_mins(2);

/// Eighty small Pods fit on each.
fn node() -> NodeTemplate {
    NodeTemplate::new("8", "64Gi")
}

/// What goes wrong at the proxy, one after the other.
fn strike(faults: &Faults, turn: usize) {
    match turn % 6 {
        0 => faults.on_binds(BindFault::ReplyLost, 6),
        1 => faults.on_binds(BindFault::Answered(409), 6),
        2 => faults.on_watches(WatchFault::Cut, 2),
        3 => faults.on_binds(BindFault::Answered(500), 6),
        4 => faults.on_binds(BindFault::Delayed(Duration::from_millis(800)), 6),
        _ => faults.on_lists(1),
    }
}

/// What people and daemons do meanwhile.
async fn meddle(cluster: &Cluster, corridor: &Corridor, random: &mut Random) -> Result<()> {
    let admin = cluster.admin();
    let pods = cluster.pods(TEAM);
    let now = until_pods(&pods, "a look", PATIENCE, |_: &Seen<Pod>| true).await?;
    for pod in now.values() {
        let name = pod.metadata.name.clone().unwrap_or_default();
        // Bound Pods end, some waiting Pods are deleted, some are edited.
        if random.chance(if pod.node().is_some() { 40 } else { 8 }) {
            delete_pod(admin, TEAM, &name).await?;
        } else if random.chance(6) {
            let labels = json!({ "metadata": { "labels": { "edited": "yes" } } });
            // It may be bound or gone by now.
            let _ = pods.patch(&name, &PatchParams::default(), &Patch::Merge(labels)).await;
        }
    }
    let achievable = random.pick(&[0, 10, 40, 44]);
    let phase = if achievable < 40 { "Degraded" } else { "Ready" };
    corridor.set_status(phase, achievable).await?;
    let name = format!("node-{}", random.between(1, NODES));
    let nodes: Api<Node> = Api::all(admin.clone());
    let _ = nodes.delete(&name, &DeleteParams::default()).await;
    sleep(Duration::from_millis(200)).await;
    node().create(admin, &name).await.map(drop)
}

async fn run_wild(cluster: &Cluster, faults: &Faults) -> Result<()> {
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 40).await?;
    let asking = PodTemplate::small().corridor(&corridor, "3");
    let mut random = Random::new(11);
    for wave in 0..WAVES {
        strike(faults, wave);
        let plain = format!("plain-{wave}");
        cluster.create_pods(TEAM, &plain, PLAIN_IN_WAVE, &PodTemplate::small()).await?;
        let light = format!("light-{wave}");
        cluster.create_pods(TEAM, &light, WITH_CORRIDOR_IN_WAVE, &asking).await?;
        meddle(cluster, &corridor, &mut random).await?;
    }
    corridor.set_status("Ready", 40).await?;
    let has_settled = |seen: &Seen<Pod>| {
        let is_plain = |name: &str| name.contains("plain");
        seen.iter().all(|(name, pod)| pod.node().is_some() || !is_plain(name))
    };
    until_pods(&cluster.pods(TEAM), "every plain Pod to be bound", PATIENCE, has_settled)
        .await
        .map(drop)
}

/// The binary's own word on a journal: its exit code and what it prints.
async fn replay(binary: &Path, file: &Path) -> (i32, Value, String) {
    let mut command = Command::new(binary);
    let output = command.arg("replay").arg(file).args(["--output", "json"]).output().await.unwrap();
    let printed = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), printed, error)
}

/// The same journal, with one decision changed.
fn tampered(journal: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(journal).read_to_string(&mut text).unwrap();
    let bind = text.lines().filter(|line| line.contains("\"Bind\"")).nth(100).unwrap();
    let node = bind.split("\"node\":\"").nth(1).unwrap().split('"').next().unwrap();
    let changed = bind.replace(&format!("\"node\":\"{node}\""), "\"node\":\"elsewhere\"");
    text.replace(bind, &changed)
}

#[tokio::test]
async fn a_journal_of_a_chaotic_run_replays_to_identical_decisions() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    cluster.create_nodes(NODES, &node()).await.unwrap();
    let _lease = cluster.hold_corrd_lease().await.unwrap();
    let faults = Arc::new(Faults::default());
    faults.double_events();
    let mut access = config_from(plane.scheduler_kubeconfig()).await.unwrap();
    access.default_retry = false;
    let upstream = Client::try_from(access).unwrap();
    let proxy = Proxy::start(Server::ApiServer, upstream, faults.clone()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = proxy.write_kubeconfig(folder.path()).unwrap();
    let binary = cluster.scheduler_binary().to_owned();
    let scheduler = SchedulerProcess::start_binary(&binary, &kubeconfig, &[]).await.unwrap();

    if let Err(problem) = run_wild(&cluster, &faults).await {
        panic!("{problem}");
    }
    let journal = scheduler.download("/api/journal").await.unwrap();
    let file = folder.path().join("journal.jsonl.gz");
    std::fs::write(&file, &journal).unwrap();
    let (code, printed, error) = replay(&binary, &file).await;
    say(&format!("{} bytes, struck {} times: {printed:#}", journal.len(), faults.struck()));
    assert_eq!(code, 0, "{printed:#} {error}");
    assert_eq!(printed["identical"], true, "{printed:#}");
    assert!(printed["binds"].as_u64().unwrap() > BOUND_MIN, "{printed:#}");
    assert!(printed["held"].as_u64().unwrap() > 10, "{printed:#}");
    assert_eq!(printed["failures"], 0, "{printed:#}");
    assert!(faults.struck() > 20, "struck {} times", faults.struck());

    std::fs::write(&file, tampered(&journal)).unwrap();
    let (code, printed, error) = replay(&binary, &file).await;
    assert_eq!(code, 1, "{printed:#} {error}");
    let divergence = &printed["divergence"];
    assert!(divergence["recorded"].as_str().unwrap().contains("elsewhere"), "{printed:#}");
    assert!(error.contains("diverged at call"), "{error}");

    std::fs::write(&file, &journal[..journal.len() - 40]).unwrap();
    let (code, _, error) = replay(&binary, &file).await;
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("cut off"), "{error}");
}
