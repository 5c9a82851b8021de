//! Claims that people make by name, and that several Pods may use.

use serde_json::{Value, json};

use super::{DeviceSite, GPU, TEAM};
use crate::error::{Result, ensure};
use crate::objects::devices::{DeviceClaim, DeviceClaimState as _, Uses, write_claim_status};
use crate::objects::pods::{PodState as _, delete_pod};

const SHARED: &str = "shared";
/// As many as a claim may have.
const USERS_MAX: usize = 256;

/// The first of its Pods gets the devices, the others follow to its node; the last one that ends frees them.
pub async fn pods_follow_a_shared_claim(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1, 1, 1]).await?;
    site.create_claim(SHARED, &DeviceClaim::of(GPU, 1)).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    let pods = ["a", "b", "c", "d"];
    for pod in pods {
        site.create_pod(pod, &[Uses::Claim(SHARED)]).await?;
    }
    let mut nodes = Vec::new();
    for pod in pods {
        nodes.extend(site.until_bound(pod).await?.node().map(str::to_owned));
    }
    nodes.dedup();
    ensure(nodes.len() == 1, || format!("the Pods of one claim are on {nodes:?}"))?;
    let has_all = |count| move |claim: &_| users(claim) == count;
    site.until_claim(SHARED, "reserved for all Pods", has_all(pods.len())).await?;
    for pod in pods {
        delete_pod(site.admin(), TEAM, pod).await?;
    }
    site.until_claim(SHARED, "free", |claim| !claim.is_allocated()).await.map(drop)
}

fn users(claim: &k8s_openapi::api::resource::v1::ResourceClaim) -> usize {
    claim.users().len()
}

/// What a claim has, by whomever, decides where its Pod goes.
pub async fn allocated_claim_decides_the_node(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1, 2, 1]).await?;
    site.create_claim("given", &DeviceClaim::of(GPU, 1)).await?;
    site.allocate("given", "node-2", "gpu-1").await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &[Uses::Claim("given")]).await?;
    site.until_bound_to("pod", "node-2").await?;
    site.until_bound_with("pod", &["node-2/gpu-1"]).await
}

/// A Pod that names a claim twice uses it once.
pub async fn claim_that_is_named_twice_counts_once(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    site.create_claim(SHARED, &DeviceClaim::of(GPU, 1)).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    let twice = [Uses::Claim(SHARED), Uses::Claim(SHARED)];
    site.create_pod("pod", &twice).await?;
    site.until_bound("pod").await?;
    let once = |claim: &_| users(claim) == 1;
    site.until_claim(SHARED, "reserved once", once).await.map(drop)
}

/// A claim with as many users as it may have takes no more, and the Pod is told so, until one of them goes.
pub async fn claim_has_no_room_for_another_user(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    site.create_claim(SHARED, &DeviceClaim::of(GPU, 1)).await?;
    site.allocate(SHARED, "node-1", "gpu-0").await?;
    let others = |count: usize| -> Vec<Value> { (0..count).map(other_user).collect() };
    let reserve = async |users: Vec<Value>| {
        let status = json!({ "reservedFor": users });
        write_claim_status(site.admin(), TEAM, SHARED, status).await
    };
    reserve(others(USERS_MAX)).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    let pod = site.create_pod("late", &[Uses::Claim(SHARED)]).await?;
    let words = format!("resource claim team-a/{SHARED} is reserved for {USERS_MAX} users");
    site.until_held("late", &[&words]).await?;
    reserve(others(USERS_MAX - 1)).await?;
    site.until_bound("late").await?;
    // The others are of no kind that a controller knows, and would keep the devices for ever.
    reserve(vec![json!({ "resource": "pods", "name": "late", "uid": pod.uid_str() })]).await
}

/// Something that is no Pod: no controller takes it out.
fn other_user(number: usize) -> Value {
    let name = format!("other-{number}");
    json!({ "apiGroup": "example.com", "resource": "others", "name": name, "uid": name })
}
