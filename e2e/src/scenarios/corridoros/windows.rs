//! Floors that follow the clock: what Pods may reserve is what the window asks for and memqosd has confirmed.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Value, json};

use super::{
    BUNDLE_GBS, TEAM, bind_user, bundle_spec, ensure_contains, ensure_told, ensure_told_once, site,
    until_bound, until_held, with,
};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, condition, is_true};
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::site::{Site, SiteOptions};

/// Neither a whole hour nor a half from UTC, and without summer time.
const ZONE: &str = "Asia/Kathmandu";
/// The floor while a window is open.
const WINDOW_GBS: u32 = 12;
/// Windows are as fine as minutes: what must be there before one turns is made in this time, on a busy machine, too.
const PREPARING: SignedDuration = SignedDuration::from_secs(30);
/// Until the turn, and as long again.
const TURN_TIME_MAX: Duration = Duration::from_mins(3);
/// More failures than any test waits for.
const ALWAYS: u32 = 1000;
const SET_FLOOR: &str = "PATCH /v1/ffm/{handle}/bandwidth";

/// At one turn of a minute the window of one bundle opens, and that of another closes. The first has more to give only
/// when memqosd has confirmed it; the second less at once, and who has more of it stays.
pub async fn windows_change_what_may_be_reserved(cluster: &Cluster) -> Result<()> {
    let settings = json!({ "telemetry": { "statusIntervalSeconds": 1 } });
    let site = site(cluster, SiteOptions { settings, ..SiteOptions::default() }).await?;
    let turn = turn_after(Timestamp::now() + PREPARING)?;
    let half_hour = SignedDuration::from_mins(30);
    let opens = create(&site, "opens", turn, turn + half_hour).await?;
    let closes = create(&site, "closes", turn - half_hour, turn).await?;
    until_floor(&opens, BUNDLE_GBS).await?;
    until_floor(&closes, WINDOW_GBS).await?;
    // It achieves more than any window asks for: only the confirmation is missing.
    site.daemons.force_bundle(&opens.handle().await?, json!({ "achieved_GBs": 20 })).await?;
    opens.until("quick", |it| it["status"]["achievedGBs"] == 20.0).await?;
    bind_user(&site, &closes, "10", "holder").await?;
    let ten = PodTemplate::small().refer(&opens, Some("10"));
    ten.create(site.admin(), TEAM, "early").await?;
    let message = until_held(cluster, TEAM, "early").await?;
    ensure_contains(&message, &["needs 10 GB/s, 8 of 8 GB/s free"])?;
    site.daemons.order_fault("http_5xx", SET_FLOOR, ALWAYS).await?;
    ensure(Timestamp::now() < turn, || "the turn came before this story was ready".to_owned())?;

    ensure_waits_for_memqosd(&site, &opens).await?;
    ensure_takes_nobody_new(&site, &closes).await?;
    ensure(Timestamp::now() >= turn, || "it turned before its time".to_owned())?;

    site.daemons.clear_faults().await?;
    until_bound(cluster, TEAM, "early").await?;
    until_floor(&opens, WINDOW_GBS).await?;
    until_floor(&closes, BUNDLE_GBS).await?;
    let words = |to: u32, from: u32| format!("the floor is {to} instead of {from} now");
    for (bundle, words) in
        [(&opens, words(WINDOW_GBS, BUNDLE_GBS)), (&closes, words(BUNDLE_GBS, WINDOW_GBS))]
    {
        ensure_told(&site, bundle, "FloorChanged", "Normal", &[&words]).await?;
        ensure_told_once(&site, bundle, "FloorChanged").await?;
    }
    // Of the lower floor, all is free again when the holder has gone.
    delete_pod(site.admin(), TEAM, "holder").await?;
    until_bound(cluster, TEAM, "late").await.map(drop)
}

/// The first turn of a minute from then on.
fn turn_after(time: Timestamp) -> Result<Timestamp> {
    let turn = Timestamp::from_second((time.as_second() / 60 + 1) * 60);
    turn.map_err(|problem| Error::malformed("finding the next minute", problem))
}

/// A bundle with one window, from then to then.
async fn create(site: &Site, name: &str, from: Timestamp, to: Timestamp) -> Result<Custom> {
    let zone = TimeZone::get(ZONE).map_err(|problem| Error::malformed("reading zones", problem))?;
    let local = |at: Timestamp| at.to_zoned(zone.clone());
    let clock = |at: &Zoned| at.strftime("%H:%M").to_string();
    let (from, to) = (local(from), local(to));
    let schedule = json!({ "timeZone": ZONE, "windows": [{
        "name": "window",
        "days": [from.strftime("%a").to_string()],
        "start": clock(&from),
        "end": clock(&to),
        "bandwidthFloorGBs": WINDOW_GBS,
    }]});
    let spec = with(bundle_spec(), json!({ "schedule": schedule }));
    site.create(CustomKind::MemoryBundle, TEAM, name, spec).await
}

/// Ready, with this floor confirmed.
async fn until_floor(bundle: &Custom, gbs: u32) -> Result<()> {
    let has_floor = |it: &Value| {
        it["status"]["phase"] == "Ready" && it["status"]["floorGBs"].as_f64() == Some(gbs.into())
    };
    bundle.until(&format!("Ready with a floor of {gbs}"), has_floor).await.map(drop)
}

/// The window is open, and memqosd fails to raise the floor: the Pod that needs it still waits.
async fn ensure_waits_for_memqosd(site: &Site, bundle: &Custom) -> Result<()> {
    let is_tried = |it: &Value| {
        let pending = condition(it, "UpdatePending");
        pending["status"] == "True" && pending["reason"] == "BackendUnreachable"
    };
    let tried = bundle.until_within(TURN_TIME_MAX, "asked to be raised", is_tried).await?;
    ensure(tried["status"]["floorGBs"].as_f64() == Some(BUNDLE_GBS.into()), || {
        format!("nobody has confirmed the floor of {}", tried["status"])
    })?;
    // Bound later than it would have been: by then a mistake has shown.
    PodTemplate::small().create(site.admin(), TEAM, "after").await?;
    until_bound(&site.cluster, TEAM, "after").await?;
    let early = site.cluster.pods(TEAM).get("early").await.doing("reading the early Pod")?;
    ensure(early.node().is_none(), || "it reserved what memqosd has not confirmed".to_owned())
}

/// The window is closed, whatever memqosd says: less may be reserved, and its holder is told to have more.
async fn ensure_takes_nobody_new(site: &Site, bundle: &Custom) -> Result<()> {
    let is_oversubscribed = |it: &Value| is_true(it, "Oversubscribed");
    bundle.until("Oversubscribed by its holder", is_oversubscribed).await?;
    let words = "Pods have reserved more than its floor is now";
    ensure_told(site, bundle, "Oversubscribed", "Warning", &[words]).await?;
    let one = PodTemplate::small().refer(bundle, Some("1"));
    one.create(site.admin(), TEAM, "late").await?;
    let message = until_held(&site.cluster, TEAM, "late").await?;
    ensure_contains(&message, &["needs 1 GB/s, 0 of 8 GB/s free"])
}
