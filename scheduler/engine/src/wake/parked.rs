//! Pods that fit on no Node return when a Node takes them that did not, or when preemption can make
//! room where it could not. Every change of the cluster is judged for every kind of Pod that waits,
//! as narrowly as the rules allow: most changes concern one Node.

use std::collections::BTreeSet;

use model::{ClusterPod, NodeName, ObjectRef, PodUid, WhenUnsatisfiable};
use oracle::{Chances, DefaultSpread, Prospect, Rules};

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
        self.question_nominees_on(change);
        if self.parked.is_empty() {
            return;
        }
        let scope = self.scope_of(change);
        let sorts: Vec<ParkKey> = self.parked.sorts().cloned().collect();
        for sort in sorts {
            let is_local = is_local(self.rules_of(&sort.profile), &sort);
            if !is_local {
                self.judge(&sort, &Scope::Everywhere);
            } else if self.is_hopeless_after(change, &sort) {
                self.judge_promised(&sort, &scope, &Chances::default());
            } else {
                self.judge(&sort, &scope);
            }
        }
    }

    /// A Pod that comes helps nobody who asks nothing of it, unless it could be sent away again.
    fn is_hopeless_after(&self, change: Change<'_>, sort: &ParkKey) -> bool {
        let Change::Pod { before: None, after: Some(pod) } = change else { return false };
        let had_none = self.parked.chances(sort).is_some_and(|it| *it == Chances::default());
        had_none && pod.priority >= sort.shape.priority && !keeps_others_away(pod)
    }

    /// An object that Pods refer to can be used at other Nodes than before.
    pub(super) fn judge_users_of(&mut self, object: &ObjectRef) {
        let sorts = self.parked.sorts().filter(|sort| sort.objects.contains(object));
        let sorts: Vec<ParkKey> = sorts.cloned().collect();
        for sort in sorts {
            self.judge(&sort, &Scope::Everywhere);
        }
    }

    /// Were an event lost, this finds it out: all chances are judged anew. It never does in a test.
    pub(crate) fn sweep(&mut self) {
        if self.now < self.sweep_at {
            return;
        }
        self.sweep_at = self.now + SWEEP_INTERVAL;
        let sorts: Vec<ParkKey> = self.parked.sorts().cloned().collect();
        for sort in sorts {
            self.stats.woken_by_sweep += self.judge(&sort, &Scope::Everywhere);
        }
    }

    /// One of its kind has been tried, or will not be: what it left over may be for the next.
    pub(crate) fn turn_ended(&mut self, kind: &ParkKey, pod: &PodUid) {
        let Some(group) = self.parked.group_mut(kind) else { return };
        if group.awake.as_ref() != Some(pod) {
            return;
        }
        group.awake = None;
        let is_alone = group.pods.values().all(|other| other == pod);
        let hopeless =
            self.parked.chances(&kind.plain()).is_none_or(|it| *it == Chances::default());
        if !hopeless && !is_alone {
            self.wake_one(kind);
        }
    }

    /// Wakes one Pod of each kind for which there is a chance that there was not. Returns of how many kinds.
    fn judge(&mut self, sort: &ParkKey, scope: &Scope) -> u64 {
        let gained = match scope {
            Scope::Everywhere => {
                let now = self.chances_of(sort);
                let Some(known) = self.parked.chances_mut(sort) else { return 0 };
                let before = std::mem::replace(known, now);
                known.without(&before)
            }
            Scope::Nodes(nodes) => self.gained_on(sort, nodes),
        };
        let mut kinds = self.judge_promised(sort, scope, &gained);
        if gained != Chances::default() && self.parked.has(sort) {
            self.wake_one(sort);
            kinds += 1;
        }
        kinds
    }

    /// The same for those that were promised a Node, after their sort has gained these chances. Where all have
    /// none, only those have to be looked at who were promised a Node that has changed.
    fn judge_promised(&mut self, sort: &ParkKey, scope: &Scope, gained: &Chances) -> u64 {
        let nodes = match scope {
            Scope::Nodes(nodes) if *gained == Chances::default() => Some(nodes),
            _ => None,
        };
        let mut kinds = 0;
        for kind in self.parked.promised(sort, nodes) {
            let now = self.prospect_of(&kind);
            let Some(group) = self.parked.group_mut(&kind) else { continue };
            let before = std::mem::replace(&mut group.prospect, now);
            let elsewhere = |nodes: &BTreeSet<NodeName>| {
                let promised = kind.nominated.as_ref().map(|(node, _)| node);
                nodes.iter().any(|node| Some(node) != promised)
            };
            let preemptible = match (before.may_preempt, now.may_preempt) {
                (true, true) => Some(&gained.preemptible),
                // While it might not, there was none for it.
                (false, true) => self.parked.chances(sort).map(|it| &it.preemptible),
                (_, false) => None,
            };
            let is_new = now.is_feasible && !before.is_feasible
                || now.is_preemptible && !before.is_preemptible
                || elsewhere(&gained.feasible)
                || preemptible.is_some_and(elsewhere);
            if is_new {
                self.wake_one(&kind);
                kinds += 1;
            }
        }
        kinds
    }

    /// What the Pod has at the Node that it was promised.
    pub(crate) fn prospect_of(&self, kind: &ParkKey) -> Prospect {
        Prospect::of(self.rules_of(&kind.profile), &self.cluster, &self.asking(kind))
    }

    /// Where a Pod of this sort could go now.
    pub(crate) fn chances_of(&mut self, sort: &ParkKey) -> Chances {
        let key = self.placed_as(sort);
        let rules = &self.config.profiles.of(&sort.profile).rules;
        let view = View { rules, cluster: &self.cluster };
        let Some(found) = self.placing.chances(view, &key) else {
            return Chances::of(rules, &self.cluster, &self.asking(sort));
        };
        let (feasible, preemptible): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, chance)| *chance == Chance::Feasible);
        let names = |found: Vec<(NodeName, Chance)>| found.into_iter().map(|(node, _)| node);
        Chances { feasible: names(feasible).collect(), preemptible: names(preemptible).collect() }
    }

    /// Looks at these Nodes again: only they may have changed. Returns what the sort has there that it had not.
    fn gained_on(&mut self, sort: &ParkKey, nodes: &BTreeSet<NodeName>) -> Chances {
        let (key, mut gained) = (self.placed_as(sort), Chances::default());
        for node in nodes {
            let rules = &self.config.profiles.of(&sort.profile).rules;
            let view = View { rules, cluster: &self.cluster };
            let mut now = Chances::default();
            match self.placing.chance_on(view, &key, node) {
                Some(chance) => {
                    now.set(node, chance == Chance::Feasible, chance == Chance::Preemptible);
                }
                None => now.recheck(rules, &self.cluster, &self.asking(sort), node),
            }
            let Some(known) = self.parked.chances_mut(sort) else { continue };
            let (feasible, preemptible) = (!now.feasible.is_empty(), !now.preemptible.is_empty());
            let new = now.without(known);
            gained.set(node, !new.feasible.is_empty(), !new.preemptible.is_empty());
            known.set(node, feasible, preemptible);
        }
        gained
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

/// Whether a Pod of this sort asks nothing of the Pods on other Nodes.
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
    stays_alone && !spreads
}
