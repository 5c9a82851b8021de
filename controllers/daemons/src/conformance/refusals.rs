//! What corrd and memqosd refuse, each for its own reason.

use serde_json::{Value, json};

use super::probe::{Flaw, Probe, ensure};
use super::{Check, Verdict, check};
use crate::corrd::{CorridorMode, CorridorRequest, PathSpec};

/// A pool that is not exhausted by this many of the largest wishes is not waited for.
const POOL_TRIES_MAX: usize = 64;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("corrd: a request without a key is refused", no_key),
        check("corrd: a malformed key is refused", bad_key),
        check("corrd: a key of another object than the owner's is refused", foreign_key),
        check("corrd: what is no JSON is refused", no_json),
        check("corrd: a malformed owner is refused", bad_owner),
        check("corrd: numbers outside of the contract are refused", out_of_range),
        check("corrd: wavelengths twice, none, or more than lanes are refused", bad_lambdas),
        check("corrd: a path longer than light reaches is refused", reach),
        check("corrd: a latency below physics is refused", latency),
        check("corrd: more bandwidth than the lanes carry is refused", lanes),
        check("corrd: an unknown device is refused", device),
        check("corrd: an exhausted pool is refused as such, and fills again", pool),
        check("corrd: a change in place cannot exceed the lanes", change_beyond_lanes),
        check("memqosd: a request without a key is refused", bundle_no_key),
        check("memqosd: numbers outside of the contract are refused", bundle_out_of_range),
        check("memqosd: more bandwidth than the tier has is refused", bundle_bandwidth),
        check("memqosd: more bytes than the tier has are refused as a pool", bundle_bytes),
        check("memqosd: a photonic device cannot carry a bundle", bundle_device),
    ]
}

/// A wish with one part changed, and the refusal it must meet.
async fn refused(
    probe: &Probe,
    change: impl FnOnce(&mut PathSpec),
    status: u16,
    reason: &str,
) -> Verdict {
    let mut wish = probe.corridor_wish()?;
    change(&mut wish.path);
    probe.post_corridor(&wish).await?.expect_refusal(status, reason)?;
    let left = probe.corrd.as_corrd().list(&wish.owner.to_string()).await?;
    ensure(left.is_empty(), || format!("refused, but allocated: {left:?}"))
}

async fn no_key(probe: &Probe) -> Verdict {
    let wish = json!(probe.corridor_wish()?);
    let (corrd, post) = (&probe.corrd, http::Method::POST);
    let raw = probe.raw(corrd, post, "/v1/corridors", &[], Some(&wish)).await?;
    raw.expect_refusal(400, "malformed")
}

async fn bad_key(probe: &Probe) -> Verdict {
    let wish = json!(probe.corridor_wish()?);
    for key in ["", "x", "uid:123", "uid:0123456789ABCDEF", "u id:0123456789abcdef"] {
        let raw = probe.post_keyed(&probe.corrd, "/v1/corridors", key, &wish).await?;
        raw.expect_refusal(400, "malformed")?;
    }
    Ok(())
}

async fn foreign_key(probe: &Probe) -> Verdict {
    let wish = json!(probe.corridor_wish()?);
    let key = "another-object:0123456789abcdef";
    let raw = probe.post_keyed(&probe.corrd, "/v1/corridors", key, &wish).await?;
    raw.expect_refusal(400, "malformed")
}

async fn no_json(probe: &Probe) -> Verdict {
    let key = probe.corridor_wish()?.key().to_string();
    for text in ["{", "[]", "null", "{\"lanes\": NaN}", "\u{0}", "{\"lanes\": 1e999}"] {
        let body = Value::String(text.to_owned());
        let raw = probe.post_keyed(&probe.corrd, "/v1/corridors", &key, &body).await?;
        raw.expect_refusal(400, "malformed")?;
    }
    Ok(())
}

async fn bad_owner(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    for owner in ["", "x", "a/b/c", "a/b\r\nX: y", "a/\u{202e}"] {
        let mut body = json!(wish);
        body["owner"] = json!(owner);
        let key = wish.key().to_string();
        let raw = probe.post_keyed(&probe.corrd, "/v1/corridors", &key, &body).await?;
        raw.expect_refusal(400, "malformed")?;
    }
    Ok(())
}

async fn out_of_range(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    for (name, value) in [
        ("lanes", json!(0)),
        ("lanes", json!(1025)),
        ("lanes", json!(-1)),
        ("min_gbps", json!(0)),
        ("min_gbps", json!(1_000_001)),
        ("latency_budget_ns", json!(0)),
        ("reach_mm", json!(100_000_001)),
        ("recalibration", json!({ "target_ber": 0.5 })),
        ("recalibration", json!({ "target_ber": 0 })),
        ("type", json!("Copper")),
        ("mode", json!("tunnel")),
    ] {
        let mut body = json!(wish);
        body[name] = value.clone();
        let key = wish.key().to_string();
        let raw = probe.post_keyed(&probe.corrd, "/v1/corridors", &key, &body).await?;
        raw.expect_refusal(400, "malformed").map_err(|flaw| match flaw {
            Flaw::Broken(why) => Flaw::Broken(format!("{name} {value}: {why}")),
            flaw @ Flaw::Skipped(_) => flaw,
        })?;
    }
    Ok(())
}

