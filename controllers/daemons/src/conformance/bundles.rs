//! The life of a bundle.

use std::time::Duration;

use http::Method;
use serde_json::json;

use super::probe::{Flaw, LEASE_TTL_WAITED_S, Probe, ensure};
use super::{Check, Verdict, check};
use crate::memqosd::{BandwidthChange, LatencyClass, LatencyClassChange, Memqosd, Persistence};
use crate::telemetry::Released;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check(
            "memqosd: an allocation is answered with 201, a handle and what was asked",
            allocated,
        ),
        check("memqosd: the same key leads to the same bundle, with 200", repeated),
        check("memqosd: the same key with other fields is refused", reused),
        check("memqosd: requests with one key at the same time give one bundle", at_once),
        check("memqosd: a list by owner shows that owner's bundles only", listed),
        check("memqosd: a release is repeatable and refuses another's", released),
        check("memqosd: an unknown handle is not found", unknown),
        check("memqosd: the floor is set and confirmed", bandwidth_set),
        check("memqosd: a change of tier says how many pages it moved, once", class_set),
        check("memqosd: another's bundle is not changed", not_changed_by_others),
        check("memqosd: a lease is renewed, another's is not", lease_renewed),
        check("memqosd: what is not renewed is lost, but durable data stays", lease_lost),
        check("memqosd: a sample has the bandwidth and its tail", sampled),
    ]
}

async fn allocated(probe: &Probe) -> Verdict {
    let wish = probe.bundle_wish()?;
    let body = probe.post_bundle(&wish).await?.expect(201)?;
    let handle = body["ffm_handle"].as_str().unwrap_or_default();
    ensure(!handle.is_empty(), || format!("no ffm_handle in {body}"))?;
    ensure(body["floor_GBs"] == 10, || format!("no floor_GBs in {body}"))?;
    ensure(body["device_id"].is_string(), || format!("no device_id in {body}"))?;
    let achieved = body["achieved_GBs"].as_f64().unwrap_or_default();
    ensure(achieved >= 10.0, || format!("achieved_GBs is below the floor in {body}"))?;
    ensure(body["policy_lease_ttl_s"].as_u64() > Some(0), || format!("no lease in {body}"))
}

async fn repeated(probe: &Probe) -> Verdict {
    let wish = probe.bundle_wish()?;
    let first = probe.post_bundle(&wish).await?.expect(201)?;
    let second = probe.post_bundle(&wish).await?.expect(200)?;
    ensure(first["ffm_handle"] == second["ffm_handle"], || format!("{first} then {second}"))
}

async fn reused(probe: &Probe) -> Verdict {
    let mut wish = probe.bundle_wish()?;
    let key = wish.key().to_string();
    probe.post_bundle(&wish).await?.expect(201)?;
    wish.memory.bytes *= 2;
    let raw = probe.post_keyed(&probe.memqosd, "/v1/ffm/alloc", &key, &json!(wish)).await?;
    raw.expect_refusal(409, "key_reused")
}

async fn at_once(probe: &Probe) -> Verdict {
    let wish = probe.bundle_wish()?;
    let answers = futures::future::join_all((0..8).map(|_| probe.post_bundle(&wish))).await;
    for answer in answers {
        let answer = answer?;
        ensure(answer.status < 300, || format!("{answer:?}"))?;
    }
    let count = probe.memqosd.as_memqosd().list(&wish.owner.to_string()).await?.len();
    ensure(count == 1, || format!("{count} bundles exist"))
}

async fn listed(probe: &Probe) -> Verdict {
    let (one, _other) = (probe.bundle().await?, probe.bundle().await?);
    let list = probe.memqosd.as_memqosd().list(&one.owner.to_string()).await?;
    let handles: Vec<&str> = list.iter().map(|it| it.ffm_handle.as_str()).collect();
    ensure(handles == [one.ffm_handle.as_str()], || format!("{handles:?}"))
}

async fn released(probe: &Probe) -> Verdict {
    let (bundle, stranger) = (probe.bundle().await?, probe.owner()?);
    let handle = &bundle.ffm_handle;
    for (owner, expected) in [
        (&stranger, Released::NotOurs),
        (&bundle.owner, Released::Gone),
        (&bundle.owner, Released::Gone),
    ] {
        let done = probe.memqosd.as_memqosd().release(handle, owner).await?;
        ensure(done == expected, || format!("{done:?} instead of {expected:?}"))?;
    }
    let seen = probe.memqosd.as_memqosd().get(handle).await?;
    ensure(seen.is_none(), || "it is still there".to_owned())
}

