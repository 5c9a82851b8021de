//! What happens by itself as time passes: drift, leases, schedules.

use std::time::Duration;

use crds::Phase;
use daemons::simulated::SimulatedConfig;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::json;

use crate::world::{World, ready_reason};

const TUNED: &str = "corridor_recalibrations_total";

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_tuned_away_before_it_counts() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    let id = world.phase("c", Phase::Ready).await.status.unwrap().corridor_id.unwrap();
    world.edit("c", &json!({"recalibration": {"targetBer": 1e-9}})).await;
    world.until("tuned to the new target", async || running.total(TUNED, "spec_change") == 1).await;
    let drift = json!({"ber_drift_decades": 5});
    world.admin("PUT", &format!("/admin/corridors/{id}"), &drift).await;
    world.until("recalibrated", async || running.total(TUNED, "ber_drift") == 1).await;
    // Longer than the time after which a drift that stayed would count.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(running.total(TUNED, "ber_drift"), 1, "once");
    assert_eq!(world.events("BerAboveTarget").await, 0, "it never counted");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_that_cannot_be_tuned_away_degrades_once_and_ends_once() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.edit("c", &json!({"recalibration": {"targetBer": 1e-9}})).await;
    let id = world.phase("c", Phase::Ready).await.status.unwrap().corridor_id.unwrap();
    let path = format!("/admin/corridors/{id}");
    let stubborn = json!({"ber_drift_decades": 5, "recalibration_fails": true});
    world.admin("PUT", &path, &stubborn).await;
    let degraded = world.phase("c", Phase::Degraded).await;
    assert_eq!(ready_reason(&degraded), "BerAboveTarget");
    world.admin("PUT", &path, &json!({})).await;
    world.phase("c", Phase::Ready).await;
    assert_eq!(world.events("BerAboveTarget").await, 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_renewed_well_before_they_run_out() {
    let config = SimulatedConfig { lease_ttl: Duration::from_secs(2), ..Default::default() };
    let world = World::with(config).await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.create_bundle("b", 10).await;
    world.phase("c", Phase::Ready).await;
    world.bundle_phase("b", Phase::Ready).await;
    let made =
        async || (world.allocations().await[0].created_at, world.bundles().await[0].created_at);
    let before = made().await;
    // Four times as long as a lease.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(made().await, before, "the same allocations");
    running.stop().await;
    world
        .until("leases that nobody renews run out", async || {
            world.allocations().await.is_empty() && world.bundles().await.is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_bundle_whose_lease_lapsed_is_ready_again_once_it_is_renewed() {
    let config = SimulatedConfig { lease_ttl: Duration::from_secs(2), ..Default::default() };
    let world = World::with(config).await;
    let running = world.run();
    world.create_bundle_that_is("b", 10, "durable").await;
    world.bundle_phase("b", Phase::Ready).await;
    running.stop().await;
    world.until("its lease lapses", async || world.bundles().await[0].lapsed).await;
    let running = world.run();
    world.bundle_phase("b", Phase::Degraded).await;
    world.bundle_phase("b", Phase::Ready).await;
    running.stop().await;
}

/// Waits for the turn of a minute, because windows are as fine as that.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_changes_the_floor_on_time_in_its_own_zone() {
    let world = World::new().await;
    let running = world.run();
    world.create_bundle("b", 10).await;
    world.bundle_phase("b", Phase::Ready).await;
    let zone = "Asia/Kathmandu";
    let begins = next_minute(Timestamp::now());
    let local = begins.to_zoned(TimeZone::get(zone).unwrap());
    let clock = |at: &jiff::Zoned| at.strftime("%H:%M").to_string();
    let ends = local.checked_add(SignedDuration::from_mins(30)).unwrap();
    let days: Vec<String> = [&local, &ends].map(|at| at.strftime("%a").to_string()).into();
    let window = json!({
        "name": "peak", "days": days[..1], "start": clock(&local), "end": clock(&ends),
        "bandwidthFloorGBs": 25,
    });
    let schedule = json!({"timeZone": zone, "windows": [window]});
    world.edit_bundle("b", &json!({"schedule": schedule})).await;
    let floor = |it: &crds::MemoryBundle| it.status.as_ref().and_then(|it| it.floor_gbs);
    let until = Duration::try_from(begins.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(until.saturating_sub(Duration::from_millis(500))).await;
    if Timestamp::now() < begins {
        let early = world.bundle_until("b", "there", |it| floor(it).is_some()).await;
        assert_eq!(floor(&early), Some(10.0), "not before its time");
    }
    world.bundle_until("b", "the window's floor", |it| floor(it) == Some(25.0)).await;
    let late = Timestamp::now().duration_since(begins);
    assert!(late < SignedDuration::from_secs(15), "{late} after the window opened");
    assert_eq!(world.bundle_phase("b", Phase::Ready).await.phase(), Phase::Ready);
    running.stop().await;
}

fn next_minute(now: Timestamp) -> Timestamp {
    Timestamp::from_second((now.as_second() / 60 + 1) * 60).unwrap()
}
