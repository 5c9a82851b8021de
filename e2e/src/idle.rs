//! What many Corridors cost while nothing happens to them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::Client;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use crate::binaries::say;
use crate::control_plane::ControlPlane;
use crate::daemons_process::DaemonsProcess;
use crate::error::{Doing as _, Error, Result};
use crate::metrics::sample;
use crate::objects::corridors::{all_corridors, corridors_in};
use crate::process_cost::{cpu_seconds, resident_kib};
use crate::scheduler_process::{SchedulerProcess, scheduler_binary};
use crate::stage::backend_arguments;
use crate::versions::{Versions, differences, kind};

const TEAM: &str = "team-a";
const CREATING_AT_ONCE: usize = 16;

/// Each needs a handful of writes; 2,000 took less than a minute.
const READY_TIME_MAX: Duration = Duration::from_mins(10);
const READY_POLL_EVERY: Duration = Duration::from_secs(1);

/// It is quiet when this long nothing but Leases was written; what never becomes quiet is measured as
/// it is. The last routine write of a status follows the one that said Ready within 30 s.
const QUIET: Duration = Duration::from_secs(5);
const SETTLE_TIME_MAX: Duration = Duration::from_secs(90);

#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub corridors: usize,
    /// Looked at no sooner than so long after the last was Ready. Periodic work has its first round, and
    /// its high-water mark of memory, within a minute and a half.
    pub settle_min: Duration,
    pub time: Duration,
}

/// What the scheduler's process cost while it was looked at.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Of one core.
    pub cpu_share: f64,
    /// By verb and resource, without Leases.
    pub writes: BTreeMap<String, u64>,
    pub lease_writes: u64,
    pub writes_per_second: f64,
    pub resident_kib_before: u64,
    pub resident_kib_after: u64,
    pub settled_after: Option<Duration>,
    /// The fields that writes of Corridors changed, and how often.
    pub changes: BTreeMap<String, usize>,
}

/// What must not be exceeded.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub cpu_share: f64,
    pub writes_per_second: f64,
    pub resident_growth_kib: u64,
}

/// For a look after every periodic work has had a round.
pub const LIMITS: Limits = Limits {
    cpu_share: 0.01,
    writes_per_second: 1.0,
    // What an allocator keeps back for itself moves by less than this; a leak of 150 bytes per telemetry
    // sample of 2,000 Corridors would pass it within ten minutes.
    resident_growth_kib: 16 * 1024,
};

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.settled_after {
            Some(time) => writeln!(f, "quiet {} s after the last was Ready", time.as_secs())?,
            None => writeln!(f, "never quiet for {} s", QUIET.as_secs())?,
        }
        for (fields, count) in &self.changes {
            writeln!(f, "  {count} times: {fields}")?;
        }
        writeln!(f, "CPU: {:.2} % of a core", self.cpu_share * 100.0)?;
        writeln!(
            f,
            "API writes: {:.2}/s beyond {} of Leases: {:?}",
            self.writes_per_second, self.lease_writes, self.writes
        )?;
        write!(
            f,
            "resident memory: {} KiB, then {} KiB",
            self.resident_kib_before, self.resident_kib_after
        )
    }
}

impl Figures {
    /// Every limit that is exceeded.
    pub fn beyond(&self, limits: &Limits) -> Vec<String> {
        let mut found = Vec::new();
        if self.cpu_share >= limits.cpu_share {
            found.push(format!("CPU is not below {} % of a core", limits.cpu_share * 100.0));
        }
        if self.writes_per_second >= limits.writes_per_second {
            found.push(format!("API writes are not below {}/s", limits.writes_per_second));
        }
        let growth = self.resident_kib_after.saturating_sub(self.resident_kib_before);
        if growth >= limits.resident_growth_kib {
            found.push(format!("resident memory grew by {growth} KiB"));
        }
        found
    }
}

/// Makes the Corridors on a control plane of their own, waits until it is quiet, and looks on.
pub async fn measure(size: Size) -> Result<Figures> {
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let cluster = plane.cluster().await?;
    cluster.ensure_namespace(TEAM).await?;
    let binary = scheduler_binary().await?;
    let daemons = DaemonsProcess::start(&binary, &[]).await?;
    let arguments = backend_arguments(&daemons.url(), &daemons.trusted_keys());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Without proxies: encryption is part of what it costs.
    let scheduler =
        SchedulerProcess::start_binary(&binary, plane.scheduler_kubeconfig(), &arguments).await?;
    let process = scheduler
        .process_id()
        .ok_or_else(|| Error::malformed("looking at the scheduler", "it has no process"))?;

    create(cluster.admin(), size.corridors).await?;
    until_all_ready(cluster.admin(), size.corridors).await?;
    let ready_at = Instant::now();
    let settled_after = settle(cluster.admin()).await?;
    sleep(size.settle_min.saturating_sub(ready_at.elapsed())).await;
    say(&format!("looking on for {} s", size.time.as_secs()));

    let versions = Versions::start(cluster.admin(), &[kind("corridors")]).await?;
    let before = Look::take(cluster.admin(), process).await?;
    sleep(size.time).await;
    let after = Look::take(cluster.admin(), process).await?;
    let mut figures = figures(&before, &after, settled_after);
    figures.changes = changes(&versions, size.corridors);
    Ok(figures)
}

