//! A daemon that is slow or fails, and objects whose calls take long.

use std::time::{Duration, Instant};

use e2e::objects::custom::{Custom, CustomKind};
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::observe::{PATIENCE, Seen, until};
use e2e::stage::backend_arguments;
use e2e::{Cluster, DaemonsProcess, Result, SYSTEM_NAMESPACE, SchedulerProcess};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{OTHER, TROUBLED, bind, run};

/// More calls than any test makes.
const ALWAYS: u32 = 1_000_000;
/// Longer than anybody waits for a reply.
const TOO_SLOW: Duration = Duration::from_secs(30);
/// More than the passes that one namespace may have under way.
const CROWD: usize = 48;
/// More than twice the passes over one kind of object that may be under way.
const VAST_CROWD: usize = 600;
/// What a call to a daemon may take.
const CALL_TIME_MAX: Duration = Duration::from_secs(5);
/// Nobody has waited for one.
const SOON: Duration = Duration::from_secs(4);

fn corridor_spec() -> Value {
    json!({"lanes": 1, "lambdaNm": [1550], "minGbps": 1, "attestationRequired": false})
}

fn bundle_spec() -> Value {
    json!({"bytes": 1 << 20, "latencyClass": "T2", "bandwidthFloorGBs": 1, "shareable": true})
}

async fn create(
    cluster: &Cluster,
    kind: CustomKind,
    namespace: &str,
    name: &str,
) -> Result<Custom> {
    let spec = if kind == CustomKind::MemoryBundle { bundle_spec() } else { corridor_spec() };
    Custom::create(cluster.admin(), kind, namespace, name, spec).await
}

/// How long it takes until an object that is created now is Ready.
async fn time_to_ready(cluster: &Cluster, kind: CustomKind, name: &str) -> Result<Duration> {
    let began = Instant::now();
    create(cluster, kind, OTHER, name).await?.until_ready().await?;
    Ok(began.elapsed())
}

/// corrd in one process, memqosd and attestd in another, and a scheduler that works with them.
async fn start(cluster: &Cluster) -> Result<(SchedulerProcess, DaemonsProcess, DaemonsProcess)> {
    cluster.ensure_namespace(SYSTEM_NAMESPACE).await?;
    let corrd = DaemonsProcess::start(cluster.scheduler_binary(), &[]).await?;
    let others = DaemonsProcess::start(cluster.scheduler_binary(), &[]).await?;
    let mut arguments = backend_arguments(&others.url(), &others.trusted_keys());
    let at = arguments.iter().position(|it| it == "--corrd-url").unwrap();
    arguments[at + 1] = corrd.url();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let scheduler = cluster.start_scheduler_with(&arguments).await?;
    Ok((scheduler, corrd, others))
}

