//! What an object shows the moment it is Ready.

use std::time::Duration;

use crds::{Corridor, MemoryBundle, Phase};
use futures::TryStreamExt as _;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;

use crate::world::World;

/// The first version that is Ready, from a watch: a later one may say more.
async fn first_ready<T>(world: &World, phase: impl Fn(&T) -> Phase) -> T
where
    T: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<T> = Api::namespaced(world.client.clone(), "default");
    let versions = api.watch(&WatchParams::default(), "0").await.unwrap();
    let mut versions = std::pin::pin!(versions);
    loop {
        let event = versions.try_next().await.unwrap().expect("the watch goes on");
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
            && phase(&object) == Phase::Ready
        {
            return object;
        }
    }
}

/// The feed flows, and what it brings of a new object comes too late.
async fn late_feed(world: &World, lease: &str) {
    world.lease_is_fresh(lease).await;
    let slow =
        json!({"kind": "slow", "route": "GET /v1/telemetry", "count": 100, "delay_ms": 3000});
    world.admin("POST", "/admin/faults", &slow).await;
    // Longer than the polls that are under way wait.
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corridor_that_is_ready_shows_what_was_measured() {
    let world = World::new().await;
    let running = world.run();
    late_feed(&world, crds::backend_lease::CORRD).await;
    let (corridor, ()) = tokio::join!(
        first_ready::<Corridor>(&world, Corridor::phase),
        world.create_corridor("c", false)
    );
    let readings = corridor.status.unwrap().telemetry.unwrap_or_default();
    assert!(readings.ber.is_some_and(|it| it > 0.0 && it < 1e-11), "{readings:?}");
    assert_eq!(readings.eye_margin.as_deref(), Some("ok"));
    assert!(readings.temp_c.is_some_and(|it| it > 20.0), "{readings:?}");
    assert!(readings.power_pj_per_bit.is_some_and(|it| it > 0.1), "{readings:?}");
    assert!(readings.drift.is_some(), "{readings:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_ready_shows_what_was_measured_and_how_large_it_is() {
    let world = World::new().await;
    let running = world.run();
    late_feed(&world, crds::backend_lease::MEMQOSD).await;
    let (bundle, ()) = tokio::join!(
        first_ready::<MemoryBundle>(&world, MemoryBundle::phase),
        world.create_bundle("b", 50)
    );
    let status = bundle.status.unwrap();
    assert!(status.tail_p99_ms.is_some_and(|it| it > 0.0), "{status:?}");
    assert!(status.achieved_gbs.is_some_and(|it| it >= 50.0), "{status:?}");
    assert_eq!(status.size, Some(daemons::units::binary(bundle.spec.bytes)));
    running.stop().await;
}
