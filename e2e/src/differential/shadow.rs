//! Shadow mode beside the real kube-scheduler: random Pods, one at a time, and what both made of them.

use std::fmt;
use std::time::Duration;

use random_clusters::{GeneratedCluster, Random, Rule, Rules, incoming, key_of, name_of};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::api::Api;
use super::frozen::{self, pods_of};
use super::kube_side::{Fate, INCOMING, KubeSide};
use super::standing;
use crate::binaries::say;
use crate::control_plane::{AuditWrite, ControlPlane};
use crate::error::{Doing as _, Error, Result};
use crate::scheduler_process::SchedulerProcess;

/// Clusters are small: after so many Pods the next one begins.
const PODS_PER_CLUSTER: usize = 40;
/// Both schedulers hear of a new cluster at their own pace.
const SETTLES_WITHIN: Duration = Duration::from_millis(400);
/// Generous: reached only when something is wrong.
const COMPARED_WITHIN: Duration = Duration::from_secs(20);
const SAY_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct ShadowOptions {
    pub pods: usize,
    pub seed: u64,
    /// What the shadow is started with beside `--shadow`: another configuration, to see that it is found out.
    pub flags: Vec<String>,
}

/// What it found.
#[derive(Debug)]
pub struct ShadowFigures {
    pub pods: usize,
    pub placed: usize,
    pub held: usize,
    /// kube-scheduler cannot read what they ask for: nothing to compare.
    pub failed: usize,
    /// The answer of `/api/shadow`.
    pub told: Value,
    pub metrics: String,
    pub writes: Vec<AuditWrite>,
    pub took: Duration,
}

impl ShadowFigures {
    pub fn compared(&self) -> u64 {
        self.told["compared"].as_u64().unwrap_or(0)
    }

    pub fn agreement(&self) -> f64 {
        self.told["agreement"].as_f64().unwrap_or(0.0)
    }
}

impl fmt::Display for ShadowFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} Pods ({} placed, {} held, {} failed): {} decisions compared, agreement {:.3} %, {} writes, {:.0} s",
            self.pods,
            self.placed,
            self.held,
            self.failed,
            self.compared(),
            self.agreement() * 100.0,
            self.writes.len(),
            self.took.as_secs_f64(),
        )?;
        writeln!(f, "by reason: {}", self.told["byReason"])?;
        for disagreement in self.told["disagreements"].as_array().into_iter().flatten() {
            writeln!(f, "{disagreement}")?;
        }
        Ok(())
    }
}

/// Everything but what takes several attempts of one Pod: then two are under way at a time.
fn rules() -> Rules {
    Rules::all().without(&[Rule::Preemption, Rule::Gates, Rule::Resizing])
}

pub async fn shadow(options: &ShadowOptions) -> Result<ShadowFigures> {
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let api = Api::new(plane.admin());
    standing::create(&api).await?;
    let flags = ["--shadow=default-scheduler"].into_iter();
    let flags: Vec<&str> = flags.chain(options.flags.iter().map(String::as_str)).collect();
    let process = SchedulerProcess::start(plane.scheduler_kubeconfig(), &flags).await?;
    let mut run = Run { kube: KubeSide::start(&plane).await?, api, placed: 0, held: 0, failed: 0 };
    let (started, mut said) = (Instant::now(), Instant::now());
    let (mut pods, mut seed) = (0, options.seed);
    while pods < options.pods {
        let count = PODS_PER_CLUSTER.min(options.pods - pods);
        run.cluster(seed, count).await?;
        (pods, seed) = (pods + count, seed + 1);
        if said.elapsed() > SAY_EVERY {
            said = Instant::now();
            say(&format!("{pods} Pods"));
        }
    }
    let told = until_compared(&process, run.placed + run.held).await?;
    Ok(ShadowFigures {
        pods,
        placed: run.placed,
        held: run.held,
        failed: run.failed,
        told,
        metrics: process.metrics().await?,
        writes: plane.audit().writes_of_scheduler()?,
        took: started.elapsed(),
    })
}

struct Run {
    kube: KubeSide,
    api: Api,
    placed: usize,
    held: usize,
    failed: usize,
}

impl Run {
    async fn cluster(&mut self, seed: u64, pods: usize) -> Result<()> {
        let mut random = Random::new(seed);
        let cluster = GeneratedCluster::new(&mut random, &rules());
        frozen::clear(&self.api).await?;
        frozen::build(&self.api, &cluster).await?;
        sleep(SETTLES_WITHIN).await;
        for number in 0..pods {
            let mut pod = incoming(&mut random, &rules());
            pod["metadata"]["name"] = format!("{INCOMING}{seed}-{number}").into();
            self.api.create(&pods_of(name_of(&pod).0), &pod).await?;
            let fate = self.kube.until_known(&key_of(&pod)).await?;
            match fate {
                Fate::Placed => self.placed += 1,
                Fate::Held => self.held += 1,
                Fate::Failed => self.failed += 1,
            }
            if fate != Fate::Placed {
                // Else it is tried again beside the next one.
                frozen::delete_pod(&self.api, &pod).await?;
            }
        }
        Ok(())
    }
}

/// Each of so many Pods was compared at least once.
async fn until_compared(process: &SchedulerProcess, pods: usize) -> Result<Value> {
    let deadline = Instant::now() + COMPARED_WITHIN;
    loop {
        let answer = process.get("/api/shadow").await?;
        let told: Value = serde_json::from_str(&answer).doing("reading /api/shadow")?;
        if told["compared"].as_u64().is_some_and(|compared| compared >= pods as u64) {
            return Ok(told);
        }
        if Instant::now() > deadline {
            return Err(Error::TimedOut {
                awaited: format!("{pods} Pods to be compared"),
                seconds: COMPARED_WITHIN.as_secs(),
                seen: told.to_string(),
            });
        }
        sleep(Duration::from_millis(200)).await;
    }
}
