//! Changes of leader under load, and what must hold over all of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::line::Condition;
use super::load::{Created, Load, Pace};
use super::site::ReplicaSite;
use super::{LEASE_DURATION, SETTLE, SLACK};
use crate::binaries::say;
use crate::checkers::{Limits, ensure_never_rebound};
use crate::error::{Error, Result, ensure};
use crate::figures::Times;
use crate::metrics;
use crate::objects::custom::{Custom, CustomKind};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodState as _;
use crate::observe::PATIENCE;
use crate::recorder::{PodVersion, Recorder};

const LEADER: &str = "corridoros.io/leader";
const TEAM: &str = "team-a";
/// 40 small Pods fit on each.
const NODES: usize = 12;
const FLOOR_GBPS: u64 = 40;
/// Ten fit at a time, and more wait.
const ASKED_GBPS: &str = "4";
const PACE: Pace = Pace {
    every: Duration::from_millis(30),
    corridor_one_in: 5,
    lifetime: Duration::from_millis(1500),
};
/// Bindings that must be on their way when a leader is stopped.
const HELD_MIN: usize = 3;
/// So many changes of leader are recorded at a time: the record is kept in memory.
const ROUNDS_PER_RECORD: usize = 10;

/// How a leader ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// SIGKILL.
    Killed,
    /// SIGSTOP for longer than its Lease, with Bindings under way, and then SIGCONT.
    Stopped,
    /// SIGTERM, and started again.
    Restarted,
}

/// What was seen of many changes of leader.
#[derive(Debug, Default)]
pub struct Outcome {
    /// From the end of a leader to the first Pod bound by the next.
    pub takeovers: Times,
    /// Bindings of late leaders that the API server refused.
    pub refused: usize,
    pub pods: usize,
    /// From a Pod's creation to its Binding, for those that ask no corridor.
    pub waits: Times,
}

/// Plays the ends one after the other, under load.
pub async fn play(site: &mut ReplicaSite, ends: &[End]) -> Result<Outcome> {
    site.cluster.ensure_namespace(TEAM).await?;
    site.cluster.create_nodes(NODES, &NodeTemplate::new("4", "64Gi")).await?;
    let spec = json!({
        "lanes": 4, "lambdaNm": [1550, 1551, 1552, 1553], "minGbps": FLOOR_GBPS,
        "attestationRequired": false,
    });
    let corridor = Custom::create(site.admin(), CustomKind::Corridor, TEAM, "c1", spec).await?;
    corridor.until_phase("Ready").await?;
    let mut outcome = Outcome::default();
    for ends in ends.chunks(ROUNDS_PER_RECORD) {
        play_recorded(site, &corridor, ends, &mut outcome).await?;
    }
    ensure_bound_once(site)?;
    ensure_no_alarm(site).await?;
    Ok(outcome)
}

async fn play_recorded(
    site: &mut ReplicaSite,
    corridor: &Custom,
    ends: &[End],
    outcome: &mut Outcome,
) -> Result<()> {
    let limits = Limits::read(site.admin(), &[]).await?.with_corridor(&corridor.uid, FLOOR_GBPS);
    let recorder = Recorder::start(site.admin()).await?;
    let load = Load::start(site.admin(), corridor, ASKED_GBPS, PACE);
    for end in ends {
        let took = change_leader(site, &recorder, *end, outcome).await?;
        say(&format!("{end:?}: the next leader bound after {} ms", took.as_millis()));
        let most = match end {
            End::Killed | End::Stopped => LEASE_DURATION + SLACK + SETTLE,
            End::Restarted => LEASE_DURATION + SLACK,
        };
        ensure(took <= most, || format!("{end:?}: the next leader bound after {took:?}"))?;
        outcome.takeovers.add(took);
    }
    let created = load.drain().await?;
    let versions = recorder.finish(PATIENCE).await?;
    ensure_never_rebound(&versions)?;
    limits.check(&versions)?;
    ensure_terms_do_not_overlap(&versions)?;
    note_waits(&created, &versions, &mut outcome.waits)?;
    outcome.pods += created.len();
    Ok(())
}

