//! Writes and watches that fail: replies that are lost, calls that are refused, others that write in between.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::FutureExt as _;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::gate::{GatedScheduler, Then, Write};
use super::site::allocate_elsewhere;
use super::{CANNOT_ALLOCATE, DeviceSite, GPU, TEAM};
use crate::error::{Result, ensure};
use crate::objects::devices::{
    DeviceClaim, DeviceClaimState as _, Uses, claims_in, write_claim_status,
};
use crate::objects::pods::delete_pod;
use crate::observe::PATIENCE;

const STEP: &str = "example.com/step";
const ONE: &str = "one-gpu";
/// As the API server answers: in conflict, too busy, broken, away.
const CODES: [u16; 4] = [409, 429, 500, 503];

/// A reply to each kind of write is lost, and each kind of write refused in each way, while six Pods are placed. All Pods are
/// bound, each with a device of its own.
pub async fn lost_replies_and_refusals_lose_nothing(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[3, 3]).await?;
    site.create_template(ONE, &DeviceClaim::of(GPU, 1)).await?;
    let mut plans = Vec::new();
    for write in Write::ALL {
        plans.push((write, Then::LoseReply));
    }
    for code in CODES {
        plans.extend(Write::ALL.map(|write| (write, Then::Answer(code))));
    }
    let count = plans.len();
    let scheduler = GatedScheduler::start(&site.cluster, plans).await?;
    let (mut devices, pods) = (BTreeSet::new(), (0..6).map(|number| format!("pod-{number}")));
    for pod in pods.clone() {
        site.create_pod(&pod, &[Uses::Template(ONE)]).await?;
    }
    for pod in pods {
        devices.extend(site.until_bound_with_claim(&pod).await?.devices());
    }
    ensure(devices.len() == 6, || format!("six Pods have {devices:?}"))?;
    // What is left of the faults is for the next Pods.
    let mut number = 6;
    while scheduler.reached() < count {
        site.end_pod(&format!("pod-{}", number - 6)).await?;
        let pod = format!("pod-{number}");
        site.create_pod(&pod, &[Uses::Template(ONE)]).await?;
        site.until_bound(&pod).await?;
        number += 1;
    }
    Ok(())
}

/// Another scheduler gives the claim a device while ours is about to give it another one: the claim keeps what it has,
/// and the Pod goes there.
pub async fn claim_that_another_scheduler_allocates_is_followed(site: &DeviceSite) -> Result<()> {
    for (number, write) in [Write::Finalizer, Write::Status].into_iter().enumerate() {
        let claim = format!("claim-{number}");
        if number == 0 {
            site.create_gpus(&[1, 2]).await?;
        }
        site.create_claim(&claim, &DeviceClaim::of(GPU, 1)).await?;
        let (client, of, device) = (site.admin().clone(), claim.clone(), format!("gpu-{number}"));
        let elsewhere = async move {
            // Should it fail, the Pod does not end up where it must.
            let _ = allocate_elsewhere(&client, &of, "node-2", &device).await;
        };
        let plans = vec![(write, Then::After(elsewhere.boxed()))];
        let scheduler = GatedScheduler::start(&site.cluster, plans).await?;
        let pod = format!("pod-{number}");
        site.create_pod(&pod, &[Uses::Claim(&claim)]).await?;
        scheduler.until_reached(1, PATIENCE).await?;
        site.until_bound_with(&pod, &[&format!("node-2/gpu-{number}")]).await?;
        site.until_bound_to(&pod, "node-2").await?;
    }
    Ok(())
}

/// Another one changes the claim between the writes, in what does not matter: the Pod is bound with what was decided.
pub async fn claim_that_others_change_is_reserved_nevertheless(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    site.create_claim("claim", &DeviceClaim::of(GPU, 1)).await?;
    let label = |value: &'static str| {
        let client = site.admin().clone();
        let change = async move {
            let patch = Patch::Merge(json!({ "metadata": { "labels": { STEP: value } } }));
            let (claims, params) = (claims_in(&client, TEAM), PatchParams::default());
            // It is missed at the end if it fails.
            let _ = claims.patch("claim", &params, &patch).await;
        };
        Then::After(change.boxed())
    };
    let plans = vec![(Write::Finalizer, label("one")), (Write::Status, label("two"))];
    let scheduler = GatedScheduler::start(&site.cluster, plans).await?;
    site.create_pod("pod", &[Uses::Claim("claim")]).await?;
    scheduler.until_reached(2, PATIENCE).await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await?;
    let is_changed = |claim: &ResourceClaim| claim.labels().get(STEP).is_some_and(|it| it == "two");
    site.until_claim("claim", "changed by both", is_changed).await.map(drop)
}

/// Another one takes the devices back before the scheduler knows that they are written: the Pod is not bound without
/// them, but gets them again.
pub async fn devices_that_are_taken_back_are_given_again(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[1]).await?;
    site.create_claim("claim", &DeviceClaim::of(GPU, 1)).await?;
    let client = site.admin().clone();
    let taken_back = async move {
        let nothing = json!({ "allocation": null, "reservedFor": null });
        // Should it fail, the claim is not allocated twice, which is what is looked for.
        let _ = write_claim_status(&client, TEAM, "claim", nothing).await;
        // Its watch tells the scheduler before it has the answer.
        sleep(Duration::from_millis(500)).await;
    };
    let plans = vec![(Write::Status, Then::AnswerAfter(taken_back.boxed()))];
    let scheduler = GatedScheduler::start(&site.cluster, plans).await?;
    site.create_pod("pod", &[Uses::Claim("claim")]).await?;
    scheduler.until_reached(1, PATIENCE).await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await?;
    let allocations = site.check().await?.allocations;
    ensure(allocations == 2, || format!("the claim was allocated {allocations} times, not twice"))
}

/// The watch of claims is cut while devices change hands, and what is missed comes with a list.
pub async fn claims_that_are_listed_anew_are_counted_once(site: &DeviceSite) -> Result<()> {
    site.create_gpus(&[2]).await?;
    site.create_template(ONE, &DeviceClaim::of(GPU, 1)).await?;
    let scheduler = GatedScheduler::start(&site.cluster, vec![]).await?;
    for round in 0..3 {
        for which in ["a", "b"] {
            let pod = format!("{which}-{round}");
            site.create_pod(&pod, &[Uses::Template(ONE)]).await?;
            site.until_bound(&pod).await?;
        }
        site.create_pod(&format!("c-{round}"), &[Uses::Template(ONE)]).await?;
        site.until_held(&format!("c-{round}"), &[CANNOT_ALLOCATE]).await?;
        scheduler.cut_claims();
        for which in ["a", "b"] {
            site.end_pod(&format!("{which}-{round}")).await?;
        }
        site.until_bound(&format!("c-{round}")).await?;
        let deadline = Instant::now() + PATIENCE;
        while !scheduler.has_relisted() {
            ensure(Instant::now() < deadline, || "the claims were not listed anew".to_owned())?;
            sleep(Duration::from_millis(20)).await;
        }
        delete_pod(site.admin(), TEAM, &format!("c-{round}")).await?;
    }
    Ok(())
}
