//! The feed of telemetry.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;

use super::probe::{Flaw, Probe, ensure};
use super::{Check, Verdict, check};
use crate::telemetry::{Revision, TelemetryPage};

/// "At once", on a machine that does other things too.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Longer than "at once", shorter than the period of samples most of the time.
const WAIT: Duration = Duration::from_secs(8);
/// Polls until the feed comes to rest; a period of samples may end in between.
const RESTS_TRIED: usize = 5;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("feed: the first answer is full and has a revision", first),
        check("feed: a revision of another epoch is answered in full", other_epoch),
        check("feed: nonsense for a revision is answered in full", nonsense),
        check("feed: without news the answer comes after the wait, and is empty", rest),
        check("feed: a sample per object and period, no more", one_sample),
        check("feed: a new corridor is news at once", new_object),
        check("feed: a corridor that falls below its floor is news at once", below_floor),
        check("feed: a bundle that falls below its floor is news at once", bundle_below_floor),
        check("feed: a move that crosses no floor is no news", no_crossing),
        check("feed: a released corridor is reported as gone", gone),
        check("feed: a malformed wait is refused", bad_wait),
    ]
}

async fn page(
    probe: &Probe,
    since: Option<&Revision>,
    wait: Duration,
) -> Result<TelemetryPage, Flaw> {
    Ok(probe.corrd.as_corrd().telemetry_since(since, wait).await?)
}

/// A revision after which nothing is new yet.
async fn at_rest(probe: &Probe) -> Result<Revision, Flaw> {
    let mut revision = page(probe, None, Duration::ZERO).await?.revision;
    for _ in 0..RESTS_TRIED {
        let next = page(probe, Some(&revision), Duration::ZERO).await?;
        if next.corridors.is_empty() && next.bundles.is_empty() && next.gone.is_empty() {
            return Ok(next.revision);
        }
        revision = next.revision;
    }
    Err(Flaw::Broken("there is always something new".to_owned()))
}

/// Pages until `wanted` is seen. Returns how long that took.
async fn wait_for(
    probe: &Probe,
    mut since: Revision,
    wanted: impl Fn(&TelemetryPage) -> bool,
) -> Result<Duration, Flaw> {
    let start = Instant::now();
    while start.elapsed() < AT_ONCE {
        let next = page(probe, Some(&since), WAIT).await?;
        if wanted(&next) {
            return Ok(start.elapsed());
        }
        since = next.revision;
    }
    Err(Flaw::Broken(format!("not seen in {:?}", start.elapsed())))
}

async fn first(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let page = page(probe, None, Duration::ZERO).await?;
    let found = page.corridors.iter().any(|it| it.corridor_id == corridor.corridor_id);
    ensure(page.full && found, || format!("{page:?}"))?;
    let shape = page.revision.0.rsplit_once('-');
    let good = shape.is_some_and(|(epoch, n)| !epoch.is_empty() && n.parse::<u64>().is_ok());
    ensure(good, || format!("{} is not <epoch>-<n>", page.revision.0))
}

async fn other_epoch(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let since = Revision("0123456789abcdef-5".to_owned());
    let page = page(probe, Some(&since), WAIT).await?;
    let found = page.corridors.iter().any(|it| it.corridor_id == corridor.corridor_id);
    ensure(page.full && found, || format!("{page:?}"))
}

async fn nonsense(probe: &Probe) -> Verdict {
    for since in ["", "-", "x", "é-1", "a-99999999999999999999999"] {
        let page = page(probe, Some(&Revision(since.to_owned())), WAIT).await?;
        ensure(page.full, || format!("since={since:?}: {page:?}"))?;
    }
    Ok(())
}

async fn rest(probe: &Probe) -> Verdict {
    for _ in 0..RESTS_TRIED {
        let revision = at_rest(probe).await?;
        let start = Instant::now();
        let next = page(probe, Some(&revision), Duration::from_secs(1)).await?;
        let empty = next.corridors.is_empty() && next.bundles.is_empty() && !next.full;
        if empty {
            let waited = start.elapsed();
            return ensure(waited > Duration::from_millis(900), || format!("after {waited:?}"));
        }
    }
    Err(Flaw::Broken("there is always something new".to_owned()))
}

