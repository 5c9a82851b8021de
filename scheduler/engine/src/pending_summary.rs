//! What waiting Pods wait for, counted over all of them. That takes a look at every Pod, so it is not done at every turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Assignment, Instant, Need, NodeName, ObjectRef};

use crate::engine::Engine;
use crate::record::{Record, Stage};
use crate::rejection::Rejection;

/// kube-scheduler's name for what holds gated Pods.
const GATES: &str = "SchedulingGates";
/// The plugin that objects are checked by.
const CORRIDOR: &str = "Corridor";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingSummary {
    /// Pods that wait because of a plugin, by its name and the Pods' profile. One that waits because of two counts
    /// for both.
    pub by_plugin: BTreeMap<(String, Arc<str>), usize>,
    /// Pods held by an object, by why (`Cause::label`).
    pub held: BTreeMap<(ObjectRef, String), usize>,
    /// Since when the first of those is held for that reason.
    pub oldest: BTreeMap<String, Instant>,
    /// CPU in thousandths that Pods request which lack nothing but this object, and no more than is free on all Nodes.
    pub stranded_cpu_milli: BTreeMap<ObjectRef, i64>,
}

impl Engine {
    pub fn pending_summary(&self) -> PendingSummary {
        let mut summary = PendingSummary::default();
        let stats = self.stats();
        if stats.parked + stats.in_queue + stats.blocked + stats.gated == 0 {
            return summary;
        }
        for record in self.observed.pods.values() {
            self.count_in(&mut summary, record);
        }
        if !summary.stranded_cpu_milli.is_empty() {
            let free = self.free_cpu_milli();
            for stranded in summary.stranded_cpu_milli.values_mut() {
                *stranded = free.min(*stranded);
            }
        }
        summary
    }

    fn count_in(&self, summary: &mut PendingSummary, record: &Record) {
        let profile = &record.pod.spec.profile;
        let mut blame = |plugin: String| {
            *summary.by_plugin.entry((plugin, profile.clone())).or_default() += 1;
        };
        match (&record.stage, record.rejection.as_deref()) {
            (Stage::Gated, _) if matches!(record.pod.assignment, Assignment::Gated { .. }) => {
                blame(GATES.to_owned());
            }
            (Stage::Parked, Some(Rejection::Nodes(rejected))) => {
                let reasons = rejected.reasons.values();
                let mut plugins: Vec<_> =
                    reasons.map(|count| count.reason.plugin().to_string()).collect();
                plugins.sort();
                plugins.dedup();
                plugins.into_iter().for_each(blame);
            }
            (
                Stage::InQueue(object) | Stage::Blocked(object),
                Some(Rejection::Object(rejection)),
            ) => {
                blame(CORRIDOR.to_owned());
                let why = rejection.cause.label().to_owned();
                *summary.held.entry((ObjectRef::clone(object), why.clone())).or_default() += 1;
                let since = record.attempts.held.as_ref().map_or(record.first_seen, |held| held.1);
                let oldest = summary.oldest.entry(why).or_insert(since);
                *oldest = since.min(*oldest);
                if self.lacks_only(record, object) {
                    let asked = record.pod.spec.scheduling.requests.asked.cpu_milli;
                    let stranded =
                        summary.stranded_cpu_milli.entry(ObjectRef::clone(object)).or_default();
                    *stranded = stranded.saturating_add(asked);
                }
            }
            _ => {}
        }
    }

    fn lacks_only(&self, record: &Record, object: &ObjectRef) -> bool {
        let spec = &record.pod.spec;
        let is_met = |need: &Need| need.object == *object || self.has_room(spec, need);
        matches!(record.stage, Stage::InQueue(_)) && spec.needs.iter().all(is_met)
    }

    fn free_cpu_milli(&self) -> i64 {
        let free = |name: &NodeName| {
            let node = &self.observed.cluster.nodes.get(name)?.node;
            let requested =
                self.observed.cluster.pods_on(name).map(|pod| pod.requests.effective.cpu_milli);
            let requested = requested.fold(0, i64::saturating_add);
            let takes_more = !node.unschedulable && node.pods_max > 0;
            takes_more.then(|| node.allocatable.cpu_milli.saturating_sub(requested).max(0))
        };
        self.observed.cluster.nodes.keys().filter_map(free).fold(0, i64::saturating_add)
    }
}
