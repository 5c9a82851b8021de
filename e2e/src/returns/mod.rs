//! A long line of Pods before one Corridor whose floor comes and goes.
//!
//! Every Pod asks for the whole floor. Again and again the Pod that holds it ends while the Corridor is
//! Degraded; then the capacity returns in corrd and admits exactly one Pod: the next in the line.

mod stopwatch;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::stopwatch::Stopwatch;
use crate::binaries::say;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::figures::Times;
use crate::metrics;
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::observe::PATIENCE;
use crate::process_cost::cpu_seconds;
use crate::scheduler_process::SchedulerProcess;
use crate::stage::Stage;
use crate::versions::{Key, Versions, kind};

const TEAM: &str = "team-a";
const FLOOR_GBPS: u32 = 100;
/// Below the floor, above zero.
const FALLEN_GBPS: u32 = 40;
const RISEN_GBPS: u32 = 120;

/// One Pod in so many is of each of the classes; the rest has none.
const CLASS_EVERY: usize = 250;
const CLASSES: [(&str, i32); 2] = [("urgent", 1000), ("soon", 10)];

/// Enough to keep the API server busy.
const CREATING_AT_ONCE: usize = 16;
/// 10,000 Pods are told so within two minutes, also where cores are shared.
const HELD_TIME_MAX: Duration = Duration::from_mins(10);
/// The scheduler has nothing left to write when it has been silent for this long.
const SILENCE: Duration = Duration::from_secs(2);
const POLL_EVERY: Duration = Duration::from_millis(100);
/// A write whose effect is seen is answered soon.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
const FREE_POLL_EVERY: Duration = Duration::from_millis(10);
const SAY_EVERY: usize = 20;

/// How many Pods wait, and how often capacity returns for one of them.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub pods: usize,
    pub returns: usize,
}

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// From the answer to the status write that says Ready to the Binding.
    pub status_to_binding: Times,
    /// From the order to corrd to the answer that the Pod is bound.
    pub corrd_to_bound: Times,
    /// Attempts that failed, of all returns together.
    pub failed_attempts: u64,
    /// CPU time of the scheduler from one return to the next, on average: also where cores are shared.
    pub cpu_per_return: Duration,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "status write's reply to Binding POST: {}", self.status_to_binding)?;
        writeln!(f, "corrd change to bound: {}", self.corrd_to_bound)?;
        let cpu = self.cpu_per_return.as_secs_f64() * 1000.0;
        writeln!(
            f,
            "CPU of the scheduler per return, fall and end of a holder included: {cpu:.1} ms"
        )?;
        write!(f, "failed attempts: {}", self.failed_attempts)
    }
}

/// Plays it on a control plane of its own. Fails if ever more or less than one Pod is admitted, out of
/// order, or after more than one failed attempt.
pub async fn play(size: Size) -> Result<Figures> {
    let stopwatch = Stopwatch::new();
    let stage = Stage::start(Arc::clone(&stopwatch) as _).await?;
    let mut line = Line::form(&stage, &stopwatch, size).await?;
    let cpu_before = line.cpu_seconds()?;
    for number in 1..=size.returns {
        line.end_holder(number).await?;
        line.admit_one(number).await?;
        if number % SAY_EVERY == 0 {
            say(&format!("{number} of {} returns; {}", size.returns, line.figures.corrd_to_bound));
        }
    }
    line.end_holder(size.returns + 1).await?;
    line.ensure_degraded_once_each_time(size.returns + 1)?;
    let cpu = Duration::from_secs_f64(line.cpu_seconds()? - cpu_before);
    line.figures.cpu_per_return = cpu / u32::try_from(size.returns.max(1)).unwrap_or(u32::MAX);
    Ok(line.figures)
}

struct Line<'a> {
    stage: &'a Stage,
    stopwatch: &'a Stopwatch,
    scheduler: SchedulerProcess,
    versions: Versions,
    corridor: Key,
    corridor_id: String,
    /// Names, in the order in which they are to be admitted.
    waiting: Vec<String>,
    holder: Option<String>,
    /// Bindings before the last return, and failed attempts.
    before: (usize, u64),
    figures: Figures,
}

