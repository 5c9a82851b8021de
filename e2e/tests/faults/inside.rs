//! Faults that are not on the wire: a clock that steps, a queue that is full.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::binaries::say;
use e2e::faults::clock::WallClock;
use e2e::faults::gate::Faults;
use e2e::faults::site::{FaultSite, PODS, TEAM};
use e2e::objects::leases::CORRD_LEASE;
use e2e::observe::{Seen, until};
use e2e::{ControlPlane, Result, SCHEDULER_NAME, SYSTEM_NAMESPACE, metrics};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use tokio::time::sleep;

use crate::{PATIENCE, PLACES, run, run_beside};

/// Until the Lease of corrd has been renewed so often after the clock stepped, everything that was fresh before is not.
const RENEWALS: usize = 7;

async fn until_corrd_renewed(plane: &ControlPlane) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(plane.admin(), SYSTEM_NAMESPACE);
    let mut renewals = BTreeSet::new();
    let done = |seen: &Seen<Lease>| {
        let lease = seen.get(&format!("{SYSTEM_NAMESPACE}/{CORRD_LEASE}"));
        renewals.extend(lease.and_then(|lease| lease.metadata.resource_version.clone()));
        renewals.len() > RENEWALS
    };
    until(&leases, "corrd's Lease to be renewed", PATIENCE, done).await.map(drop)
}

/// The election's Lease: how often it went from hand to hand, and how far ahead its holder's clock is.
async fn term(plane: &ControlPlane) -> (i32, i64) {
    let leases: Api<Lease> = Api::namespaced(plane.admin(), SYSTEM_NAMESPACE);
    let lease = leases.get(SCHEDULER_NAME).await.unwrap().spec.unwrap();
    let renewed = lease.renew_time.unwrap().0;
    (lease.lease_transitions.unwrap(), renewed.as_second() - Timestamp::now().as_second())
}

#[tokio::test]
async fn fault_23_the_clock_steps() {
    run_beside(async |plane| {
        let clock = WallClock::new().await?;
        for seconds_ahead in [3_600, -3_600] {
            clock.set(0)?;
            let (faults, elects) = (Arc::new(Faults::default()), ["--leader-elect=true"]);
            let by_clock = |binary: &Path| clock.wrap(binary);
            let site = FaultSite::start_as(plane, &faults, by_clock, &elects).await?;
            site.create_plain_pods().await?;
            site.until_bound(PODS / 4).await?;
            let (transitions, _) = term(plane).await;
            clock.set(seconds_ahead)?;
            until_corrd_renewed(plane).await?;
            let (now, ahead) = term(plane).await;
            assert!((ahead - seconds_ahead).abs() < 600, "{ahead} s: it goes by another clock");
            assert_eq!(now, transitions, "it has lost its term");
            site.create_corridor_pods().await?;
            site.finish(PLACES, PATIENCE).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn fault_24_the_queue_of_events_is_full() {
    run(async |plane| {
        let faults = Arc::new(Faults::default());
        faults.hold_events(true);
        let few = ["--events-waiting-max", "5"];
        let site = FaultSite::start_as(plane, &faults, |it| Ok(it.to_owned()), &few).await?;
        let events: Api<Event> = Api::namespaced(plane.admin(), TEAM);
        let before = scheduled_events(&events.list(&ListParams::default()).await.unwrap().items);
        site.create_pods().await?;
        site.until_bound(PLACES).await?;
        let scraped = site.scheduler.metrics().await?;
        let dropped = dropped_by(&scraped);
        say(&format!("{dropped} Events dropped, {} held up", faults.struck()));
        assert!(dropped > 0, "the queue was never full");
        faults.hold_events(false);
        // What was not dropped is told. One that was put off may be dropped as late as now.
        let began = Instant::now();
        let (told, scraped) = loop {
            let scraped = site.scheduler.metrics().await?;
            let all = events.list(&ListParams::default()).await.unwrap().items;
            let told = scheduled_events(&all) - before;
            if told + dropped_by(&scraped) >= PLACES {
                break (told, scraped);
            }
            assert!(began.elapsed() < PATIENCE, "{told} of {PLACES} Events were told");
            sleep(Duration::from_millis(200)).await;
        };
        let failed = ["kind=\"event\"", "result=\"failed\""];
        assert!(metrics::sum(&scraped, "corridor_writes_total", &failed) < 0.5);
        assert_eq!(told + dropped_by(&scraped), PLACES, "each was told, or counted as dropped");
        site.finish(PLACES, PATIENCE).await.map(drop)
    })
    .await;
}

fn scheduled_events(events: &[Event]) -> usize {
    events.iter().filter(|event| event.reason.as_deref() == Some("Scheduled")).count()
}

fn dropped_by(scraped: &str) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let dropped = metrics::sum(scraped, "corridor_reports_dropped_total", &[]) as usize;
    dropped
}
