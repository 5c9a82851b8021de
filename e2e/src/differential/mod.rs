//! The scheduler under test beside the real kube-scheduler, on the same API server.
//!
//! Random clusters stand still while one Pod after another is tried on them. kube-scheduler is given
//! each Pod for real, and what it does is seen on the API server and in its log; ours is asked what it
//! would do (`POST /api/what-if`). They agree when the Pod is placed by both or by neither, for the
//! same reasons on as many Nodes, when kube-scheduler's Node is one of our best and its best are ours,
//! and when both would delete the same Pods to make room.

mod allowed;
mod api;
mod compare;
mod figures;
mod frozen;
mod kube_side;
mod log;
mod message;
mod our_side;
mod shadow;
mod standing;
mod volumes;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

pub use allowed::{ALLOWED, Allowed};
pub use compare::{About, Difference};
pub use figures::Figures;
pub use random_clusters::{Rule, Rules};
pub use shadow::{ShadowFigures, ShadowOptions, shadow};

use random_clusters::{
    GeneratedCluster, PlacedPod, Random, add_checked_volumes, give_volumes, incoming,
};

use crate::binaries::say;
use crate::control_plane::ControlPlane;
use crate::error::{Doing as _, Result};
use allowed::{all_allowed, allowed, fault, scene};
use api::Api;
use compare::{Terms, compare};
use kube_side::{INCOMING, KubeSide, Tried};
use our_side::OurSide;

/// A cluster costs as much as several cases.
const CASES_PER_CLUSTER: usize = 15;
/// Both schedulers follow the API server at their own pace: a difference must last to count.
const TRIES_MAX: usize = 4;
const ASKS_MAX: usize = 4;
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(15);
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Large enough to keep the Pods of a cluster apart from the cluster itself.
const SEED_STRIDE: u64 = 0x0001_0000_0001;

/// Another chance for volumes: beside them, the cluster of a seed is as it is.
const VOLUMES_SEED: u64 = 0x766f_6c75_6d65_7300;

/// What to compare.
#[derive(Debug, Clone)]
pub struct Options {
    pub cases: usize,
    /// Of the first cluster; the next one has the next seed.
    pub seed: u64,
    pub rules: Rules,
    /// Where everything about a case that differs is written, also by a known fault of kube-scheduler.
    pub keep: Option<PathBuf>,
    /// JSON pointers to fields of a Pod that ours is not told of. Then they must not agree: this is
    /// how the comparison itself is tested.
    pub forget: Vec<String>,
}

/// Compares, and tells how it went. An error only means that it could not be found out.
pub async fn play(options: &Options) -> Result<Figures> {
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let api = Api::new(plane.admin());
    standing::create(&api).await?;
    let ours = OurSide::start(&plane.cluster().await?).await?;
    let kube = KubeSide::start(&plane).await?;
    let started = Instant::now();
    let mut run = Run { options, api, ours, kube, figures: Figures::default() };
    run.all_cases().await?;
    run.figures.took = started.elapsed();
    Ok(run.figures)
}

struct Run<'a> {
    options: &'a Options,
    api: Api,
    ours: OurSide,
    kube: KubeSide,
    figures: Figures,
}

/// One Pod on one cluster.
struct Case<'a> {
    seed: u64,
    number: usize,
    cluster: &'a GeneratedCluster,
    pod: Value,
    /// What gives it volumes, if it gets some.
    volumes: Option<Random>,
    terms: Terms,
}

impl Case<'_> {
    fn title(&self) -> String {
        format!("seed {}, case {}", self.seed, self.number)
    }
}

/// What the last look at both sides showed.
struct Look {
    tried: Tried,
    answer: Value,
    differences: Vec<Difference>,
    /// A fault of kube-scheduler by which they may differ.
    fault: Option<&'static str>,
}

