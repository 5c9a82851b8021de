//! The scheduler is killed again and again while Pods with devices come and go.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;
use tokio::time::sleep;

use super::super::corridoros::count_from;
use super::{DeviceSite, GPU, TEAM};
use crate::binaries::say;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::devices::{
    DeviceClaim, DeviceClaimState as _, SliceTemplate, Uses, claims_in, create_class_of_driver,
    delete_device_claim,
};
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::observe::{PATIENCE, Seen, until, until_pods};
use crate::random::Random;

const KILLS: usize = 3;
const SEED: u64 = 7;
const NODES: usize = 3;
/// Two rounds need 12 of the 15: with any 10 taken, some node has the two that one Pod asks for.
const GPUS_OF_A_NODE: usize = 5;
/// Rounds whose Pods live beside each other. While one more begins, some Pods wait.
const ROUNDS_ALIVE: usize = 2;
/// Longer than the scheduler takes to start and to bind what is there, so that kills fall everywhere.
const LIFE_MS_MAX: usize = 1500;

const MEMORY: &str = "memory.example.com";
const PARTS: &str = "parts.example.com";

/// Each kind of Pod, and where it has its claim from. `shared` and `follows` use one claim.
const KINDS: [(&str, Uses<'static>); 8] = [
    ("single", Uses::Template("single")),
    ("another", Uses::Template("single")),
    ("double", Uses::Template("double")),
    ("either", Uses::Template("either")),
    ("part", Uses::Template("part")),
    ("memory", Uses::Template("memory")),
    ("shared", Uses::Claim("")),
    ("follows", Uses::Claim("")),
];

/// `CORRIDOR_E2E_DEVICE_KILLS` kills at random moments. In the end every Pod is bound, and when all are gone every
/// device is free.
pub async fn killed_again_and_again_with_devices(site: &DeviceSite) -> Result<()> {
    let kills = count_from("CORRIDOR_E2E_DEVICE_KILLS", KILLS)?;
    prepare(site).await?;
    let mut random = Random::new(SEED);
    for round in 0..kills {
        begin(site, round).await?;
        let scheduler = site.cluster.start_scheduler().await?;
        sleep(Duration::from_millis(random.below(LIFE_MS_MAX) as u64)).await;
        if let Some(old) = round.checked_sub(ROUNDS_ALIVE) {
            end(site, old, &mut random).await?;
        }
        scheduler.kill9_quietly().await?;
    }
    let scheduler = site.cluster.start_scheduler().await?;
    let done = |seen: &Seen<Pod>| seen.values().all(|pod| pod.node().is_some());
    until_pods(&site.cluster.pods(TEAM), "every Pod to be bound", PATIENCE, done).await?;
    for round in kills.saturating_sub(ROUNDS_ALIVE)..kills {
        end(site, round, &mut random).await?;
    }
    ensure_everything_is_free(site).await?;
    let figures = site.check().await?;
    say(&format!(
        "{kills} kills; {} versions, {} allocations, {} Pods with claims bound",
        figures.versions, figures.allocations, figures.bindings,
    ));
    let code = scheduler.terminate().await?;
    ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))
}

/// GPUs of nodes, memory that all reach, and one device that is given out in parts.
async fn prepare(site: &DeviceSite) -> Result<()> {
    let admin = site.admin();
    site.create_gpus(&[GPUS_OF_A_NODE; NODES]).await?;
    for driver in [MEMORY, PARTS] {
        create_class_of_driver(admin, driver, driver).await?;
    }
    let capacity = json!({ "memory": { "value": "24Gi" } });
    let expander = json!({ "allowMultipleAllocations": true, "capacity": capacity });
    let pool = SliceTemplate::everywhere(MEMORY, "rack").device("expander", expander);
    pool.create(admin, "rack").await?;
    let sets = json!([{ "name": "whole", "counters": { "slices": { "value": "2" } } }]);
    let parts = SliceTemplate::everywhere(PARTS, "parts").one_of(2);
    parts.clone().set("sharedCounters", sets).create(admin, "counters").await?;
    let draws = json!([{ "counterSet": "whole", "counters": { "slices": { "value": "1" } } }]);
    let part = json!({ "consumesCounters": draws });
    let parts = ["a", "b", "c"].iter().fold(parts, |it, name| it.device(name, part.clone()));
    parts.create(admin, "parts").await?;

    site.create_template("single", &DeviceClaim::of(GPU, 1)).await?;
    site.create_template("double", &DeviceClaim::of(GPU, 2)).await?;
    let either = DeviceClaim::default().first_available("any", &[(PARTS, 4), (GPU, 1)]);
    site.create_template("either", &either).await?;
    site.create_template("part", &DeviceClaim::of(PARTS, 1)).await?;
    let capacity = json!({ "requests": { "memory": "10Gi" } });
    let memory = DeviceClaim::one(MEMORY, json!({ "capacity": capacity }));
    site.create_template("memory", &memory).await
}

async fn begin(site: &DeviceSite, round: usize) -> Result<()> {
    let shared = format!("shared-{round}");
    site.create_claim(&shared, &DeviceClaim::of(GPU, 1)).await?;
    for (kind, uses) in KINDS {
        let uses = match uses {
            Uses::Claim(_) => Uses::Claim(&shared),
            Uses::Template(_) => uses,
        };
        let pod = PodTemplate::small().devices(&[uses]);
        site.create_pod_as(&format!("{kind}-{round}"), &pod).await?;
    }
    Ok(())
}

/// Ends the Pods of a round, bound or not, in either way, and its claim.
async fn end(site: &DeviceSite, round: usize, random: &mut Random) -> Result<()> {
    let pods = site.cluster.pods(TEAM);
    let pods = pods.list(&ListParams::default()).await.doing(format!("ending round {round}"))?;
    let is_of_it = |pod: &&Pod| pod.name_any().ends_with(&format!("-{round}"));
    for pod in pods.iter().filter(is_of_it) {
        if pod.node().is_some() && random.below(2) == 0 {
            site.end_pod(&pod.name_any()).await?;
        } else {
            delete_pod(site.admin(), TEAM, &pod.name_any()).await?;
        }
    }
    delete_device_claim(site.admin(), TEAM, &format!("shared-{round}")).await
}

/// No claim has a device any more, and Pods that ask for all of a node's find them.
async fn ensure_everything_is_free(site: &DeviceSite) -> Result<()> {
    let free = |seen: &Seen<ResourceClaim>| !seen.values().any(ResourceClaim::is_allocated);
    let claims = claims_in(site.admin(), TEAM);
    until(&claims, "every device to be free", PATIENCE, free).await?;
    site.create_template("all", &DeviceClaim::of(GPU, GPUS_OF_A_NODE)).await?;
    let whole = PodTemplate::small().devices(&[Uses::Template("all")]);
    site.cluster.create_pods(TEAM, "whole", NODES, &whole).await?;
    for number in 0..NODES {
        site.until_bound(&format!("whole-{number}")).await?;
    }
    Ok(())
}