impl<'a> Line<'a> {
    /// Makes a Corridor, lets it fall below its floor, and fills the line.
    async fn form(stage: &'a Stage, stopwatch: &'a Stopwatch, size: Size) -> Result<Self> {
        let cluster = &stage.cluster;
        cluster.ensure_namespace(TEAM).await?;
        for (name, value) in CLASSES {
            cluster.ensure_priority_class(name, value).await?;
        }
        cluster.create_nodes(3, &NodeTemplate::new("64", "256Gi")).await?;
        let versions = Versions::start(cluster.admin(), &[kind("corridors")]).await?;
        // What is measured is how fast a return is used, not how long one is doubted after so many.
        let scheduler =
            stage.start_scheduler_with(&json!({ "floor": { "dwellSeconds": 0 } })).await?;
        let corridor = Corridor::create(cluster.admin(), TEAM, "c1", FLOOR_GBPS).await?;
        let key: Key = ("corridors".into(), TEAM.into(), "c1".into());
        let ready = |it: Option<&Value>| it.is_some_and(|it| it["status"]["phase"] == "Ready");
        let allocated = versions.until(&key, "Ready", PATIENCE, ready).await?;
        let corridor_id = allocated["status"]["corridorId"].as_str().unwrap_or_default().to_owned();
        let mut line = Self {
            stage,
            stopwatch,
            scheduler,
            versions,
            corridor: key,
            corridor_id,
            waiting: Vec::new(),
            holder: None,
            before: (0, 0),
            figures: Figures::default(),
        };
        line.fall().await?;
        line.fill(&corridor, size.pods).await?;
        Ok(line)
    }

    async fn fill(&mut self, corridor: &Corridor, count: usize) -> Result<()> {
        let whole = PodTemplate::small().corridor(corridor, &FLOOR_GBPS.to_string());
        let pods: Vec<Pod> = stream::iter(0..count)
            .map(|index| {
                let template = match CLASSES.get(index % CLASS_EVERY) {
                    Some((class, value)) => whole.clone().priority(class, *value),
                    None => whole.clone(),
                };
                let admin = self.stage.cluster.admin();
                async move { template.create(admin, TEAM, &format!("p-{index}")).await }
            })
            .buffer_unordered(CREATING_AT_ONCE)
            .try_collect()
            .await?;
        self.waiting = in_order(pods)?;
        say(&format!("{count} Pods are created; waiting until they are held"));
        let started = Instant::now();
        while self.stopwatch.told_count() < count || self.stopwatch.silence() < SILENCE {
            if started.elapsed() > HELD_TIME_MAX {
                return Err(Error::TimedOut {
                    awaited: format!("{count} Pods to be held, each with a reason"),
                    seconds: HELD_TIME_MAX.as_secs(),
                    seen: format!("{} were told why they wait", self.stopwatch.told_count()),
                });
            }
            sleep(POLL_EVERY).await;
        }
        say(&format!("all are held ({} s)", started.elapsed().as_secs()));
        self.before = (self.stopwatch.bindings().len(), self.failed_attempts().await?);
        Ok(())
    }

    /// Capacity falls; then the holder ends, deleted or finished, and the scheduler says that it knows.
    async fn end_holder(&mut self, number: usize) -> Result<()> {
        if let Some(holder) = self.holder.take() {
            self.fall().await?;
            if number.is_multiple_of(2) {
                delete_pod(self.stage.cluster.admin(), TEAM, &holder).await?;
            } else {
                let finished = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
                let pods = self.stage.cluster.pods(TEAM);
                let doing = format!("finishing Pod {holder}");
                pods.patch_status(&holder, &PatchParams::default(), &finished)
                    .await
                    .doing(doing)?;
            }
        }
        self.until_free().await?;
        self.check_last_return(number).await
    }