/// Ends the leader and returns how long it took until another bound a Pod.
async fn change_leader(
    site: &mut ReplicaSite,
    recorder: &Recorder,
    end: End,
    outcome: &mut Outcome,
) -> Result<Duration> {
    let number = site.leader().await?;
    let former = site.term().await?;
    let bound_by_it = |versions: &[PodVersion]| versions.iter().any(|it| is_by(it, &former));
    recorder.until("the leader to bind a Pod", PATIENCE, bound_by_it).await?;
    let earlier = terms_so_far(recorder).await?;
    let ended = match end {
        End::Killed => {
            // In its place, a new one follows.
            let replacement = site.start_replica().await?;
            let killed = std::mem::replace(&mut site.replicas[number], replacement);
            let ended = Instant::now();
            killed.process.kill9_quietly().await?;
            ended
        }
        End::Stopped => {
            let leader = &mut site.replicas[number];
            leader.line.set(Condition::HoldsBindings);
            leader.line.until_held(HELD_MIN).await;
            leader.stop()?;
            Instant::now()
        }
        End::Restarted => {
            let replacement = site.start_replica().await?;
            let former = std::mem::replace(&mut site.replicas[number], replacement);
            let ended = Instant::now();
            let code = former.process.terminate().await?;
            ensure(code == 0, || format!("a replica ended with exit code {code} after SIGTERM"))?;
            ended
        }
    };
    let mut took = Duration::ZERO;
    let next_leader = |versions: &[PodVersion]| {
        let first = versions.iter().find(|it| term_of(it).is_some_and(|it| !earlier.contains(it)));
        took = first.map_or(took, |first| first.seen.saturating_duration_since(ended));
        first.is_some()
    };
    recorder.until("another leader to bind a Pod", PATIENCE, next_leader).await?;
    if end == End::Stopped {
        let late = &mut site.replicas[number];
        outcome.refused += late.line.let_late_bindings_arrive().await?;
        late.go_on()?;
        late.until_it_leads(false, PATIENCE).await?;
    }
    Ok(took)
}

fn is_by(version: &PodVersion, term: &str) -> bool {
    version.pod.node().is_some() && version.pod.annotation(LEADER) == Some(term)
}

fn term_of(version: &PodVersion) -> Option<&str> {
    version.pod.node().and(version.pod.annotation(LEADER))
}

/// Of every leader that has bound a Pod.
async fn terms_so_far(recorder: &Recorder) -> Result<HashSet<String>> {
    let mut terms = HashSet::new();
    let look = |versions: &[PodVersion]| {
        terms.extend(versions.iter().filter_map(term_of).map(str::to_owned));
        true
    };
    recorder.until("a look at the Pods", PATIENCE, look).await?;
    Ok(terms)
}

/// Once a leader has bound a Pod, none that led before it binds another.
fn ensure_terms_do_not_overlap(versions: &[PodVersion]) -> Result<()> {
    let (mut known, mut over, mut last) = (HashSet::new(), HashSet::new(), None);
    for version in versions.iter().filter(|it| it.pod.node().is_some()) {
        let Some(leader) = version.pod.annotation(LEADER) else {
            let (name, at) = (&version.pod.metadata.name, version.resource_version);
            return Err(Error::Violated(format!("at version {at}, Pod {name:?} names no leader")));
        };
        if !known.insert(version.pod.uid_str()) {
            continue;
        }
        ensure(!over.contains(leader), || {
            let at = version.resource_version;
            format!("at version {at}, {leader} bound a Pod after {last:?} had begun to")
        })?;
        if last.is_some_and(|last| last != leader) {
            over.extend(last);
        }
        last = Some(leader);
    }
    Ok(())
}

/// Every Pod was bound, and how long those waited that wait for nothing but the scheduler.
fn note_waits(
    created: &HashMap<String, Created>,
    versions: &[PodVersion],
    waits: &mut Times,
) -> Result<()> {
    let mut bound: BTreeMap<&str, Instant> = BTreeMap::new();
    for version in versions.iter().filter(|it| it.pod.node().is_some()) {
        bound.entry(version.pod.uid_str()).or_insert(version.seen);
    }
    for (uid, pod) in created {
        let bound = bound.get(uid.as_str()).copied();
        let bound = bound.ok_or_else(|| Error::Violated(format!("Pod {} was lost", pod.name)))?;
        if !pod.asks_corridor {
            waits.add(bound.saturating_duration_since(pod.at));
        }
    }
    Ok(())
}

/// A change of leader is no tampering: no replica takes what another leader wrote for a forgery.
async fn ensure_no_alarm(site: &ReplicaSite) -> Result<()> {
    for replica in &site.replicas {
        let alarms =
            metrics::sum(&replica.process.metrics().await?, "corridor_tampering_total", &[]);
        ensure(alarms < 0.5, || format!("{alarms} false alarms:\n{}", replica.process.log()))?;
    }
    Ok(())
}

/// By the API server's own record.
fn ensure_bound_once(site: &ReplicaSite) -> Result<()> {
    let Some(audit) = site.cluster.audit() else { return Ok(()) };
    let mut bound = HashSet::new();
    for binding in audit.successful_bindings()? {
        let is_first = bound.insert(binding.pod_uid.clone());
        ensure(is_first, || format!("Pod {} was bound twice", binding.pod))?;
    }
    Ok(())
}