/// Which fields were changed together, and how often.
fn changes(versions: &Versions, count: usize) -> BTreeMap<String, usize> {
    let mut changes = BTreeMap::new();
    for index in 0..count {
        let key = ("corridors".to_owned(), TEAM.to_owned(), format!("c-{index}"));
        for pair in versions.history(&key).windows(2) {
            let mut places = Vec::new();
            differences("", &pair[0].object, &pair[1].object, &mut places);
            let name = |place: &String| place.split('=').next().unwrap_or_default().to_owned();
            let fields: Vec<_> = places.iter().map(name).collect();
            *changes.entry(fields.join(", ")).or_default() += 1;
        }
    }
    changes
}

async fn create(client: &Client, count: usize) -> Result<()> {
    let corridors = &corridors_in(client, TEAM);
    stream::iter(0..count)
        .map(|index| async move {
            let doing = format!("creating Corridor c-{index}");
            let object = serde_json::from_value(json!({
                "apiVersion": "corridoros.io/v1alpha1",
                "kind": "Corridor",
                "metadata": { "namespace": TEAM, "name": format!("c-{index}") },
                "spec": { "lanes": 4, "lambdaNm": [1550, 1551, 1552, 1553], "minGbps": 100 },
            }))
            .doing(doing.clone())?;
            corridors.create(&PostParams::default(), &object).await.map(drop).doing(doing)
        })
        .buffer_unordered(CREATING_AT_ONCE)
        .try_collect()
        .await
}

async fn until_all_ready(client: &Client, count: usize) -> Result<()> {
    let started = Instant::now();
    loop {
        let doing = "listing Corridors";
        let listed = all_corridors(client).list(&ListParams::default()).await.doing(doing)?;
        let is_ready = |it: &&kube::api::DynamicObject| it.data["status"]["phase"] == "Ready";
        let ready = listed.items.iter().filter(is_ready).count();
        if ready == count {
            say(&format!("{count} Corridors are Ready ({} s)", started.elapsed().as_secs()));
            return Ok(());
        }
        if started.elapsed() > READY_TIME_MAX {
            let not_ready = listed.items.iter().find(|it| !is_ready(it));
            return Err(Error::TimedOut {
                awaited: format!("{count} Corridors to be Ready"),
                seconds: READY_TIME_MAX.as_secs(),
                seen: format!("{ready} are; one that is not: {:?}", not_ready.map(|it| &it.data)),
            });
        }
        sleep(READY_POLL_EVERY).await;
    }
}

/// Returns when nothing but Leases has been written for a while, with the time that took.
async fn settle(client: &Client) -> Result<Option<Duration>> {
    let started = Instant::now();
    let mut before = total(&writes(client).await?);
    while started.elapsed() < SETTLE_TIME_MAX {
        sleep(QUIET).await;
        let now = total(&writes(client).await?);
        if now == before {
            return Ok(Some(started.elapsed()));
        }
        before = now;
    }
    Ok(None)
}

/// Everything that is measured, at one moment.
struct Look {
    at: Instant,
    cpu_seconds: f64,
    resident_kib: u64,
    writes: BTreeMap<String, u64>,
}

impl Look {
    async fn take(client: &Client, process: u32) -> Result<Self> {
        let writes = writes(client).await?;
        Ok(Self {
            at: Instant::now(),
            cpu_seconds: cpu_seconds(process)?,
            resident_kib: resident_kib(process)?,
            writes,
        })
    }
}

fn figures(before: &Look, after: &Look, settled_after: Option<Duration>) -> Figures {
    let seconds = (after.at - before.at).as_secs_f64();
    let since = |(name, count): (&String, &u64)| {
        let count = count - before.writes.get(name).copied().unwrap_or_default();
        (count > 0).then(|| (name.clone(), count))
    };
    let all: BTreeMap<String, u64> = after.writes.iter().filter_map(since).collect();
    let (leases, writes): (BTreeMap<_, _>, BTreeMap<_, _>) =
        all.into_iter().partition(|(name, _)| is_of_leases(name));
    #[expect(clippy::cast_precision_loss, reason = "there are not that many")]
    let writes_per_second = writes.values().sum::<u64>() as f64 / seconds;
    Figures {
        cpu_share: (after.cpu_seconds - before.cpu_seconds) / seconds,
        writes_per_second,
        lease_writes: leases.values().sum(),
        writes,
        resident_kib_before: before.resident_kib,
        resident_kib_after: after.resident_kib,
        settled_after,
        changes: BTreeMap::new(),
    }
}

fn is_of_leases(write: &str) -> bool {
    write.ends_with(" leases")
}

fn total(writes: &BTreeMap<String, u64>) -> u64 {
    writes.iter().filter(|(name, _)| !is_of_leases(name)).map(|(_, count)| count).sum()
}

/// Writes that the API server has answered so far, by verb and resource. While they are counted, only the
/// scheduler writes, and the API server itself, whose Leases do not count either.
async fn writes(client: &Client) -> Result<BTreeMap<String, u64>> {
    let doing = "reading the API server's metrics";
    let request = Request::get("/metrics")
        .body(Vec::new())
        .map_err(|problem| Error::malformed(doing, problem))?;
    let scraped = client.request_text(request).await.doing(doing)?;
    let mut writes = BTreeMap::new();
    for line in scraped.lines() {
        let Some((labels, count)) = sample(line, "apiserver_request_total") else { continue };
        let label = |name: &str| {
            labels
                .split(',')
                .find_map(|it| it.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
        };
        let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else { continue };
        let is_write =
            matches!(verb, "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE" | "DELETECOLLECTION");
        if is_write && !resource.is_empty() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a counter"
            )]
            let count = count as u64;
            *writes.entry(format!("{verb} {resource}")).or_default() += count;
        }
    }
    Ok(writes)
}