    /// Until the scheduler itself says that nothing of the Corridor is reserved. (The object says so up
    /// to a second later.)
    async fn until_free(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            let scraped = self.scheduler.metrics().await?;
            if metrics::sum(&scraped, "corridor_reserved_gbps", &[]) < 1.0 {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                return Err(Error::TimedOut {
                    awaited: "the scheduler to free what an ended Pod had reserved".into(),
                    seconds: PATIENCE.as_secs(),
                    seen: "corridor_reserved_gbps stays above 0".into(),
                });
            }
            sleep(FREE_POLL_EVERY).await;
        }
    }

    /// Exactly one Binding since the last look, and at most one attempt that failed.
    async fn check_last_return(&mut self, number: usize) -> Result<()> {
        let bindings = self.stopwatch.bindings().len();
        let failed = self.failed_attempts().await?;
        let expected = usize::from(number > 1);
        let admitted = bindings - self.before.0;
        ensure(admitted == expected, || {
            format!("return {} admitted {admitted} Pods, not {expected}", number - 1)
        })?;
        let in_vain = failed.saturating_sub(self.before.1);
        ensure(in_vain <= 1, || {
            format!("{in_vain} attempts failed around return {}, at most 1 may", number - 1)
        })?;
        self.figures.failed_attempts += in_vain;
        self.before = (bindings, failed);
        Ok(())
    }

    /// Capacity returns, and the next in the line is bound.
    async fn admit_one(&mut self, number: usize) -> Result<()> {
        let returned = Instant::now();
        self.force(RISEN_GBPS).await?;
        let expected = self.before.0 + 1;
        let is_bound = self.stopwatch.until_bindings(expected, PATIENCE).await;
        ensure(is_bound, || format!("nobody was bound after return {number}"))?;
        let bindings = self.stopwatch.bindings();
        let bound = &bindings[expected - 1];
        let turn = &self.waiting[number - 1];
        ensure(bound.pod == *turn && bound.status == StatusCode::CREATED, || {
            format!("return {number} is the turn of {turn}, but {bound:?} came")
        })?;
        let said =
            self.stopwatch.said("Ready", returned, ANSWER_TIME_MAX).await.ok_or_else(|| {
                Error::Violated(format!(
                    "{turn} was bound, but nobody said that the Corridor is Ready"
                ))
            })?;
        // The watch can be ahead of the answer: then no time has passed.
        let since_status = bound.asked.saturating_duration_since(said.answered);
        self.figures.status_to_binding.add(since_status);
        self.figures.corrd_to_bound.add(bound.answered.saturating_duration_since(returned));
        self.holder = Some(turn.clone());
        Ok(())
    }

    async fn fall(&self) -> Result<()> {
        self.force(FALLEN_GBPS).await?;
        let fallen = |it: Option<&Value>| it.is_some_and(|it| it["status"]["phase"] == "Degraded");
        self.versions.until(&self.corridor, "Degraded", PATIENCE, fallen).await.map(drop)
    }

    async fn force(&self, gbps: u32) -> Result<()> {
        let readings = json!({ "achievable_gbps": gbps });
        self.stage.daemons.force_corridor(&self.corridor_id, readings).await
    }

    fn cpu_seconds(&self) -> Result<f64> {
        self.scheduler.process_id().map_or(Ok(0.0), cpu_seconds)
    }

    async fn failed_attempts(&self) -> Result<u64> {
        let scraped = self.scheduler.metrics().await?;
        let of =
            |result: &str| metrics::sum(&scraped, "scheduler_schedule_attempts_total", &[result]);
        let failed = of("result=\"unschedulable\"") + of("result=\"error\"");
        // Counters are whole numbers that fit.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(failed as u64)
    }

    /// From the record of the Corridor: one fall, one transition.
    fn ensure_degraded_once_each_time(&self, falls: usize) -> Result<()> {
        let history = self.versions.history(&self.corridor);
        let phase = |index: usize| history[index].object["status"]["phase"].as_str();
        let is_fall = |index: &usize| {
            phase(*index) == Some("Degraded") && phase(index - 1) != Some("Degraded")
        };
        let seen = (1..history.len()).filter(is_fall).count();
        ensure(seen == falls, || format!("{falls} falls made the Corridor Degraded {seen} times"))
    }
}

/// By priority, then by arrival: the time of creation in whole seconds, then the order in which a watch
/// shows them.
fn in_order(pods: Vec<Pod>) -> Result<Vec<String>> {
    let mut keys = BTreeSet::new();
    for pod in pods {
        let name = pod.name_any();
        let doing = || format!("reading Pod {name}");
        let text = pod.resource_version().unwrap_or_default();
        let version: u64 = text.parse().map_err(|_| Error::malformed(doing(), text))?;
        let created = pod.metadata.creation_timestamp.as_ref();
        let created = created.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let priority = pod.spec.and_then(|spec| spec.priority).unwrap_or_default();
        keys.insert((-priority, created, version, name));
    }
    Ok(keys.into_iter().map(|key| key.3).collect())
}