async fn one_sample(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let mut since = at_rest(probe).await?;
    let (start, mut samples) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(2) {
        let next = page(probe, Some(&since), Duration::from_secs(1)).await?;
        samples +=
            next.corridors.iter().filter(|it| it.corridor_id == corridor.corridor_id).count();
        since = next.revision;
    }
    ensure(samples <= 1, || format!("{samples} samples in {:?}", start.elapsed()))
}

async fn new_object(probe: &Probe) -> Verdict {
    let revision = at_rest(probe).await?;
    let corridor = probe.corridor().await?;
    let seen = |page: &TelemetryPage| {
        page.corridors.iter().any(|it| it.corridor_id == corridor.corridor_id)
    };
    wait_for(probe, revision, seen).await.map(drop)
}

async fn below_floor(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let id = &corridor.corridor_id;
    let target = format!("/admin/corridors/{id}");
    // Forces nothing: skips the check here where there is no admin.
    probe.admin(Method::PUT, &target, json!({})).await?;
    let revision = at_rest(probe).await?;
    let waiting = wait_for(probe, revision, |page| {
        page.corridors.iter().any(|it| it.corridor_id == *id && it.is_below_floor())
    });
    let dropping = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        probe.admin(Method::PUT, &target, json!({ "achievable_gbps": 40 })).await
    };
    futures::future::try_join(waiting, dropping).await?;
    let revision = at_rest(probe).await?;
    probe.admin(Method::PUT, &target, json!({})).await?;
    let seen = wait_for(probe, revision, |page| {
        page.corridors.iter().any(|it| it.corridor_id == *id && !it.is_below_floor())
    });
    seen.await.map(drop)
}

async fn bundle_below_floor(probe: &Probe) -> Verdict {
    let bundle = probe.bundle().await?;
    let memqosd = probe.memqosd.as_memqosd();
    let mut since = memqosd.telemetry_since(None, Duration::ZERO).await?.revision;
    let target = format!("/admin/ffm/{}", bundle.ffm_handle);
    probe.admin(Method::PUT, &target, json!({ "achieved_GBs": 4 })).await?;
    let start = Instant::now();
    while start.elapsed() < AT_ONCE {
        let next = memqosd.telemetry_since(Some(&since), WAIT).await?;
        let mut ours = next.bundles.iter().filter(|it| it.ffm_handle == bundle.ffm_handle);
        if ours.any(|it| it.is_below_floor() && it.qos_violations == 1) {
            return Ok(());
        }
        since = next.revision;
    }
    Err(Flaw::Broken(format!("not seen in {:?}", start.elapsed())))
}

async fn no_crossing(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let target = format!("/admin/corridors/{}", corridor.corridor_id);
    for _ in 0..RESTS_TRIED {
        let revision = at_rest(probe).await?;
        for achievable_gbps in [110, 105, 120] {
            let body = json!({ "achievable_gbps": achievable_gbps });
            probe.admin(Method::PUT, &target, body).await?;
        }
        let next = page(probe, Some(&revision), Duration::ZERO).await?;
        if next.corridors.is_empty() {
            return Ok(());
        }
    }
    Err(Flaw::Broken("every move is news".to_owned()))
}

async fn gone(probe: &Probe) -> Verdict {
    let corridor = probe.corridor().await?;
    let revision = at_rest(probe).await?;
    probe.corrd.as_corrd().release(&corridor.corridor_id, &corridor.owner).await?;
    let seen = wait_for(probe, revision, |page| page.gone.contains(&corridor.corridor_id));
    seen.await.map(drop)
}

async fn bad_wait(probe: &Probe) -> Verdict {
    for wait in ["25", "soon", "-1s", "NaNs"] {
        let target = format!("/v1/telemetry?wait={wait}");
        let raw = probe.raw(&probe.corrd, Method::GET, &target, &[], None).await?;
        raw.expect_refusal(400, "malformed")?;
    }
    Ok(())
}
