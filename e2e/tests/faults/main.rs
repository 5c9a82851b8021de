//! The table of faults between the scheduler and the API server, one test for each. In every one, each
//! Pod that fits is bound, once, and no limit is exceeded in any version.
//!
//! | # | Fault |
//! |---|---|
//! | 1 | a watch is cut |
//! | 2 | a watch falls silent |
//! | 3 | a watch is told that it is too old (410) |
//! | 4 | a list is told so |
//! | 5–11 | a Binding is answered 409, 404, 422, 429, 500, 503 or 504 without being carried out |
//! | 12 | a Binding is carried out, and the answer is lost |
//! | 13 | a Binding arrives a minute late |
//! | 14 | events come twice |
//! | 15 | a Pod is deleted while it is being bound |
//! | 16 | a Pod is edited while it is being bound |
//! | 17 | a Node is deleted while a Pod is being bound to it |
//! | 18 | a Pod cannot be read |
//! | 19 | a bound Pod cannot be read |
//! | 20 | the API server is killed and started again |
//! | 21 | etcd is killed and started again |
//! | 22 | a CRD is not installed |
//! | 23 | the wall clock steps, an hour ahead and an hour back |
//! | 24 | the queue of Events is full |

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

mod inside;

use std::sync::Arc;
use std::time::Duration;

use e2e::binaries::say;
use e2e::faults::gate::{BindFault, Faults, WatchFault};
use e2e::faults::site::{FaultSite, TEAM, UNREADABLE};
use e2e::metrics;
use e2e::objects::corridors::Corridor;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::{ControlPlane, Result};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::Mutex;

/// Silence is noticed after half a minute, a machine that is busy needs some more.
const PATIENCE: Duration = Duration::from_mins(2);
const PLACES: usize = 60;

/// One plane for all tests of this file, held by one at a time. It ends with the process.
static SHARED: Mutex<Option<ControlPlane>> = Mutex::const_new(None);

async fn run(story: impl AsyncFnOnce(&ControlPlane) -> Result<()>) {
    let mut shared = SHARED.lock().await;
    if shared.is_none() {
        let plane = ControlPlane::start().await.unwrap();
        plane.install_crds().await.unwrap();
        *shared = Some(plane);
    }
    if let Err(problem) = story(shared.as_ref().unwrap()).await {
        panic!("{problem}");
    }
}

/// On a plane of its own, beside the others: for stories that are mostly waiting.
async fn run_beside(story: impl AsyncFnOnce(&ControlPlane) -> Result<()>) {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    if let Err(problem) = story(&plane).await {
        panic!("{problem}");
    }
}

/// Plays the story with faults that take no place away, and makes sure that they were there.
async fn play(plane: &ControlPlane, set: impl FnOnce(&Faults)) -> Result<()> {
    let faults = Arc::new(Faults::default());
    set(&faults);
    FaultSite::start(plane, &faults).await?.play(PATIENCE).await?;
    say(&format!("struck {} times", faults.struck()));
    assert!(faults.struck() > 0, "the fault was never met");
    Ok(())
}

async fn with(set: impl FnOnce(&Faults)) {
    run(async |plane| play(plane, set).await).await;
}

#[tokio::test]
async fn fault_01_a_watch_is_cut() {
    with(|faults| faults.on_watches(WatchFault::Cut, 5)).await;
}

#[tokio::test]
async fn fault_02_a_watch_falls_silent() {
    run_beside(async |plane| play(plane, |it| it.on_watches(WatchFault::Silent, 1)).await).await;
}

#[tokio::test]
async fn fault_03_a_watch_is_too_old() {
    with(|faults| faults.on_watches(WatchFault::TooOld, 3)).await;
}

#[tokio::test]
async fn fault_04_a_list_is_too_old() {
    with(|faults| faults.on_lists(3)).await;
}

async fn with_bindings_answered(code: u16) {
    with(|faults| faults.on_binds(BindFault::Answered(code), 8)).await;
}

#[tokio::test]
async fn fault_05_a_binding_is_answered_409() {
    with_bindings_answered(409).await;
}

