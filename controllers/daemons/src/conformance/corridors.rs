//! The life of a corridor.

use std::time::Duration;

use http::Method;
use serde_json::json;

use super::probe::{Flaw, LEASE_TTL_WAITED_S, Probe, ensure};
use super::{Check, Verdict, check};
use crate::corrd::{
    AmbientProfile, Corrd, CorridorChange, PathSpec, PriorityClass, Qos, Recalibration,
    RecalibrationRequest,
};
use crate::identity::Owner;
use crate::telemetry::Released;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("corrd: an allocation is answered with 201, an id and what was asked", allocated),
        check("corrd: the same key leads to the same corridor, with 200", repeated),
        check("corrd: the same key finds the corridor also after a change in place", repeated_late),
        check("corrd: the same key with another allocation field is refused", reused_lanes),
        check("corrd: the same key with another floor is refused", reused_floor),
        check("corrd: requests with one key at the same time give one corridor", at_once),
        check("corrd: a corridor can be looked at by its id", looked_at),
        check("corrd: an unknown id is not found", unknown),
        check("corrd: a list by owner shows that owner's corridors only", listed),
        check("corrd: a list by cluster shows no other cluster", listed_by_cluster),
        check("corrd: a release is answered with 204 and frees the corridor", released),
        check("corrd: a release of what is gone is answered with 204", released_twice),
        check("corrd: another's corridor is not released", not_released_by_others),
        check("corrd: a release without an owner is refused", not_released_by_nobody),
        check("corrd: a released key is free, and ids are not given again", ids_are_new),
        check("corrd: the floor is changed in place and confirmed", floor_changed),
        check("corrd: qos and recalibration are changed in place, the rest stays", qos_changed),
        check("corrd: a change of another field is refused", not_changed_in_place),
        check("corrd: another's corridor is not changed", not_changed_by_others),
        check("corrd: a lease is renewed", lease_renewed),
        check("corrd: another's lease is not renewed, an unknown one not found", lease_refused),
        check("corrd: what is not renewed is lost", lease_lost),
        check("corrd: a sample has every wavelength and possible values", sampled),
        check("corrd: a recalibration says whether it converged", recalibrated),
    ]
}

async fn allocated(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    let body = probe.post_corridor(&wish).await?.expect(201)?;
    let id = body["corridor_id"].as_str().unwrap_or_default();
    ensure(!id.is_empty(), || format!("no corridor_id in {body}"))?;
    ensure(body["device_id"].is_string(), || format!("no device_id in {body}"))?;
    ensure(body["idempotency_key"] == wish.key().to_string(), || format!("wrong key in {body}"))?;
    for (name, value) in [("owner", json!(wish.owner)), ("min_gbps", json!(100))] {
        ensure(body[name] == value, || format!("{name} is not {value} in {body}"))?;
    }
    let achievable = body["achievable_gbps"].as_f64().unwrap_or_default();
    ensure(achievable >= 100.0, || format!("achievable_gbps is below the floor in {body}"))?;
    ensure(body["policy_lease_ttl_s"].as_u64() > Some(0), || format!("no lease in {body}"))
}

async fn repeated(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    let first = probe.post_corridor(&wish).await?.expect(201)?;
    let second = probe.post_corridor(&wish).await?.expect(200)?;
    ensure(first["corridor_id"] == second["corridor_id"], || format!("{first} then {second}"))
}

async fn repeated_late(probe: &Probe) -> Verdict {
    let mut wish = probe.corridor_wish()?;
    let corridor = probe.corrd.as_corrd().allocate(&wish.key(), &wish).await?;
    let change = CorridorChange { min_gbps: Some(50), ..CorridorChange::default() };
    probe.corrd.update(&corridor.corridor_id, &wish.owner, &change).await?;
    let asked_first = probe.post_corridor(&wish).await?.expect(200)?;
    wish.path.min_gbps = 50;
    let asked_now = probe.post_corridor(&wish).await?.expect(200)?;
    let same = [asked_first, asked_now].iter().all(|it| it["corridor_id"] == corridor.corridor_id);
    ensure(same, || "another corridor was given".to_owned())
}

async fn reused_lanes(probe: &Probe) -> Verdict {
    let mut wish = probe.corridor_wish()?;
    let key = wish.key().to_string();
    probe.post_corridor(&wish).await?.expect(201)?;
    wish.path.lanes = 4;
    let raw = probe.post_keyed(&probe.corrd, "/v1/corridors", &key, &json!(wish)).await?;
    raw.expect_refusal(409, "key_reused")
}

