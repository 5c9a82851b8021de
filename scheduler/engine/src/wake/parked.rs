//! Pods that fit on no Node return when a Node takes them that did not, or when preemption can make
//! room where it could not. Every change of the cluster is judged for every kind of Pod that waits,
//! as narrowly as the rules allow: most changes concern one Node.

use std::collections::BTreeSet;

use model::{ClusterPod, NodeName, ObjectRef, PodUid, WhenUnsatisfiable};
use oracle::{Chances, DefaultSpread, Rules};

use crate::engine::{Engine, SWEEP_INTERVAL};
use crate::placing::{Chance, View};
use crate::queue::ParkKey;

/// What happened to the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Pod {
        before: Option<&'a ClusterPod>,
        after: Option<&'a ClusterPod>,
    },
    Node(&'a NodeName),
    /// Labels of a Namespace: other Pods may be meant by terms, wherever they are.
    Namespaces,
    /// Selectors of Services and controllers: Pods may be spread among others.
    Selectors,
}

/// Where a change can make a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Nodes(BTreeSet<NodeName>),
    Everywhere,
}

impl Engine {
    /// To be called after every change of the cluster.
    pub(crate) fn cluster_changed(&mut self, change: Change<'_>) {
        self.room_changes += 1;
        self.placing.note(change, &self.cluster);
        if self.parked.is_empty() {
            return;
        }
        let scope = self.scope_of(change);
        let kinds: Vec<ParkKey> = self.parked.keys().cloned().collect();
        for kind in kinds {
            let everywhere = Scope::Everywhere;
            let is_local = is_local(self.rules_of(&kind.profile), &kind);
            if is_local && self.is_hopeless_after(change, &kind) {
                continue;
            }
            self.judge(&kind, if is_local { &scope } else { &everywhere });
        }
    }

    /// A Pod that comes helps nobody who asks nothing of it, unless it could be sent away again.
    fn is_hopeless_after(&self, change: Change<'_>, kind: &ParkKey) -> bool {
        let Change::Pod { before: None, after: Some(pod) } = change else { return false };
        let had_none =
            self.parked.group(kind).is_some_and(|group| group.chances == Chances::default());
        had_none && pod.priority >= kind.shape.priority && !keeps_others_away(pod)
    }

    /// An object that Pods refer to can be used at other Nodes than before.
    pub(super) fn judge_users_of(&mut self, object: &ObjectRef) {
        let kinds = self.parked.keys().filter(|kind| kind.objects.contains(object));
        let kinds: Vec<ParkKey> = kinds.cloned().collect();
        for kind in kinds {
            self.judge(&kind, &Scope::Everywhere);
        }
    }

    /// Were an event lost, this finds it out: all chances are judged anew. It never does in a test.
    pub(crate) fn sweep(&mut self) {
        if self.now < self.sweep_at {
            return;
        }
        self.sweep_at = self.now + SWEEP_INTERVAL;
        let kinds: Vec<ParkKey> = self.parked.keys().cloned().collect();
        for kind in kinds {
            if self.judge(&kind, &Scope::Everywhere) {
                self.stats.woken_by_sweep += 1;
            }
        }
    }

    /// One of its kind has been tried, or will not be: what it left over may be for the next.
    pub(crate) fn turn_ended(&mut self, kind: &ParkKey, pod: &PodUid) {
        let Some(group) = self.parked.group_mut(kind) else { return };
        if group.awake.as_ref() != Some(pod) {
            return;
        }
        group.awake = None;
        let hopeless = group.chances == Chances::default();
        let is_alone = group.pods.values().all(|other| other == pod);
        if !hopeless && !is_alone {
            self.wake_one(kind);
        }
    }

    /// Wakes one Pod of the kind if there is a chance that there was not. Whether there is.
    fn judge(&mut self, kind: &ParkKey, scope: &Scope) -> bool {
        let Some(group) = self.parked.group(kind) else { return false };
        let known = group.chances.clone();
        let now = match scope {
            Scope::Everywhere => self.chances_of(kind),
            Scope::Nodes(nodes) => self.chances_after(kind, known, nodes),
        };
        let Some(group) = self.parked.group_mut(kind) else { return false };
        let before = std::mem::replace(&mut group.chances, now);
        let is_new = group.chances.exceed(&before);
        if is_new {
            self.wake_one(kind);
        }
        is_new
    }

