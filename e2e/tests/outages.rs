//! The API server is away for a while, a CRD is deleted and installed again, answers are lost: what comes afterwards is
//! as it always is, and no tampering is reported.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use e2e::objects::custom::{Custom, CustomKind};
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::proxy::{Call, CarryOut, Gate};
use e2e::site::{Site, SiteOptions};
use e2e::stage::Stage;
use e2e::{Cluster, ControlPlane, Result, SYSTEM_NAMESPACE, metrics};
use futures::FutureExt as _;
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::sleep;

const TEAM: &str = "team-a";
/// A watch is begun again after a second, and a path takes a moment to allocate.
const READY_AGAIN_MAX: Duration = Duration::from_secs(5);

fn corridor(gbps: u32) -> Value {
    json!({
        "lanes": 1, "lambdaNm": [1550], "minGbps": gbps, "attestationRequired": false,
    })
}

/// How long a new Corridor takes to be Ready.
async fn ready_after(cluster: &Cluster, name: &str) -> Result<Duration> {
    let began = Instant::now();
    let made =
        Custom::create(cluster.admin(), CustomKind::Corridor, TEAM, name, corridor(10)).await?;
    made.until_ready().await?;
    Ok(began.elapsed())
}

#[tokio::test]
async fn after_an_outage_a_new_corridor_is_ready_at_once() {
    const AWAY: Duration = Duration::from_secs(25);
    let mut plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    let _site = Site::start(&cluster, SiteOptions::default()).await.unwrap();
    ready_after(&cluster, "before").await.unwrap();
    plane.restart_api_server_after(AWAY).await.unwrap();
    let took = ready_after(&cluster, "after").await.unwrap();
    println!("after {AWAY:?} without an API server, a new Corridor is Ready after {took:?}");
    assert!(took < READY_AGAIN_MAX, "{took:?}");
}

#[tokio::test]
async fn a_crd_that_is_deleted_is_absent_and_one_that_is_back_counts_at_once() {
    const CRD: &str = "corridors.corridoros.io";
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    let site = Site::start(&cluster, SiteOptions::default()).await.unwrap();
    ready_after(&cluster, "before").await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.admin().clone());
    crds.delete(CRD, &DeleteParams::default()).await.unwrap();
    let began = Instant::now();
    while !site.scheduler.get("/readyz").await.unwrap().contains(&format!("[absent] {CRD}")) {
        assert!(began.elapsed() < Duration::from_mins(1), "it still counts as synced");
        sleep(Duration::from_millis(100)).await;
    }
    let asking = PodTemplate::small().annotation("corridoros.io/corridorRef", "team-a/before");
    asking.create(cluster.admin(), TEAM, "asking").await.unwrap();
    let is_told = |it: &str| it.contains("not installed");
    let told = cluster.until_pod(TEAM, "asking", "told that the CRD is not installed", |pod| {
        pod.waiting_message().is_some_and(is_told)
    });
    told.await.unwrap();
    // Longer than any pause between two attempts.
    sleep(Duration::from_secs(10)).await;
    plane.install_crds().await.unwrap();
    let took = ready_after(&cluster, "before").await.unwrap();
    println!("after its CRD was installed again, a Corridor is Ready after {took:?}");
    assert!(took < READY_AGAIN_MAX, "{took:?}");
    cluster.until_pod(TEAM, "asking", "bound", |pod| pod.node().is_some()).await.unwrap();
}

/// Carries writes out, and loses the answers to most of them.
#[derive(Debug, Default)]
struct LostAnswers {
    loses: AtomicBool,
    writes: AtomicUsize,
    lost: AtomicUsize,
}

impl Gate for LostAnswers {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        let is_write = call.method != Method::GET && !call.path().contains("/leases");
        let is_of_api = call.path().starts_with("/api");
        if !is_write || !is_of_api || !self.loses.load(Ordering::SeqCst) {
            return carry_out;
        }
        // One in four is answered, so that something gets on.
        if self.writes.fetch_add(1, Ordering::SeqCst) % 4 == 3 {
            return carry_out;
        }
        self.lost.fetch_add(1, Ordering::SeqCst);
        async move {
            carry_out.await?;
            Err(e2e::Error::ReplyLost)
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_are_no_tampering_and_a_forgery_among_them_is() {
    const LOSING: Duration = Duration::from_mins(1);
    let gate = Arc::new(LostAnswers::default());
    let stage = Stage::start(Arc::clone(&gate) as _).await.unwrap();
    let cluster = &stage.cluster;
    for namespace in [TEAM, SYSTEM_NAMESPACE] {
        cluster.ensure_namespace(namespace).await.unwrap();
    }
    cluster.create_nodes(3, &NodeTemplate::new("64", "256Gi")).await.unwrap();
    let scheduler = stage.start_scheduler().await.unwrap();
    let victim =
        Custom::create(cluster.admin(), CustomKind::Corridor, TEAM, "victim", corridor(10));
    let victim = victim.await.unwrap();
    victim.until_ready().await.unwrap();
    gate.loses.store(true, Ordering::SeqCst);
    let began = Instant::now();
    let mut made = Vec::new();
    while began.elapsed() < LOSING {
        let name = format!("c{}", made.len());
        let one = Custom::create(cluster.admin(), CustomKind::Corridor, TEAM, &name, corridor(1));
        let one = one.await.unwrap();
        let asks = PodTemplate::small().refer(&one, Some("1"));
        asks.create(cluster.admin(), TEAM, &name).await.unwrap();
        if let Some(edited) = made.last() {
            let edited: &Custom = edited;
            edited.patch_spec(json!({ "minGbps": 2 })).await.unwrap();
        }
        made.push(one);
        sleep(Duration::from_secs(3)).await;
    }
    let lost = gate.lost.load(Ordering::SeqCst);
    let alarms = tampering(&scheduler.metrics().await.unwrap());
    println!("{lost} answers were lost, of writes for {} Corridors: {alarms} alarms", made.len());
    assert!(lost > 50, "{lost} answers were lost");
    let log = scheduler.log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("tampering")).collect();
    assert!(alarms < 1.0, "{told:#?}");
    // Meanwhile another account does write what only the scheduler writes.
    let forged =
        json!({ "status": { "achievableGbps": 9999.0, "phase": "Ready", "floorGbps": 9999.0 } });
    let corridors = CustomKind::Corridor.objects_in(cluster.admin(), TEAM);
    let patched =
        corridors.patch_status("victim", &PatchParams::default(), &Patch::Merge(forged)).await;
    patched.unwrap();
    let began = Instant::now();
    while tampering(&scheduler.metrics().await.unwrap()) < 1.0 {
        assert!(began.elapsed() < Duration::from_secs(30), "the forgery is not told");
        sleep(Duration::from_millis(200)).await;
    }
    gate.loses.store(false, Ordering::SeqCst);
    for one in &made {
        one.until_ready().await.unwrap();
    }
}

fn tampering(scraped: &str) -> f64 {
    metrics::sum(scraped, "corridor_tampering_total", &[])
}
