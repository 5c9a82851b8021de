//! Readings that alternate around a limit: a fall counts at once, and people are not told of each crossing.

use std::time::Duration;

use crds::Phase;
use serde_json::{Value, json};

use crate::world::{World, ready_reason};

/// Each is a sample of its own, and a crossing.
const CROSSINGS: usize = 50;
const BETWEEN: Duration = Duration::from_millis(100);
/// A fall, a first return that counts at once, the second fall, and what the routine may add.
const WRITES_MAX: usize = 4;

async fn alternate(world: &World, path: &str, above: &Value, below: &Value) {
    for number in 0..CROSSINGS {
        let reading = if number % 2 == 0 { below } else { above };
        world.admin("PUT", path, reading).await;
        tokio::time::sleep(BETWEEN).await;
    }
    world.admin("PUT", path, above).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corridor_that_alternates_around_its_floor_is_written_a_few_times() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    let id = world.phase("c", Phase::Ready).await.status.unwrap().corridor_id.unwrap();
    let path = format!("/admin/corridors/{id}");
    let before = world.writes("corridors");
    let (above, below) = (json!({"achievable_gbps": 100.1}), json!({"achievable_gbps": 99.9}));
    alternate(&world, &path, &above, &below).await;
    let written = world.writes("corridors") - before;
    assert!(written <= WRITES_MAX, "{written} writes for {CROSSINGS} crossings");
    let events = world.events("BelowFloor").await;
    assert!(events <= 2, "{events} Events for {CROSSINGS} crossings");
    let damped = world.corridor_until("c", "Degraded", |it| it.phase() == Phase::Degraded).await;
    assert_eq!(ready_reason(&damped), "BelowFloor");
    world.phase("c", Phase::Ready).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corridor_that_alternates_around_its_latency_budget_is_written_a_few_times() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    let id = world.phase("c", Phase::Ready).await.status.unwrap().corridor_id.unwrap();
    let path = format!("/admin/corridors/{id}");
    let before = world.writes("corridors");
    // The floor is missed as well, half of the time: neither hides behind the other.
    let above = json!({"achievable_gbps": 100.1, "latency_ns": 250.1});
    let below = json!({"achievable_gbps": 99.9, "latency_ns": 249.9});
    alternate(&world, &path, &above, &below).await;
    let written = world.writes("corridors") - before;
    assert!(written <= WRITES_MAX, "{written} writes for {CROSSINGS} crossings");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_alternates_around_its_floor_is_written_a_few_times() {
    let world = World::new().await;
    let running = world.run();
    world.create_bundle("b", 10).await;
    let handle = world.bundle_phase("b", Phase::Ready).await.status.unwrap().ffm_handle.unwrap();
    let path = format!("/admin/ffm/{handle}");
    let before = world.writes("memorybundles");
    let (above, below) = (json!({"achieved_GBs": 10.01}), json!({"achieved_GBs": 9.99}));
    alternate(&world, &path, &above, &below).await;
    let written = world.writes("memorybundles") - before;
    assert!(written <= WRITES_MAX, "{written} writes for {CROSSINGS} crossings");
    world.bundle_phase("b", Phase::Ready).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lower_floor_is_met_at_once_however_the_former_one_was_crossed() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    let id = world.phase("c", Phase::Ready).await.status.unwrap().corridor_id.unwrap();
    let path = format!("/admin/corridors/{id}");
    let (above, below) = (json!({"achievable_gbps": 100.1}), json!({"achievable_gbps": 99.9}));
    alternate(&world, &path, &above, &below).await;
    world.admin("PUT", &path, &below).await;
    world.phase("c", Phase::Degraded).await;
    world.edit("c", &json!({"minGbps": 90})).await;
    world.phase("c", Phase::Ready).await;
    running.stop().await;
}