async fn bad_lambdas(probe: &Probe) -> Verdict {
    for lambda_nm in [vec![], vec![1550, 1550], vec![1550, 1551, 1552], vec![1259], vec![1676]] {
        refused(probe, |path| path.lambda_nm = lambda_nm, 400, "malformed").await?;
    }
    Ok(())
}

async fn reach(probe: &Probe) -> Verdict {
    let far = |path: &mut PathSpec| {
        path.latency_budget_ns = None;
        path.mode = CorridorMode::FreeSpace;
        path.reach_mm = Some(100_000_000);
    };
    refused(probe, far, 422, "reach").await
}

async fn latency(probe: &Probe) -> Verdict {
    // Light in vacuum needs 3.3 ns for a metre.
    let hasty = |path: &mut PathSpec| {
        path.reach_mm = Some(1000);
        path.latency_budget_ns = Some(3);
    };
    refused(probe, hasty, 422, "latency_budget").await
}

async fn lanes(probe: &Probe) -> Verdict {
    refused(probe, |path| path.min_gbps = 1_000_000, 422, "lanes").await
}

async fn device(probe: &Probe) -> Verdict {
    refused(probe, |path| path.device_id = Some("no-such-device".to_owned()), 422, "device").await
}

async fn pool(probe: &Probe) -> Verdict {
    let mut last: Option<CorridorRequest> = None;
    for _ in 0..POOL_TRIES_MAX {
        let mut wish = probe.corridor_wish()?;
        wish.path.lanes = 1024;
        wish.path.min_gbps = 1024 * 100;
        let raw = probe.post_corridor(&wish).await?;
        if raw.status == 201 {
            last = Some(wish);
            continue;
        }
        let reason = raw.body["reason"].as_str().unwrap_or_default().to_owned();
        let known = ["pool_lanes", "pool_gbps"].contains(&reason.as_str());
        ensure(raw.status == 507 && known, || format!("{raw:?}"))?;
        let last = last.ok_or_else(|| Flaw::Skipped("the pool is smaller than a wish".into()))?;
        for corridor in probe.corrd.as_corrd().list(&last.owner.to_string()).await? {
            probe.corrd.as_corrd().release(&corridor.corridor_id, &corridor.owner).await?;
        }
        return probe.post_corridor(&wish).await?.expect(201).map(drop);
    }
    Err(Flaw::Skipped("the pool is too large to be exhausted".to_owned()))
}

async fn change_beyond_lanes(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let target = format!("/v1/corridors/{}", corridor.corridor_id);
    let (body, owner) = (json!({ "min_gbps": 1_000_000 }), &corridor.owner);
    let patch = http::Method::PATCH;
    let raw = probe.owned(&probe.corrd, patch, &target, owner, Some(&body)).await?;
    raw.expect_refusal(422, "lanes")?;
    let seen = probe.corrd.as_corrd().get(&corridor.corridor_id).await?;
    ensure(seen.is_some_and(|it| it.path.min_gbps == 100), || "it was changed".to_owned())
}

async fn bundle_no_key(probe: &Probe) -> Verdict {
    let wish = json!(probe.bundle_wish()?);
    let (memqosd, post) = (&probe.memqosd, http::Method::POST);
    let raw = probe.raw(memqosd, post, "/v1/ffm/alloc", &[], Some(&wish)).await?;
    raw.expect_refusal(400, "malformed")
}

async fn bundle_out_of_range(probe: &Probe) -> Verdict {
    let wish = probe.bundle_wish()?;
    for (name, value) in [
        ("bytes", json!(0)),
        ("bytes", json!((1_u64 << 50) + 1)),
        ("floor_GBs", json!(0)),
        ("floor_GBs", json!(100_001)),
        ("latency_class", json!("T4")),
        ("persistence", json!("forever")),
    ] {
        let mut body = json!(wish);
        body[name] = value;
        let key = wish.key().to_string();
        let raw = probe.post_keyed(&probe.memqosd, "/v1/ffm/alloc", &key, &body).await?;
        raw.expect_refusal(400, "malformed")?;
    }
    Ok(())
}

async fn bundle_bandwidth(probe: &Probe) -> Verdict {
    let mut wish = probe.bundle_wish()?;
    wish.memory.floor_gbs = 100_000;
    probe.post_bundle(&wish).await?.expect_refusal(422, "bandwidth")
}

async fn bundle_bytes(probe: &Probe) -> Verdict {
    let mut wish = probe.bundle_wish()?;
    wish.memory.bytes = 1 << 50;
    probe.post_bundle(&wish).await?.expect_refusal(507, "pool_bytes")
}

async fn bundle_device(probe: &Probe) -> Verdict {
    let photonic = probe.device(crate::attestd::DeviceKind::Photonic, true).await?;
    let mut wish = probe.bundle_wish()?;
    wish.memory.device_id = Some(photonic.device_id);
    probe.post_bundle(&wish).await?.expect_refusal(422, "device")
}
