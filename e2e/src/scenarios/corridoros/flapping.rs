//! Readings that alternate around a floor: the fall counts at once, and the API server is left alone.

use std::time::Duration;

use serde_json::json;
use tokio::time::interval;

use super::{TEAM, bind_user, bundle_spec, create_corridor, site, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::custom::{CustomKind, handle_of};
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::site::SiteOptions;

/// 20 s of samples, each on the other side of the floor than the one before.
const CROSSINGS: u32 = 100;
const CROSSING_EVERY: Duration = Duration::from_millis(200);
/// Of one object: two falls, one return that counts, what the routine adds, and what the scheduler says about its
/// users meanwhile.
const STATUS_WRITES_MAX: usize = 10;
/// One for each transition of both objects, and one for each new thing that the waiting Pod is told.
const EVENTS_MAX: usize = 12;
/// What a Pod is told: that bandwidth is short, that the Corridor is Degraded, and each once more.
const CONDITION_WRITES_MAX: usize = 4;

/// A Corridor and a MemoryBundle alternate around their floors while a Pod waits for bandwidth: few writes, whatever
/// the rate of telemetry. When they stay above, they are Ready, and the Pod is bound in its turn.
pub async fn readings_alternate_around_the_floor(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let corridor = create_corridor(&site, "c1").await?;
    let id = handle_of(&corridor.until_ready().await?, CustomKind::Corridor);
    let bundle = site.create(CustomKind::MemoryBundle, TEAM, "b1", bundle_spec()).await?;
    let handle = handle_of(&bundle.until_ready().await?, CustomKind::MemoryBundle);
    bind_user(&site, &corridor, "60", "holder").await?;
    let sixty = PodTemplate::small().refer(&corridor, Some("60"));
    sixty.create(site.admin(), TEAM, "late").await?;
    until_held(cluster, TEAM, "late").await?;

    let before = Writes::so_far(cluster)?;
    let mut ticks = interval(CROSSING_EVERY);
    for number in 1..=CROSSINGS {
        ticks.tick().await;
        let (light, memory) = if number % 2 == 0 { (100.1, 8.01) } else { (99.9, 7.99) };
        site.daemons.force_corridor(&id, json!({ "achievable_gbps": light })).await?;
        site.daemons.force_bundle(&handle, json!({ "achieved_GBs": memory })).await?;
    }
    let after = Writes::so_far(cluster)?;
    let written = |count: fn(&Writes) -> usize| count(&after) - count(&before);
    for (what, count, max) in [
        ("status writes of the Corridor", written(|it| it.corridor), STATUS_WRITES_MAX),
        ("status writes of the MemoryBundle", written(|it| it.bundle), STATUS_WRITES_MAX),
        ("Events", written(|it| it.events), EVENTS_MAX),
        ("condition writes of Pods", written(|it| it.pods), CONDITION_WRITES_MAX),
    ] {
        crate::binaries::say(&format!("{CROSSINGS} crossings: {count} {what}"));
        ensure(count <= max, || {
            format!("{CROSSINGS} crossings led to {count} {what}, more than {max}")
        })?;
    }

    corridor.until_ready().await?;
    bundle.until_ready().await?;
    delete_pod(site.admin(), TEAM, "holder").await?;
    until_bound(cluster, TEAM, "late").await.map(drop)
}

/// What the scheduler's account wrote, as the API server recorded it.
struct Writes {
    corridor: usize,
    bundle: usize,
    events: usize,
    pods: usize,
}

impl Writes {
    fn so_far(cluster: &Cluster) -> Result<Self> {
        let audit =
            cluster.audit().ok_or_else(|| Error::malformed("counting writes", "no audit log"))?;
        let writes = audit.writes_of_scheduler()?;
        let of = |resource: &str| writes.iter().filter(|it| it.resource == resource).count();
        Ok(Self {
            corridor: of("corridors/status"),
            bundle: of("memorybundles/status"),
            events: of("events"),
            pods: of("pods/status"),
        })
    }
}