async fn unknown(probe: &Probe) -> Verdict {
    for target in ["/v1/ffm/ffm-no-such", "/v1/ffm/ffm-no-such/telemetry"] {
        let raw = probe.raw(&probe.memqosd, Method::GET, target, &[], None).await?;
        raw.expect_refusal(404, "not_found")?;
    }
    Ok(())
}

async fn bandwidth_set(probe: &Probe) -> Verdict {
    let bundle = probe.bundle().await?;
    for floor_gbs in [20, 20, 5] {
        let change = BandwidthChange { floor_gbs };
        let handle = &bundle.ffm_handle;
        let seen = probe.memqosd.set_bandwidth(handle, &bundle.owner, &change).await?;
        ensure(seen.memory.floor_gbs == floor_gbs, || format!("{seen:?}"))?;
    }
    Ok(())
}

async fn class_set(probe: &Probe) -> Verdict {
    let bundle = probe.bundle().await?;
    let change = LatencyClassChange { latency_class: LatencyClass::T2 };
    let (handle, owner) = (&bundle.ffm_handle, &bundle.owner);
    let first = probe.memqosd.set_latency_class(handle, owner, &change).await?;
    ensure(first.moved_pages > 0, || format!("{first:?}"))?;
    let second = probe.memqosd.set_latency_class(handle, owner, &change).await?;
    ensure(second.moved_pages == 0, || format!("{second:?}"))?;
    let sample = probe.memqosd.as_memqosd().telemetry(handle).await?;
    let counted = sample.as_ref().is_some_and(|it| {
        it.moved_pages == first.moved_pages && it.latency_class == LatencyClass::T2
    });
    ensure(counted, || format!("{sample:?}"))
}

async fn not_changed_by_others(probe: &Probe) -> Verdict {
    let (bundle, stranger) = (probe.bundle().await?, probe.owner()?);
    for (part, body) in [
        ("bandwidth", json!({ "floor_GBs": 1 })),
        ("latency_class", json!({ "latency_class": "T3" })),
    ] {
        let target = format!("/v1/ffm/{}/{part}", bundle.ffm_handle);
        let patch = Method::PATCH;
        let raw = probe.owned(&probe.memqosd, patch, &target, &stranger, Some(&body)).await?;
        raw.expect_refusal(403, "owner")?;
    }
    Ok(())
}

async fn lease_renewed(probe: &Probe) -> Verdict {
    let (bundle, stranger) = (probe.bundle().await?, probe.owner()?);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let lease = probe.memqosd.as_memqosd().renew_lease(&bundle.ffm_handle, &bundle.owner).await?;
    ensure(lease.lease_expires_at > bundle.lease_expires_at, || format!("{lease:?}"))?;
    let target = format!("/v1/ffm/{}/lease", bundle.ffm_handle);
    let raw = probe.owned(&probe.memqosd, Method::POST, &target, &stranger, None).await?;
    raw.expect_refusal(403, "owner")
}

async fn lease_lost(probe: &Probe) -> Verdict {
    let fleeting = probe.bundle().await?;
    let ttl = fleeting.policy_lease_ttl_s;
    if ttl > LEASE_TTL_WAITED_S {
        return Err(Flaw::Skipped(format!("a lease of {ttl} s is not waited for")));
    }
    let mut wish = probe.bundle_wish()?;
    wish.memory.persistence = Persistence::Durable;
    let durable = probe.memqosd.as_memqosd().allocate(&wish.key(), &wish).await?;
    tokio::time::sleep(Duration::from_secs(ttl) + Duration::from_millis(300)).await;
    let seen = probe.memqosd.as_memqosd().get(&fleeting.ffm_handle).await?;
    ensure(seen.is_none(), || "it is still there".to_owned())?;
    let seen = probe.memqosd.as_memqosd().get(&durable.ffm_handle).await?;
    ensure(seen.as_ref().is_some_and(|it| it.lapsed), || format!("durable: {seen:?}"))?;
    probe.memqosd.as_memqosd().renew_lease(&durable.ffm_handle, &wish.owner).await?;
    let seen = probe.memqosd.as_memqosd().get(&durable.ffm_handle).await?;
    let back = seen.as_ref().is_some_and(|it| !it.lapsed && it.achieved_gbs > 0.0);
    ensure(back, || format!("renewed: {seen:?}"))
}

async fn sampled(probe: &Probe) -> Verdict {
    let bundle = probe.bundle().await?;
    let sample = probe.memqosd.as_memqosd().telemetry(&bundle.ffm_handle).await?;
    let good = sample.as_ref().is_some_and(|it| {
        it.achieved_gbs > 0.0 && it.floor_gbs == 10 && it.tail_p99_ms.is_some_and(|ms| ms > 0.0)
    });
    ensure(good, || format!("{sample:?}"))
}