async fn reused_floor(probe: &Probe) -> Verdict {
    let mut wish = probe.corridor_wish()?;
    probe.post_corridor(&wish).await?.expect(201)?;
    wish.path.min_gbps = 101;
    probe.post_corridor(&wish).await?.expect_refusal(409, "key_reused")
}

async fn at_once(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    let answers = futures::future::join_all((0..8).map(|_| probe.post_corridor(&wish))).await;
    let mut created = 0;
    for answer in answers {
        let answer = answer?;
        ensure(answer.status < 300, || format!("{answer:?}"))?;
        created += u32::from(answer.status == 201);
    }
    ensure(created == 1, || format!("{created} of 8 requests created a corridor"))?;
    let count = probe.corrd.as_corrd().list(&wish.owner.to_string()).await?.len();
    ensure(count == 1, || format!("{count} corridors exist"))
}

async fn looked_at(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let seen = probe.corrd.as_corrd().get(&corridor.corridor_id).await?;
    let same = seen.as_ref().is_some_and(|seen| {
        (&seen.path, &seen.owner) == (&corridor.path, &corridor.owner)
            && seen.idempotency_key == corridor.idempotency_key
    });
    ensure(same, || format!("{seen:?} is not {corridor:?}"))
}

async fn unknown(probe: &Probe) -> Verdict {
    for id in ["cor-no-such", "%2e%2e", "a%2fb"] {
        let target = format!("/v1/corridors/{id}");
        let raw = probe.raw(&probe.corrd, Method::GET, &target, &[], None).await?;
        raw.expect_refusal(404, "not_found")?;
    }
    Ok(())
}

async fn listed(probe: &Probe) -> Verdict {
    let (one, _other) = (probe.corridor().await?, probe.corridor().await?);
    let list = probe.corrd.as_corrd().list(&one.owner.to_string()).await?;
    let ids: Vec<&str> = list.iter().map(|it| it.corridor_id.as_str()).collect();
    ensure(ids == [one.corridor_id.as_str()], || format!("{ids:?}"))
}

async fn listed_by_cluster(probe: &Probe) -> Verdict {
    let ours = probe.corridor().await?;
    let list = probe.corrd.as_corrd().list(&Owner::cluster_prefix(&probe.cluster)).await?;
    let found = list.iter().any(|it| it.corridor_id == ours.corridor_id);
    ensure(found && list.iter().all(|it| it.owner.cluster_uid() == probe.cluster), || {
        format!("{list:?}")
    })?;
    let strangers = probe.corrd.as_corrd().list("no-such-cluster/").await?;
    ensure(strangers.is_empty(), || format!("{strangers:?}"))
}

async fn released(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let done = probe.corrd.as_corrd().release(&corridor.corridor_id, &corridor.owner).await?;
    ensure(done == Released::Gone, || format!("{done:?}"))?;
    let seen = probe.corrd.as_corrd().get(&corridor.corridor_id).await?;
    ensure(seen.is_none(), || "it is still there".to_owned())
}

async fn released_twice(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let target = format!("/v1/corridors/{}", corridor.corridor_id);
    for _ in 0..2 {
        let owner = &corridor.owner;
        probe.owned(&probe.corrd, Method::DELETE, &target, owner, None).await?.expect(204)?;
    }
    Ok(())
}

async fn not_released_by_others(probe: &Probe) -> Verdict {
    let (corridor, stranger) = (probe.corridor().await?, probe.owner()?);
    let target = format!("/v1/corridors/{}", corridor.corridor_id);
    let raw = probe.owned(&probe.corrd, Method::DELETE, &target, &stranger, None).await?;
    raw.expect_refusal(403, "owner")?;
    let seen = probe.corrd.as_corrd().get(&corridor.corridor_id).await?;
    ensure(seen.is_some(), || "it is gone".to_owned())
}

async fn not_released_by_nobody(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let target = format!("/v1/corridors/{}", corridor.corridor_id);
    let raw = probe.raw(&probe.corrd, Method::DELETE, &target, &[], None).await?;
    raw.expect_refusal(400, "malformed")
}

async fn ids_are_new(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    let first = probe.corrd.as_corrd().allocate(&wish.key(), &wish).await?;
    probe.corrd.as_corrd().release(&first.corridor_id, &wish.owner).await?;
    let second = probe.corrd.as_corrd().allocate(&wish.key(), &wish).await?;
    ensure(first.corridor_id != second.corridor_id, || format!("{} again", first.corridor_id))
}

async fn floor_changed(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    for min_gbps in [120, 120, 40] {
        let change = CorridorChange { min_gbps: Some(min_gbps), ..CorridorChange::default() };
        let id = &corridor.corridor_id;
        let seen = probe.corrd.update(id, &corridor.owner, &change).await?;
        ensure(seen.path.min_gbps == min_gbps, || format!("{seen:?}"))?;
    }
    Ok(())
}

