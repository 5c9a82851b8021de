//! Bad days: lost replies, nonsense, restarts. All of them need `/admin`.

use http::Method;
use serde_json::json;

use super::probe::{Probe, ensure};
use super::{Check, Verdict, check};
use crate::memqosd::Persistence;
use crate::telemetry::Released;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("faults: a lost reply leaves one corridor, found by its key", lost_reply),
        check("faults: a lost reply of a release leaves nothing", lost_release),
        check("faults: a passing 5xx is survived by a repeatable call", http_5xx),
        check("faults: nonsense is an error, and what it hid is found by its key", garbage),
        check("faults: a slow answer still comes", slow),
        check("faults: a restart with state keeps everything", restart_with_state),
        check("faults: a restart without state keeps durable bundles only", restart_without_state),
        check("faults: after a restart without state a reused id is still protected", reused_id),
        check("faults: after a restart the feed begins anew, in full", restart_feed),
    ]
}

async fn order(probe: &Probe, kind: &str, route: &str) -> Verdict {
    let body = json!({ "kind": kind, "route": route, "count": 1 });
    probe.admin(Method::POST, "/admin/faults", body).await
}

async fn lost_reply(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    order(probe, "lost_reply", "POST /v1/corridors").await?;
    let answer = probe.post_corridor(&wish).await;
    ensure(answer.is_err(), || format!("the reply came: {answer:?}"))?;
    let list = probe.corrd.as_corrd().list(&wish.owner.to_string()).await?;
    ensure(list.len() == 1, || format!("{list:?}"))?;
    let again = probe.corrd.as_corrd().allocate(&wish.key(), &wish).await?;
    ensure(again.corridor_id == list[0].corridor_id, || format!("{again:?}"))
}

async fn lost_release(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    order(probe, "lost_reply", "DELETE /v1/corridors/{id}").await?;
    // The client repeats what may be repeated by itself.
    let done = probe.corrd.as_corrd().release(&corridor.corridor_id, &corridor.owner).await?;
    ensure(done == Released::Gone, || format!("{done:?}"))
}

async fn http_5xx(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    order(probe, "http_5xx", "POST /v1/corridors").await?;
    probe.corrd.as_corrd().allocate(&wish.key(), &wish).await?;
    let list = probe.corrd.as_corrd().list(&wish.owner.to_string()).await?;
    ensure(list.len() == 1, || format!("{list:?}"))
}

async fn garbage(probe: &Probe) -> Verdict {
    let wish = probe.corridor_wish()?;
    order(probe, "garbage", "POST /v1/corridors").await?;
    let answer = probe.corrd.as_corrd().allocate(&wish.key(), &wish).await;
    let label = answer.as_ref().err().map(crate::DaemonError::label);
    ensure(label == Some("decode"), || format!("{answer:?}"))?;
    let list = probe.corrd.as_corrd().list(&wish.owner.to_string()).await?;
    ensure(list.len() == 1, || format!("{list:?}"))
}

async fn slow(probe: &Probe) -> Verdict {
    let body = json!({ "kind": "slow", "route": "/v1/devices", "count": 1, "delay_ms": 300 });
    probe.admin(Method::POST, "/admin/faults", body).await?;
    let start = std::time::Instant::now();
    crate::attestd::Attestd::devices(&probe.attestd).await?;
    ensure(start.elapsed().as_millis() >= 300, || format!("after {:?}", start.elapsed()))
}

async fn restart(probe: &Probe, keep_state: bool) -> Verdict {
    probe.admin(Method::POST, "/admin/restart", json!({ "keep_state": keep_state })).await
}

async fn restart_with_state(probe: &Probe) -> Verdict {
    let (corridor, bundle) = (probe.corridor().await?, probe.bundle().await?);
    restart(probe, true).await?;
    let seen = probe.corrd.as_corrd().get(&corridor.corridor_id).await?;
    ensure(seen.as_ref().is_some_and(|it| it.path == corridor.path), || format!("{seen:?}"))?;
    let seen = probe.memqosd.as_memqosd().get(&bundle.ffm_handle).await?;
    ensure(seen.is_some_and(|it| it.memory == bundle.memory), || "the bundle is lost".to_owned())?;
    let next = probe.corridor().await?;
    ensure(next.corridor_id != corridor.corridor_id, || "an id was given again".to_owned())
}

async fn restart_without_state(probe: &Probe) -> Verdict {
    let (corridor, bundle) = (probe.corridor().await?, probe.bundle().await?);
    let mut wish = probe.bundle_wish()?;
    wish.memory.persistence = Persistence::Durable;
    let durable = probe.memqosd.as_memqosd().allocate(&wish.key(), &wish).await?;
    restart(probe, false).await?;
    let lost = probe.corrd.as_corrd().get(&corridor.corridor_id).await?.is_none()
        && probe.memqosd.as_memqosd().get(&bundle.ffm_handle).await?.is_none();
    ensure(lost, || "what should be lost is still there".to_owned())?;
    let seen = probe.memqosd.as_memqosd().get(&durable.ffm_handle).await?;
    ensure(seen.is_some_and(|it| it.owner == wish.owner), || "durable data is lost".to_owned())?;
    let new = probe.bundle().await?;
    ensure(new.ffm_handle != durable.ffm_handle, || "a handle is used twice".to_owned())
}

async fn reused_id(probe: &Probe) -> Verdict {
    restart(probe, false).await?;
    let before = probe.corridor().await?;
    restart(probe, false).await?;
    let after = probe.corridor().await?;
    ensure(before.corridor_id == after.corridor_id, || {
        format!("{} was to be given again, got {}", before.corridor_id, after.corridor_id)
    })?;
    let done = probe.corrd.as_corrd().release(&before.corridor_id, &before.owner).await?;
    ensure(done == Released::NotOurs, || format!("{done:?}"))?;
    let seen = probe.corrd.as_corrd().get(&after.corridor_id).await?;
    ensure(seen.is_some(), || "another's corridor was released".to_owned())
}

async fn restart_feed(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let nothing = std::time::Duration::ZERO;
    let before = probe.corrd.as_corrd().telemetry_since(None, nothing).await?.revision;
    restart(probe, true).await?;
    let page = probe.corrd.as_corrd().telemetry_since(Some(&before), nothing).await?;
    let found = page.corridors.iter().any(|it| it.corridor_id == corridor.corridor_id);
    ensure(page.full && found, || format!("{page:?}"))
}