    /// Where a Pod of this kind could go now.
    pub(crate) fn chances_of(&mut self, kind: &ParkKey) -> Chances {
        let key = self.placed_as(kind);
        let rules = &self.config.profiles.of(&kind.profile).rules;
        let view = View { rules, cluster: &self.cluster };
        let found = kind.nominated.is_none().then(|| self.placing.chances(view, &key)).flatten();
        let Some(found) = found else {
            return Chances::of(self.rules_of(&kind.profile), &self.cluster, &self.asking(kind));
        };
        let mut chances = Chances::default();
        for (node, chance) in found {
            chances.set(&node, chance == Chance::Feasible, chance == Chance::Preemptible);
        }
        chances
    }

    /// The same, when only these Nodes may have changed.
    fn chances_after(
        &mut self,
        kind: &ParkKey,
        mut chances: Chances,
        nodes: &BTreeSet<NodeName>,
    ) -> Chances {
        let key = self.placed_as(kind);
        for node in nodes {
            let rules = &self.config.profiles.of(&kind.profile).rules;
            let view = View { rules, cluster: &self.cluster };
            let is_promised = kind.nominated.is_some();
            match (!is_promised).then(|| self.placing.chance_on(view, &key, node)).flatten() {
                Some(chance) => {
                    chances.set(node, chance == Chance::Feasible, chance == Chance::Preemptible);
                }
                None => chances.recheck(rules, &self.cluster, &self.asking(kind), node),
            }
        }
        chances
    }

    /// The one that may be tried soonest, and among those the first in order.
    fn wake_one(&mut self, kind: &ParkKey) {
        let Some(group) = self.parked.group(kind).filter(|group| group.awake.is_none()) else {
            return;
        };
        let may_be_tried = |pod: &PodUid| {
            self.pods.get(pod).map_or(self.now, |record| record.not_before.max(self.now))
        };
        let first = group.pods.iter().min_by_key(|(order, pod)| (may_be_tried(pod), **order));
        let Some(pod) = first.map(|(_, pod)| pod.clone()) else { return };
        if let Some(group) = self.parked.group_mut(kind) {
            group.awake = Some(pod.clone());
        }
        if let Some(record) = self.pods.get_mut(&pod) {
            record.woken_as = Some(Box::new(kind.clone()));
        }
        self.wake(&pod);
    }

    /// Where a change can matter to a Pod that asks nothing of other Pods. What others want to be
    /// away from reaches as far as their terms.
    fn scope_of(&self, change: Change<'_>) -> Scope {
        match change {
            Change::Namespaces | Change::Selectors => Scope::Everywhere,
            Change::Node(name) => {
                let keeps_away = self.cluster.pods_on(name).any(keeps_others_away);
                if keeps_away { Scope::Everywhere } else { Scope::Nodes([name.clone()].into()) }
            }
            Change::Pod { before, after } => {
                let pods = [before, after].into_iter().flatten();
                if pods.clone().any(keeps_others_away) {
                    return Scope::Everywhere;
                }
                let nodes = pods.flat_map(|pod| [&pod.node, &pod.nominated_node]).flatten();
                Scope::Nodes(nodes.cloned().collect())
            }
        }
    }
}

fn keeps_others_away(pod: &ClusterPod) -> bool {
    !pod.pod_affinity.anti_required.is_empty()
}

/// Whether a Pod of this kind asks nothing of the Pods on other Nodes.
fn is_local(rules: &Rules, kind: &ParkKey) -> bool {
    let shape = &kind.shape;
    let is_hard = |it: &model::TopologySpreadConstraint| {
        it.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
    };
    let spreads = match &rules.default_spread {
        DefaultSpread::List(defaults) if shape.topology_spread.is_empty() => {
            defaults.iter().any(is_hard)
        }
        _ => shape.topology_spread.iter().any(is_hard),
    };
    let affinity = &shape.pod_affinity;
    let stays_alone = affinity.required.is_empty() && affinity.anti_required.is_empty();
    stays_alone && !spreads && kind.nominated.is_none()
}