async fn qos_changed(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let qos = Some(Qos { pfc: true, priority: Some(PriorityClass::Gold) });
    let ambient_profile = Some(AmbientProfile::HotAisle);
    let recalibration = Some(Recalibration { target_ber: Some(1e-11), ambient_profile });
    let change = CorridorChange { qos, recalibration, ..CorridorChange::default() };
    let seen = probe.corrd.update(&corridor.corridor_id, &corridor.owner, &change).await?;
    let CorridorChange { qos, recalibration, .. } = change;
    let expected = PathSpec { qos, recalibration, ..corridor.path };
    ensure(seen.path == expected, || format!("{:?} instead of {expected:?}", seen.path))
}

async fn not_changed_in_place(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let target = format!("/v1/corridors/{}", corridor.corridor_id);
    let body = json!({ "lanes": 4 });
    let owner = &corridor.owner;
    let raw = probe.owned(&probe.corrd, Method::PATCH, &target, owner, Some(&body)).await?;
    raw.expect_refusal(400, "malformed")
}

async fn not_changed_by_others(probe: &Probe) -> Verdict {
    let (corridor, stranger) = (probe.corridor().await?, probe.owner()?);
    let target = format!("/v1/corridors/{}", corridor.corridor_id);
    let body = json!({ "min_gbps": 1 });
    let raw = probe.owned(&probe.corrd, Method::PATCH, &target, &stranger, Some(&body)).await?;
    raw.expect_refusal(403, "owner")
}

async fn lease_renewed(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let lease = probe.corrd.as_corrd().renew_lease(&corridor.corridor_id, &corridor.owner).await?;
    ensure(lease.lease_expires_at > corridor.lease_expires_at, || format!("{lease:?}"))
}

async fn lease_refused(probe: &Probe) -> Verdict {
    let (corridor, stranger) = (probe.corridor().await?, probe.owner()?);
    let target = format!("/v1/corridors/{}/lease", corridor.corridor_id);
    let raw = probe.owned(&probe.corrd, Method::POST, &target, &stranger, None).await?;
    raw.expect_refusal(403, "owner")?;
    let target = "/v1/corridors/cor-no-such/lease";
    let raw = probe.owned(&probe.corrd, Method::POST, target, &stranger, None).await?;
    raw.expect_refusal(404, "not_found")
}

async fn lease_lost(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let ttl = corridor.policy_lease_ttl_s;
    if ttl > LEASE_TTL_WAITED_S {
        return Err(Flaw::Skipped(format!("a lease of {ttl} s is not waited for")));
    }
    tokio::time::sleep(Duration::from_secs(ttl) + Duration::from_millis(300)).await;
    let seen = probe.corrd.as_corrd().get(&corridor.corridor_id).await?;
    ensure(seen.is_none(), || "it is still there".to_owned())
}

async fn sampled(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let sample = probe.corrd.as_corrd().telemetry(&corridor.corridor_id).await?;
    let sample = sample.ok_or_else(|| Flaw::Broken("there is no sample".to_owned()))?;
    let lambdas: Vec<u32> = sample.lambdas.iter().map(|it| it.lambda_nm).collect();
    ensure(lambdas == corridor.path.lambda_nm, || format!("wavelengths {lambdas:?}"))?;
    ensure(sample.achievable_gbps > 0.0, || format!("{sample:?}"))?;
    let complete = sample
        .lambdas
        .iter()
        .all(|it| it.ber.is_some() && it.eye_margin_db.is_some() && it.bias_mv.is_some());
    ensure(complete && sample.ber.is_some() && sample.temp_c.is_some(), || format!("{sample:?}"))?;
    let power = sample.power_pj_per_bit.unwrap_or_default();
    ensure(power > 0.0, || format!("power of {power} pJ/bit"))
}

async fn recalibrated(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let (id, owner) = (&corridor.corridor_id, &corridor.owner);
    let ask = RecalibrationRequest { target_ber: Some(0.4), ..RecalibrationRequest::default() };
    let easy = probe.corrd.recalibrate(id, owner, &ask).await?;
    ensure(easy.converged && easy.lambdas.len() == 2, || format!("{easy:?}"))?;
    let ask = RecalibrationRequest { target_ber: Some(1e-300), ..RecalibrationRequest::default() };
    let hopeless = probe.corrd.recalibrate(id, owner, &ask).await?;
    ensure(!hopeless.converged, || format!("{hopeless:?}"))
}
