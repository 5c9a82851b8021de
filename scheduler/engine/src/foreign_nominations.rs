//! Pods of other schedulers that are nominated for a Node: room is kept for them there, for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, Instant, NodeName, Pod, PodUid};

use crate::engine::Engine;
use crate::wake::ClusterChange;

/// A nomination by another scheduler counts for this long: one that it never withdraws must not block a Node for ever.
const FOREIGN_NOMINATION_FOR: Duration = Duration::from_mins(5);

/// Nominated Pods of other schedulers: the Node of each, and until when that counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ForeignNominations {
    nominated: BTreeMap<PodUid, (NodeName, Instant)>,
}

impl ForeignNominations {
    /// When the next nomination that still counts ends.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        self.nominated.values().map(|(_, until)| *until).filter(|until| *until > now).min()
    }
}

impl Engine {
    /// A Pod of another scheduler. It counts by its nominated Node.
    pub(crate) fn foreign_seen(&mut self, pod: &Pod) {
        let Some(node) = pod.nominated_node.clone() else {
            self.foreign_gone(&pod.uid);
            return;
        };
        let new = (node.clone(), self.now + FOREIGN_NOMINATION_FOR);
        let nomination =
            self.observed.foreign.nominated.entry(pod.uid.clone()).or_insert(new.clone());
        if nomination.0 != node {
            *nomination = new;
        }
        if nomination.1 <= self.now {
            return;
        }
        let mut nominated = ClusterPod::new(pod.key.clone(), pod.uid.clone());
        nominated.nominated_node = Some(node);
        nominated.scheduling = pod.spec.scheduling.clone();
        let before = self.observed.cluster.insert_pod(nominated.clone());
        self.cluster_changed(ClusterChange::Pod {
            before: before.as_deref(),
            after: Some(&nominated),
        });
    }

    pub(crate) fn foreign_gone(&mut self, uid: &PodUid) {
        if self.observed.foreign.nominated.remove(uid).is_some() {
            self.withdraw_foreign(uid);
        }
    }

    pub(crate) fn age_foreign(&mut self) {
        let nominated = self.observed.foreign.nominated.iter();
        let aged = nominated.filter(|(uid, (_, until))| {
            *until <= self.now && self.observed.cluster.pods().contains_key(*uid)
        });
        let aged: Vec<PodUid> = aged.map(|(uid, _)| uid.clone()).collect();
        for uid in aged {
            self.withdraw_foreign(&uid);
        }
    }

    fn withdraw_foreign(&mut self, uid: &PodUid) {
        if let Some(gone) = self.observed.cluster.remove_pod(uid) {
            self.cluster_changed(ClusterChange::Pod { before: Some(&gone), after: None });
        }
    }
}