/// Whatever becomes of the calls to corrd, bundles become Ready, and Pods are bound that do not refer to a Corridor.
async fn all_but_corridors_go_on(trouble: &str, order: impl AsyncFnOnce(&DaemonsProcess)) {
    run(async |cluster| {
        let (_scheduler, corrd, _others) = start(cluster).await?;
        // Telemetry has flowed, and stops.
        create(cluster, CustomKind::Corridor, TROUBLED, "old").await?.until_ready().await?;
        order(&corrd).await;
        let mut corridors = Vec::new();
        for number in 0..CROWD {
            let name = format!("stuck-{number}");
            corridors.push(create(cluster, CustomKind::Corridor, TROUBLED, &name).await?);
        }
        corridors[0].until_not_ready("BackendUnreachable", &[]).await?;
        for number in 0..3 {
            let name = format!("free-{number}");
            let ready = time_to_ready(cluster, CustomKind::MemoryBundle, &name).await?;
            let bound = bind(cluster, OTHER, &name).await?;
            let began = Instant::now();
            let referring = PodTemplate::small()
                .annotation("corridoros.io/memoryBundleRef", &format!("{OTHER}/{name}"));
            let name = format!("user-{number}");
            referring.create(cluster.admin(), OTHER, &name).await?;
            cluster.until_pod(OTHER, &name, "bound", |pod| pod.node().is_some()).await?;
            let used = began.elapsed();
            println!(
                "beside a corrd that {trouble}, a bundle is Ready after {ready:?}, its user bound \
                 after {used:?}, another Pod after {bound:?}"
            );
            assert!(ready < SOON && bound < SOON && used < SOON);
        }
        let stuck = corridors[CROWD - 1].get().await?;
        assert_ne!(stuck["status"]["phase"], "Ready", "corrd was in trouble all the time");
        corrd.clear_faults().await?;
        for corridor in &corridors {
            corridor.until_ready().await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_corrd_that_does_not_answer_in_time_holds_up_neither_bundles_nor_pods_without_corridors()
{
    let slow = async |corrd: &DaemonsProcess| {
        corrd.order_delay("*", ALWAYS, TOO_SLOW).await.unwrap();
    };
    all_but_corridors_go_on("does not answer in time", slow).await;
}

#[tokio::test]
async fn a_corrd_that_fails_holds_up_neither_bundles_nor_pods_without_corridors() {
    let failing = async |corrd: &DaemonsProcess| {
        corrd.order_fault("http_5xx", "*", ALWAYS).await.unwrap();
    };
    all_but_corridors_go_on("fails", failing).await;
}

/// Releases go to a route of their own, so others' calls are quick.
const RELEASE: &str = "DELETE /v1/corridors/{id}";

#[tokio::test]
async fn one_object_whose_release_is_slow_holds_up_no_other_of_its_namespace() {
    run(async |cluster| {
        let (_scheduler, corrd, _others) = start(cluster).await?;
        let slow = create(cluster, CustomKind::Corridor, OTHER, "slow").await?;
        slow.until_ready().await?;
        corrd.order_delay(RELEASE, ALWAYS, TOO_SLOW).await?;
        slow.delete().await?;
        slow.until_phase("Releasing").await?;
        for number in 0..3 {
            let name = format!("free-{number}");
            let ready = time_to_ready(cluster, CustomKind::Corridor, &name).await?;
            println!("beside an object that is released slowly, another is Ready after {ready:?}");
            assert!(ready < SOON, "{ready:?}");
        }
        let releasing = slow.get().await?;
        assert_eq!(releasing["status"]["phase"], "Releasing", "its release has not ended");
        corrd.clear_faults().await?;
        slow.until_gone().await
    })
    .await;
}

#[tokio::test]
async fn slow_releases_of_one_namespace_hold_up_no_allocation_in_another() {
    run(async |cluster| {
        let (_scheduler, corrd, _others) = start(cluster).await?;
        let slow = CustomKind::Corridor.objects_in(cluster.admin(), TROUBLED);
        let in_phase = |seen: &Seen<DynamicObject>, phase: &str| {
            seen.values().filter(|it| it.data["status"]["phase"] == phase).count()
        };
        for number in 0..VAST_CROWD {
            create(cluster, CustomKind::Corridor, TROUBLED, &format!("slow-{number}")).await?;
        }
        until(&slow, "all to be Ready", PATIENCE, |it| in_phase(it, "Ready") == VAST_CROWD).await?;
        corrd.order_delay(RELEASE, ALWAYS, TOO_SLOW).await?;
        let (now, all) = (DeleteParams::default(), ListParams::default());
        slow.delete_collection(&now, &all).await.unwrap();
        // While each of them is released, and its call times out, more than once.
        let (mut number, began) = (0, Instant::now());
        while began.elapsed() < 3 * CALL_TIME_MAX {
            let name = format!("free-{number}");
            let ready = time_to_ready(cluster, CustomKind::Corridor, &name).await?;
            println!("beside slow releases, another's Corridor is Ready after {ready:?}");
            assert!(ready < SOON, "{ready:?}");
            number += 1;
            sleep(Duration::from_millis(500)).await;
        }
        let left = slow.list(&all).await.unwrap().items.len();
        assert_eq!(left, VAST_CROWD, "no release has ended");
        corrd.clear_faults().await?;
        until(&slow, "all to be gone", 2 * PATIENCE, Seen::is_empty).await.map(drop)
    })
    .await;
}
