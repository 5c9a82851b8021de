//! What the simulated daemons add to the contract: time as an argument, faults, metrics.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::time::Duration;

use daemons::attestd::Attestd;
use daemons::client::{Endpoint, Patience};
use daemons::corrd::{Corrd, CorridorRequest, PathSpec, RecalibrationRequest};
use daemons::simulated::{Clock, Pools, SimulatedConfig, SimulatedDaemons};
use daemons::{Owner, RefusalReason};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;

async fn start(config: SimulatedConfig) -> (SimulatedDaemons, Endpoint) {
    let daemons = SimulatedDaemons::start(config).await.unwrap();
    let endpoint = Endpoint::new(&daemons.url(), Patience::default()).unwrap();
    (daemons, endpoint)
}

fn standing_clock() -> Clock {
    Clock::manual(Timestamp::from_second(1_800_000_000).unwrap())
}

fn wish(number: u32) -> CorridorRequest {
    let path = PathSpec { lanes: 2, lambda_nm: vec![1550], min_gbps: 100, ..PathSpec::default() };
    CorridorRequest { owner: Owner::new("c", format!("o{number}")).unwrap(), path, ticket: None }
}

async fn call(daemons: &SimulatedDaemons, method: &str, path: &str, body: &str) -> (u16, String) {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", daemons.url()))
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_lease_runs_out_by_the_given_clock() {
    let config = SimulatedConfig { clock: standing_clock(), ..SimulatedConfig::default() };
    let (daemons, endpoint) = start(config).await;
    let corridor = endpoint.as_corrd().allocate(&wish(1).key(), &wish(1)).await.unwrap();
    let almost = Duration::from_secs(corridor.policy_lease_ttl_s - 1);
    daemons.clock().advance(almost);
    endpoint.as_corrd().renew_lease(&corridor.corridor_id, &corridor.owner).await.unwrap();
    daemons.clock().advance(almost);
    assert!(endpoint.as_corrd().get(&corridor.corridor_id).await.unwrap().is_some());
    daemons.clock().advance(Duration::from_secs(1));
    assert!(endpoint.as_corrd().get(&corridor.corridor_id).await.unwrap().is_none());
    let (_, metrics) = call(&daemons, "GET", "/metrics", "").await;
    assert!(metrics.contains("corrd_leases_expired_total 1"), "{metrics}");
    daemons.stop().await;
}

#[tokio::test]
async fn samples_follow_the_given_clock_every_ten_seconds() {
    let config = SimulatedConfig { clock: standing_clock(), ..SimulatedConfig::default() };
    let (daemons, endpoint) = start(config).await;
    endpoint.as_corrd().allocate(&wish(1).key(), &wish(1)).await.unwrap();
    let nothing = Duration::ZERO;
    let mut since = endpoint.as_corrd().telemetry_since(None, nothing).await.unwrap().revision;
    let mut samples = Vec::new();
    for _ in 0..60 {
        daemons.clock().advance(Duration::from_secs(1));
        daemons.tick();
        let page = endpoint.as_corrd().telemetry_since(Some(&since), nothing).await.unwrap();
        samples.extend(page.corridors.iter().map(|it| it.sampled_at.as_second() % 10));
        since = page.revision;
    }
    assert_eq!(samples, [0; 6]);
    daemons.stop().await;
}

#[tokio::test]
async fn the_same_seed_and_times_give_the_same_readings() {
    let mut readings = Vec::new();
    for seed in [1, 1, 2] {
        let config =
            SimulatedConfig { clock: standing_clock(), seed, ..SimulatedConfig::default() };
        let (daemons, endpoint) = start(config).await;
        let corridor = endpoint.as_corrd().allocate(&wish(1).key(), &wish(1)).await.unwrap();
        daemons.clock().advance(Duration::from_secs(37));
        let sample = endpoint.as_corrd().telemetry(&corridor.corridor_id).await.unwrap();
        readings.push((sample, daemons.trusted_keys().to_vec()));
        daemons.stop().await;
    }
    assert_eq!(readings[0], readings[1]);
    assert_ne!(readings[0], readings[2]);
}

#[tokio::test]
async fn a_recalibration_takes_drift_away_unless_it_fails() {
    let config = SimulatedConfig { enable_admin: true, ..SimulatedConfig::default() };
    let (daemons, endpoint) = start(config).await;
    let corridor = endpoint.as_corrd().allocate(&wish(1).key(), &wish(1)).await.unwrap();
    let (id, owner) = (&corridor.corridor_id, &corridor.owner);
    let path = format!("/admin/corridors/{id}");
    for (fails, converges) in [(true, false), (false, true)] {
        let body = format!(r#"{{"ber_drift_decades": 4, "recalibration_fails": {fails}}}"#);
        assert_eq!(call(&daemons, "PUT", &path, &body).await.0, 204);
        let worse = endpoint.as_corrd().telemetry(id).await.unwrap().unwrap();
        assert!(worse.ber.unwrap() > 1e-12 && !worse.is_below_floor(), "{worse:?}");
        let ask = RecalibrationRequest::default();
        let result = endpoint.recalibrate(id, owner, &ask).await.unwrap();
        assert_eq!(result.converged, converges, "{result:?}");
    }
    let better = endpoint.as_corrd().telemetry(id).await.unwrap().unwrap();
    assert!(better.ber.unwrap() < 1e-12, "{better:?}");
    daemons.stop().await;
}

#[tokio::test]
async fn without_admin_there_is_no_admin() {
    let (daemons, _) = start(SimulatedConfig::default()).await;
    for (method, path) in
        [("POST", "/admin/restart"), ("POST", "/admin/faults"), ("PUT", "/admin/devices/phot-0")]
    {
        assert_eq!(call(&daemons, method, path, "{}").await.0, 404, "{path}");
    }
    daemons.stop().await;
}

#[tokio::test]
async fn metrics_have_the_names_of_their_daemons() {
    let (daemons, endpoint) = start(SimulatedConfig::default()).await;
    let corridor = endpoint.as_corrd().allocate(&wish(1).key(), &wish(1)).await.unwrap();
    let stranger = wish(2).owner;
    endpoint.as_corrd().release(&corridor.corridor_id, &stranger).await.unwrap();
    endpoint.devices().await.unwrap();
    let (_, metrics) = call(&daemons, "GET", "/metrics", "").await;
    for line in [
        "corrd_corridors 1",
        "corrd_pool_free{unit=\"lanes\"} 16382",
        "corrd_refusals_total{reason=\"owner\"} 1",
        "corrd_requests_total{code=\"201\",route=\"POST /v1/corridors\"} 1",
        "memqosd_bundles 0",
        "memqosd_pool_free{tier=\"T0\",unit=\"gbs\"} 16000",
        "attestd_requests_total{code=\"200\",route=\"GET /v1/devices\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    let foreign = metrics.lines().find(|line| {
        let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        !["corrd_", "memqosd_", "attestd_"].iter().any(|daemon| name.starts_with(daemon))
    });
    assert_eq!(foreign, None);
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_never_overdraw_the_pool() {
    let pools = Pools { lanes: 20, ..Pools::default() };
    let (daemons, endpoint) = start(SimulatedConfig { pools, ..SimulatedConfig::default() }).await;
    let calls = (0..40).map(|number| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            let wish = wish(number % 20);
            endpoint.as_corrd().allocate(&wish.key(), &wish).await
        })
    });
    let mut ids = std::collections::BTreeSet::new();
    for answer in futures::future::join_all(calls).await {
        match answer.unwrap() {
            Ok(corridor) => drop(ids.insert(corridor.corridor_id)),
            Err(error) => assert_eq!(error.refusal(), Some(RefusalReason::PoolLanes), "{error}"),
        }
    }
    assert_eq!(ids.len(), 10, "10 paths of 2 lanes fit");
    assert_eq!(endpoint.as_corrd().list("c/").await.unwrap().len(), 10);
    daemons.stop().await;
}

#[tokio::test]
async fn a_long_poll_does_not_delay_the_stop() {
    let (daemons, endpoint) = start(SimulatedConfig::default()).await;
    let since = endpoint.as_corrd().telemetry_since(None, Duration::ZERO).await.unwrap().revision;
    let poll = tokio::spawn(async move {
        endpoint.as_corrd().telemetry_since(Some(&since), Duration::from_secs(30)).await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = std::time::Instant::now();
    daemons.stop().await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    poll.abort();
}
