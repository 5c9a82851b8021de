//! Pods that fit on no Node return when a Node takes them that did not, or when preemption can make
//! room where it could not. Every change of the cluster is judged for every kind of Pod that waits,
//! as narrowly as the rules allow: most changes concern one Node.

use std::collections::BTreeSet;

use model::{
    ClusterPod, LabelSelector, Labels, NodeName, NodeSelector, ObjectRef, PodAffinityTerm, PodUid,
    WhenUnsatisfiable,
};
use rules::{Chances, DefaultSpread, Plugin, Prospect, Rules};

use super::index::level;
use crate::engine::{Engine, SWEEP_INTERVAL, SWEEP_PAUSE, SWEEP_SORTS_MAX};
use crate::placing::{Chance, View};
use crate::queue::{Order, ParkKey};

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
    /// The selector of a Service or controller: Pods may be spread among others.
    Selectors {
        before: Option<&'a LabelSelector>,
        after: Option<&'a LabelSelector>,
    },
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
            // Whoever waits later is told apart by it from the start.
            self.placing.take_newly_read();
            return;
        }
        self.split_kinds();
        let nodes = nodes_of(change);
        let far = self.concerned_anywhere(change);
        let mut near = self.concerned_on(change, &nodes);
        near.retain(|sort| !far.contains(sort));
        for sort in &far {
            self.judge(sort, &Scope::Everywhere);
            self.file(sort);
        }
        let scope = Scope::Nodes(nodes);
        for sort in &near {
            self.judge(sort, &scope);
        }
    }

    /// The sorts to which other Nodes than those that have changed may be something else now.
    fn concerned_anywhere(&self, change: Change<'_>) -> BTreeSet<ParkKey> {
        let index = &self.wake_index;
        let mut terms: Vec<&PodAffinityTerm> = Vec::new();
        match change {
            Change::Namespaces => return index.with_room().cloned().collect(),
            Change::Selectors { .. } => {}
            Change::Node(name) => {
                let on_node = self.cluster.pods_on(name);
                terms.extend(on_node.flat_map(|pod| &pod.pod_affinity.anti_required));
            }
            Change::Pod { before, after } => {
                let pods = [before, after].into_iter().flatten();
                terms.extend(pods.flat_map(|pod| &pod.pod_affinity.anti_required));
            }
        }
        let meant = (!terms.is_empty()).then(|| index.meant_by(&self.cluster, &terms));
        index.watchful().chain(meant.into_iter().flatten()).cloned().collect()
    }

    /// The sorts to which one of these Nodes, which have changed, may be something else now.
    fn concerned_on(
        &mut self,
        change: Change<'_>,
        nodes: &BTreeSet<NodeName>,
    ) -> BTreeSet<ParkKey> {
        // A Pod that comes helps nobody, unless it could be sent away again.
        let above = match change {
            Change::Pod { before: None, after: Some(pod) } => Some(pod.priority),
            _ => None,
        };
        let mut concerned = BTreeSet::new();
        for name in nodes {
            if let Some(node) = self.cluster.nodes.get(name) {
                let profiles = &self.config.profiles;
                let rules_of = |profile: &str| &profiles.of(profile).rules;
                concerned.extend(self.wake_index.with_room_on(
                    &self.cluster,
                    node,
                    above,
                    rules_of,
                ));
            }
            concerned.extend(self.parked.promised_on(name));
        }
        let had_one = |sort: &&ParkKey| {
            let chances = self.parked.chances(sort);
            chances.is_some_and(|it| nodes.iter().any(|node| it.are_on(node)))
        };
        concerned.extend(self.wake_index.hopeful().filter(had_one).cloned());
        concerned
    }

    /// Notes what the sort lacks, for the changes to come.
    pub(crate) fn file(&mut self, sort: &ParkKey) {
        if self.parked.chances(sort).is_none() {
            return;
        }
        let key = self.placed_as(sort);
        let rules = &self.config.profiles.of(&sort.profile).rules;
        let (level, is_local) = (level(rules, sort), is_local(rules, sort));
        let view = View { rules, cluster: &self.cluster };
        let shortage = self.placing.shortage(view, &key, level);
        self.wake_index.file(sort, level, is_local, shortage);
        self.note_chances(sort);
    }

    fn note_chances(&mut self, sort: &ParkKey) {
        let has_any = self.parked.chances(sort).is_some_and(|it| *it != Chances::default());
        self.wake_index.set_hopeful(sort, has_any);
    }

    /// Selectors may tell Pods apart now that were of one kind: those become kinds of their own, which know what they knew.
    fn split_kinds(&mut self) {
        let newly_read = self.placing.take_newly_read();
        if newly_read.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        let concerns = |labels: &Labels| {
            newly_read.as_ref().is_none_or(|all| all.iter().any(|it| it.concerns(labels)))
        };
        let mut moved = Vec::new();
        for (key, group) in self.parked.groups() {
            for (order, pod) in &group.pods {
                let scheduling = self.pods.get(pod).map(|record| &record.pod.spec.scheduling);
                if let Some(scheduling) =
                    scheduling.filter(|scheduling| concerns(&scheduling.labels))
                {
                    moved.push((key.clone(), *order, pod.clone(), scheduling.clone()));
                }
            }
        }
        for (key, order, pod, scheduling) in moved {
            let to = ParkKey { scheduling: self.placing.project(&scheduling), ..key.clone() };
            if to.scheduling != key.scheduling {
                self.park_as(&key, to, order, &pod);
            }
        }
    }

    /// The Pod is of another kind than it was, to which Nodes are what they were to the other.
    fn park_as(&mut self, from: &ParkKey, to: ParkKey, order: Order, pod: &PodUid) {
        let known = self.parked.known_of(from);
        let is_one_awake = self.parked.group(from).is_some_and(|group| group.awake.is_some());
        if self.parked.remove(from, order) {
            self.wake_index.remove(&from.plain());
        }
        let to = self.parked.shared(to);
        if let Some(record) = self.pods.get_mut(pod) {
            record.parked_as = Some(Box::new(to.clone()));
        }
        if self.parked.insert(to.clone(), order, pod.clone(), known) {
            self.file(&to.plain());
        }
        // Whoever is tried first may be of the other kind, and then says nothing of this one.
        if is_one_awake {
            self.wake_one(&to);
        }
    }

    /// An object that Pods refer to can be used at other Nodes than before.
    pub(super) fn judge_users_of(&mut self, object: &ObjectRef) {
        let sorts = self.parked.sorts().filter(|sort| sort.objects.contains(object));
        let sorts: Vec<ParkKey> = sorts.cloned().collect();
        for sort in sorts {
            self.judge(&sort, &Scope::Everywhere);
            self.file(&sort);
        }
    }

    /// Were an event lost, this finds it out: all chances are judged anew, a few kinds at a time. It never does in a test.
    pub(crate) fn sweep(&mut self) {
        if self.now < self.sweep_at {
            return;
        }
        let sorts = self.parked.sorts_after(self.sweep_after.as_ref(), SWEEP_SORTS_MAX);
        for sort in &sorts {
            self.sweep_sort(sort);
        }
        if sorts.len() == SWEEP_SORTS_MAX {
            self.sweep_after = sorts.into_iter().next_back();
            self.sweep_at = self.now + SWEEP_PAUSE;
        } else {
            self.sweep_after = None;
            self.sweep_at = self.now + SWEEP_INTERVAL;
            self.placing.forget_unused();
        }
    }

    fn sweep_sort(&mut self, sort: &ParkKey) {
        // Selectors that told it from others may be gone.
        let scheduling = self.placing.project(&sort.scheduling);
        if scheduling != sort.scheduling {
            for (key, order, pod) in self.parked.of_sort(sort) {
                let to = ParkKey { scheduling: scheduling.clone(), ..key.clone() };
                self.park_as(&key, to, order, &pod);
            }
            return;
        }
        self.file(sort);
        if self.wake_index.has_room(sort) {
            let scope = scope_of(self.rules_of(&sort.profile), sort);
            self.stats.woken_by_sweep += self.judge(sort, &scope);
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
        self.note_chances(sort);
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
        Prospect::of(self.rules_of(&kind.profile), &self.cluster, &self.pod_to_place(kind))
    }

    /// Where a Pod of this sort could go now.
    pub(crate) fn chances_of(&mut self, sort: &ParkKey) -> Chances {
        let key = self.placed_as(sort);
        let rules = &self.config.profiles.of(&sort.profile).rules;
        let view = View { rules, cluster: &self.cluster };
        let Some(found) = self.placing.chances(view, &key) else {
            return Chances::of(rules, &self.cluster, &self.pod_to_place(sort));
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
                None => now.recheck(rules, &self.cluster, &self.pod_to_place(sort), node),
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
}

/// Where a Pod of this sort can have a chance at all: a DaemonSet's Pod names its Node.
fn scope_of(rules: &Rules, sort: &ParkKey) -> Scope {
    let required = sort.scheduling.node_affinity.required.as_ref();
    let named = required.filter(|_| rules.filters_by(Plugin::NodeAffinity));
    named.and_then(NodeSelector::named_nodes).map_or(Scope::Everywhere, Scope::Nodes)
}

/// The Nodes that are something else than before.
fn nodes_of(change: Change<'_>) -> BTreeSet<NodeName> {
    match change {
        Change::Namespaces | Change::Selectors { .. } => BTreeSet::new(),
        Change::Node(name) => [name.clone()].into(),
        Change::Pod { before, after } => {
            let pods = [before, after].into_iter().flatten();
            pods.flat_map(|pod| [&pod.node, &pod.nominated_node]).flatten().cloned().collect()
        }
    }
}

/// Whether a Pod of this sort asks nothing of the Pods on other Nodes.
fn is_local(rules: &Rules, kind: &ParkKey) -> bool {
    let scheduling = &kind.scheduling;
    let is_hard = |it: &model::TopologySpreadConstraint| {
        it.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
    };
    let spreads = match &rules.default_spread {
        DefaultSpread::List(defaults) if scheduling.topology_spread.is_empty() => {
            defaults.iter().any(is_hard)
        }
        _ => scheduling.topology_spread.iter().any(is_hard),
    };
    let affinity = &scheduling.pod_affinity;
    let stays_alone = affinity.required.is_empty() && affinity.anti_required.is_empty();
    stays_alone && !spreads
}