#[tokio::test]
async fn fault_06_a_binding_is_answered_404() {
    with_bindings_answered(404).await;
}

#[tokio::test]
async fn fault_07_a_binding_is_answered_422() {
    with_bindings_answered(422).await;
}

#[tokio::test]
async fn fault_08_a_binding_is_answered_429() {
    with_bindings_answered(429).await;
}

#[tokio::test]
async fn fault_09_a_binding_is_answered_500() {
    with_bindings_answered(500).await;
}

#[tokio::test]
async fn fault_10_a_binding_is_answered_503() {
    with_bindings_answered(503).await;
}

#[tokio::test]
async fn fault_11_a_binding_is_answered_504() {
    with_bindings_answered(504).await;
}

#[tokio::test]
async fn fault_12_the_answer_to_a_binding_is_lost() {
    with(|faults| faults.on_binds(BindFault::ReplyLost, 20)).await;
}

#[tokio::test]
async fn fault_13_a_binding_arrives_a_minute_late() {
    run_beside(async |plane| {
        let faults = Arc::new(Faults::default());
        faults.on_binds(BindFault::Delayed(Duration::from_mins(1)), 3);
        let site = FaultSite::start(plane, &faults).await?;
        site.create_pods().await?;
        site.until_bound(PLACES - 3).await?;
        faults.until_none_is_late().await;
        site.finish(PLACES, PATIENCE).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn fault_14_events_come_twice() {
    with(Faults::double_events).await;
}

/// Does something to each of the first Pods that are being bound.
async fn while_binding(
    times: usize,
    places: usize,
    meddle: impl Fn(Client, String) -> futures::future::BoxFuture<'static, ()> + Send + Sync + 'static,
) {
    run(async |plane| {
        let faults = Arc::new(Faults::default());
        let admin = plane.admin();
        let first = move |pod: String| meddle(admin.clone(), pod);
        faults.on_binds(BindFault::After(Arc::new(first)), times);
        let site = FaultSite::start(plane, &faults).await?;
        site.create_pods().await?;
        site.finish(places, PATIENCE).await?;
        assert_eq!(faults.struck(), times, "not as often as it should be");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn fault_15_a_pod_is_deleted_while_it_is_bound() {
    // As many as are too many: the others have their places.
    while_binding(4, PLACES, |admin, pod| {
        async move {
            let pods: Api<Pod> = Api::namespaced(admin, TEAM);
            let _ = pods.delete(&pod, &DeleteParams::default().grace_period(0)).await;
        }
        .boxed()
    })
    .await;
}

#[tokio::test]
async fn fault_16_a_pod_is_edited_while_it_is_bound() {
    while_binding(10, PLACES, |admin, pod| {
        async move {
            let pods: Api<Pod> = Api::namespaced(admin, TEAM);
            let patch = Patch::Merge(json!({ "metadata": { "labels": { "edited": "yes" } } }));
            let _ = pods.patch(&pod, &PatchParams::default(), &patch).await;
        }
        .boxed()
    })
    .await;
}

#[tokio::test]
async fn fault_17_a_node_is_deleted_while_a_pod_is_bound_to_it() {
    // Its ten places are gone, but for those that were taken before; at least the other fifty count.
    while_binding(1, PLACES - 10, |admin, _| {
        async move {
            let nodes: Api<Node> = Api::all(admin);
            let _ = nodes.delete("node-1", &DeleteParams::default()).await;
        }
        .boxed()
    })
    .await;
}

#[tokio::test]
async fn fault_18_a_pod_cannot_be_read() {
    run(async |plane| {
        let faults = Arc::new(Faults::default());
        faults.edit_pods(|pod| {
            if pod["metadata"]["name"] == UNREADABLE {
                pod["spec"]["priority"] = json!("high");
            }
        });
        let site = FaultSite::start(plane, &faults).await?;
        PodTemplate::small().create(site.cluster.admin(), TEAM, UNREADABLE).await?;
        site.create_pods().await?;
        let scraped = until_unreadable(&site).await?;
        assert!(metrics::sum(&scraped, "corridor_unreadable_objects_total", &[]) > 0.5);
        let pods = site.finish(PLACES, PATIENCE).await?;
        assert!(pods[&format!("{TEAM}/{UNREADABLE}")].node().is_none());
        Ok(())
    })
    .await;
}

async fn until_unreadable(site: &FaultSite) -> Result<String> {
    for _ in 0..600 {
        let scraped = site.scheduler.metrics().await?;
        if metrics::sum(&scraped, "corridor_unreadable_objects_total", &["resource=\"pods\""]) > 0.5
        {
            return Ok(scraped);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing was unreadable");
}

#[tokio::test]
async fn fault_19_a_bound_pod_cannot_be_read() {
    run(async |plane| {
        let faults = Arc::new(Faults::default());
        faults.edit_pods(|pod| {
            if pod["metadata"]["name"] == UNREADABLE {
                pod["spec"]["containers"][0]["resources"] = json!("lots");
            }
        });
        let site = FaultSite::start(plane, &faults).await?;
        // It takes all of node-1, which the scheduler cannot see.
        let big = PodTemplate::new("1", "64Mi").spec("nodeName", json!("node-1"));
        big.create(site.cluster.admin(), TEAM, UNREADABLE).await?;
        until_unreadable(&site).await?;
        site.create_pods().await?;
        let pods = site.finish(PLACES - 10 + 1, PATIENCE).await?;
        let on_it = pods.values().filter(|pod| pod.node() == Some("node-1")).count();
        assert_eq!(on_it, 1, "something was put where it is not known what is used");
        Ok(())
    })
    .await;
}

/// Half of the Pods come before, half after a server was away; Bindings are under way meanwhile.
async fn while_restarting(restart: impl AsyncFnOnce(&mut ControlPlane) -> Result<()>) {
    let mut plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let story = async {
        let site = FaultSite::start(&plane, &Arc::new(Faults::default())).await?;
        let site = site.without_whole_audit();
        site.create_pods().await?;
        restart(&mut plane).await?;
        site.finish(PLACES, PATIENCE).await.map(drop)
    };
    if let Err(problem) = story.await {
        panic!("{problem}");
    }
}

#[tokio::test]
async fn fault_20_the_api_server_is_restarted() {
    while_restarting(async |plane| plane.restart_api_server().await).await;
}

#[tokio::test]
async fn fault_21_etcd_is_restarted() {
    while_restarting(async |plane| plane.restart_etcd().await).await;
}

#[tokio::test]
async fn fault_22_a_crd_is_not_installed() {
    let plane = ControlPlane::start().await.unwrap();
    let story = async {
        let cluster = plane.cluster().await?;
        cluster.ensure_namespace(TEAM).await?;
        cluster.create_nodes(1, &NodeTemplate::new("1", "64Gi")).await?;
        let scheduler = cluster.start_scheduler().await?;
        let asking = PodTemplate::small().annotation("corridoros.io/corridorRef", "team-a/c1");
        asking.create(cluster.admin(), TEAM, "asking").await?;
        PodTemplate::small().create(cluster.admin(), TEAM, "plain").await?;
        cluster.until_pod(TEAM, "plain", "bound", |pod| pod.node().is_some()).await?;
        let held = |pod: &Pod| pod.waiting_message().is_some();
        let held = cluster.until_pod(TEAM, "asking", "held", held).await?;
        let why = held.waiting_message().unwrap_or_default().to_owned();
        assert!(why.contains("not installed"), "{why}");
        let ready = scheduler.get("/readyz").await?;
        assert!(ready.contains("[absent] corridors.corridoros.io"), "{ready}");
        // And as soon as it is there, it counts.
        plane.install_crds().await?;
        let _lease = cluster.hold_corrd_lease().await?;
        Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
        cluster.until_pod(TEAM, "asking", "bound", |pod| pod.node().is_some()).await
    };
    if let Err(problem) = story.await {
        panic!("{problem}");
    }
}