impl Run<'_> {
    async fn all_cases(&mut self) -> Result<()> {
        let mut seed = self.options.seed;
        let mut said = Instant::now();
        while self.figures.cases < self.options.cases {
            self.cases_on_cluster(seed).await?;
            seed += 1;
            if said.elapsed() > SAY_EVERY {
                said = Instant::now();
                let Figures { cases, differing, .. } = &self.figures;
                say(&format!("{cases} cases compared, {} differ", differing.len()));
            }
        }
        Ok(())
    }

    async fn cases_on_cluster(&mut self, seed: u64) -> Result<()> {
        let mut rules = self.options.rules.clone();
        let has_volumes = rules.has(Rule::Volumes);
        if has_volumes {
            rules = rules.beside_volumes(seed);
        }
        let mut cluster = GeneratedCluster::new(&mut Random::new(seed), &rules);
        if has_volumes {
            add_checked_volumes(&mut Random::new(seed ^ VOLUMES_SEED), &mut cluster);
        }
        frozen::clear(&self.api).await?;
        frozen::build(&self.api, &cluster).await?;
        let leaving = cluster.placed.iter().filter(|pod| pod.is_terminating);
        let terms = Terms {
            preemption: rules.has(Rule::Preemption),
            leaving: leaving.map(PlacedPod::key).collect(),
        };
        let left = self.options.cases - self.figures.cases;
        for number in 0..left.min(CASES_PER_CLUSTER) {
            let of_case = seed.wrapping_add(SEED_STRIDE.wrapping_mul(number as u64 + 1));
            let pod = incoming(&mut Random::new(of_case), &rules);
            let volumes = has_volumes.then(|| Random::new(of_case ^ VOLUMES_SEED));
            let terms = terms.clone();
            let cluster = &cluster;
            self.case(&Case { seed, number, cluster, pod, volumes, terms }).await?;
        }
        Ok(())
    }

    /// Looks until they agree, or it is clear that they do not.
    async fn case(&mut self, case: &Case<'_>) -> Result<()> {
        // What is overlooked on purpose is overlooked every time.
        let tries_max = if self.options.forget.is_empty() { TRIES_MAX } else { 1 };
        let mut look = self.look(case, 0).await?;
        for attempt in 1..tries_max {
            // By a fault, too, they must differ twice: a cache that is behind is none.
            if all_allowed(&look.differences) || (look.fault.is_some() && attempt > 1) {
                break;
            }
            self.figures.tried_again += 1;
            sleep(TRY_AGAIN_AFTER).await;
            look = self.look(case, attempt).await?;
        }
        self.figures.add(&look.tried.outcome);
        let mut unknown = vec![];
        for difference in &look.differences {
            match allowed(difference) {
                Some(entry) => *self.figures.allowed.entry(entry.quirk).or_default() += 1,
                None => unknown.push(difference.to_string()),
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        self.keep(case, &look)?;
        if let Some(fault) = look.fault {
            *self.figures.allowed.entry(fault).or_default() += 1;
        } else {
            self.figures.differing.push(format!("{}: {}", case.title(), unknown.join("\n")));
        }
        Ok(())
    }

    async fn look(&mut self, case: &Case<'_>, attempt: usize) -> Result<Look> {
        let mut pod = case.pod.clone();
        let name = format!("{INCOMING}{}-{}-{attempt}", case.seed, case.number);
        pod["metadata"]["name"] = json!(name);
        let mut random = case.volumes.clone();
        let claims = random.as_mut().map(|random| give_volumes(random, case.cluster, &mut pod));
        let claims = claims.unwrap_or_default();
        let gate = self.look_behind_gate(&pod).await?;
        let tried = self.kube.try_pod(case.cluster, &pod, &claims).await?;
        let known = volumes::named_as_claims(&tried.stored, &claims);
        let known = without(&known, &self.options.forget);
        let (mut answer, mut read) = self.ours.ask(&known).await?;
        let mut differences = compare(&case.terms, &tried.outcome, &read);
        for _ in 1..ASKS_MAX {
            if all_allowed(&differences) {
                break;
            }
            self.figures.asked_again += 1;
            sleep(ASK_AGAIN_AFTER).await;
            (answer, read) = self.ours.ask(&known).await?;
            differences = compare(&case.terms, &tried.outcome, &read);
        }
        if gate.is_some() || tried.attempts_behind_gate > 0 {
            differences.push(Difference {
                about: About::Gate,
                ours: gate.unwrap_or_else(|| "left alone".to_owned()),
                real: format!("tried {} times", tried.attempts_behind_gate),
            });
        }
        volumes::remove_claims(&self.api, &claims).await?;
        let fault = fault(&scene(case.cluster, &pod, &claims), &differences);
        Ok(Look { tried, answer, differences, fault: fault.map(|it| it.name) })
    }

    /// `None` unless our scheduler does something with a Pod behind a gate.
    async fn look_behind_gate(&mut self, pod: &Value) -> Result<Option<String>> {
        if pod["spec"]["schedulingGates"].is_null() {
            return Ok(None);
        }
        self.figures.gated += 1;
        self.ours.look_behind_gate(pod).await
    }

    fn keep(&self, case: &Case<'_>, look: &Look) -> Result<()> {
        let Some(folder) = &self.options.keep else { return Ok(()) };
        let path = folder.join(format!("seed-{}-case-{}.json", case.seed, case.number));
        let doing = || format!("writing {}", path.display());
        fs::create_dir_all(folder).doing(doing())?;
        let differences: Vec<String> = look.differences.iter().map(ToString::to_string).collect();
        let written = look.tried.written.iter().map(ToString::to_string);
        let everything = json!({
            "differences": differences,
            "fault": look.fault,
            "kubeScheduler": format!("{:?}", look.tried.outcome),
            "pluginScores": look.tried.plugins,
            "kubeSchedulerWrote": written.collect::<Vec<_>>(),
            "ours": look.answer,
            "pod": look.tried.stored,
            "cluster": case.cluster.to_json(),
        });
        let text = serde_json::to_string_pretty(&everything).doing(doing())?;
        fs::write(&path, text).doing(doing())
    }
}

fn without(pod: &Value, pointers: &[String]) -> Value {
    let mut pod = pod.clone();
    for pointer in pointers {
        let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = pod.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(field);
        }
    }
    pod
}
