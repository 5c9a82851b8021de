//! What must be the same with and without a crash.

use std::collections::BTreeMap;

use serde_json::Value;

use super::gate::CrashGate;
use super::story::Lived;
use crate::versions::{Version, differences};

/// What can be counted of a life that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Writes that changed a resourceVersion, by `plural/name`.
    pub writes: BTreeMap<String, usize>,
    /// Allocations that a daemon made, by the object's name.
    pub made: BTreeMap<&'static str, usize>,
    /// The most that lived at one time.
    pub live_max: BTreeMap<&'static str, usize>,
    /// Allocations that were never released.
    pub leaked: Vec<String>,
    pub stations: Vec<(&'static str, Value)>,
    /// What each write changed, without values that differ from life to life.
    traces: BTreeMap<String, Vec<String>>,
}

impl Tally {
    pub fn of(lived: &Lived, gate: &CrashGate) -> Self {
        let accounts: Vec<_> =
            lived.uids.iter().map(|(name, uid)| (*name, gate.account(uid))).collect();
        let writes = |(name, history): (&String, &Vec<Version>)| (name.clone(), count(history));
        let traces = |(name, history): (&String, &Vec<Version>)| (name.clone(), trace(history));
        Self {
            writes: lived.histories.iter().map(writes).collect(),
            made: accounts.iter().map(|(name, it)| (*name, it.made.len())).collect(),
            live_max: accounts.iter().map(|(name, it)| (*name, it.live_max)).collect(),
            leaked: accounts.iter().flat_map(|(_, it)| it.live.clone()).collect(),
            stations: lived.stations.clone(),
            traces: lived.histories.iter().map(traces).collect(),
        }
    }

    /// Everything in which this life differs from one without a crash.
    pub fn differs_from(&self, calm: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, writes) in &self.writes {
            let expected = calm.writes.get(name).copied().unwrap_or_default();
            if *writes != expected {
                let (seen, calm) = (self.trace_of(name), calm.trace_of(name));
                let lines: Vec<_> = unlike(seen, calm, "\n    more: ")
                    .chain(unlike(calm, seen, "\n    less: "))
                    .collect();
                let lines = lines.concat();
                found.push(format!("{writes} writes of {name} instead of {expected}{lines}"));
            }
        }
        if self.made != calm.made {
            found.push(format!("allocations made: {:?} instead of {:?}", self.made, calm.made));
        }
        if self.live_max != calm.live_max {
            let (seen, expected) = (&self.live_max, &calm.live_max);
            found.push(format!("lived at one time: {seen:?} instead of {expected:?}"));
        }
        if !self.leaked.is_empty() {
            found.push(format!("never released: {:?}", self.leaked));
        }
        for ((station, seen), (_, expected)) in self.stations.iter().zip(&calm.stations) {
            let mut differing = Vec::new();
            differences("", expected, seen, &mut differing);
            if !differing.is_empty() {
                found.push(format!("when {station}: {}", differing.join(", ")));
            }
        }
        found
    }

    /// What each write of an object changed.
    pub fn trace_of(&self, name: &str) -> &[String] {
        self.traces.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The lines of one trace that the other has not, or not as often.
fn unlike<'a>(
    one: &'a [String],
    other: &'a [String],
    mark: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let mut left = other.to_vec();
    one.iter().filter_map(move |line| match left.iter().position(|it| it == line) {
        Some(at) => {
            left.swap_remove(at);
            None
        }
        None => Some(format!("{mark}{line}")),
    })
}

fn trace(history: &[Version]) -> Vec<String> {
    let line = |pair: &[Version]| {
        let mut changes = Vec::new();
        differences("", &pair[0].object, &pair[1].object, &mut changes);
        let told: Vec<_> = changes.iter().filter_map(|it| told(it)).collect();
        let place = |it: &String| it.split('=').next().unwrap_or_default().to_owned();
        match (told.is_empty(), pair[1].deleted) {
            (true, true) => "gone".to_owned(),
            (true, false) => {
                let places: Vec<_> = changes.iter().map(place).collect();
                format!("nothing but {}", places.join(", "))
            }
            (false, _) => told.join(", "),
        }
    };
    history.windows(2).map(line).collect()
}

/// A change with its value where that is the same in every life. Times and readings come along with
/// other changes as they happen to be there.
fn told(change: &str) -> Option<String> {
    let value = change.split_once(['=', ' ']).map_or("", |(_, value)| value);
    let place = place(change);
    let last = place.rsplit('.').next().unwrap_or_default();
    match last {
        _ if is_reading(place) => None,
        "lastTransitionTime" | "observedGeneration" => None,
        "phase" | "reason" | "generation" | "message" | "floorGbps" | "floorGBs" | "inUse" => {
            Some(format!("{place}={value}"))
        }
        _ => Some(place.to_owned()),
    }
}

fn place(change: &str) -> &str {
    let place = change.split_once(['=', ' ']).map_or(change, |(place, _)| place);
    place.trim_start_matches("status.").trim_start_matches("conditions.")
}

fn is_reading(place: &str) -> bool {
    ["telemetry", "achievableGbps", "achievedGBs", "tailP99Ms", "movedPages"]
        .iter()
        .any(|it| place.starts_with(it))
}

/// Writes, without those whose number depends on time: that a periodic audit took place, and readings alone. How often
/// those are written is the matter of `idle.rs`.
fn count(history: &[Version]) -> usize {
    let is_routine = |pair: &&[Version]| {
        let mut changes = Vec::new();
        differences("", &pair[0].object, &pair[1].object, &mut changes);
        let is_audit = changes.iter().all(|it| it.starts_with("status.lastAuditTime="));
        let only_readings = changes.iter().all(|it| told(it).is_none());
        !pair[1].deleted && !changes.is_empty() && (is_audit || only_readings)
    };
    history.len() - history.windows(2).filter(is_routine).count()
}
