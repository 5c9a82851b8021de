//! Pods that fit on no Node return when a Node takes them that did not, or when preemption can make
//! room where it could not. Every change of the cluster is judged for every class of Pod that waits,
//! as narrowly as the rules allow: most changes concern one Node.

use std::collections::BTreeSet;

use model::{
    ClusterPod, LabelSelector, Labels, NodeName, ObjectKey, ObjectRef, PodAffinityTerm, PodUid,
};
use rules::{Chances, ClaimInterest, DeviceChange, Prospect, VolumeChange};

use super::index::level;
use crate::engine::Engine;
use crate::placing::{Chance, Shortage, View};
use crate::queue::{Order, ParkKey};

/// A change of the cluster view.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClusterChange<'a> {
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
    /// An object behind volumes: a Node may take a Pod with volumes now that it rejected.
    Volumes(VolumeChange<'a>),
    /// An object behind devices: a Node may take a Pod with ResourceClaims now that it rejected.
    Devices(DeviceChange<'a>),
    /// An object that a filter reads: any Node may take a Pod now that it rejected.
    Feasibility,
}

/// Where a change can make a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Nodes(BTreeSet<NodeName>),
    Everywhere,
}

impl Engine {
    /// To be called after every change of the cluster.
    pub(crate) fn cluster_changed(&mut self, change: ClusterChange<'_>) {
        self.placing.note(change, &self.observed.cluster);
        self.wake_after(change);
    }

    /// Wakes the Pods that the change may help. The index has taken note of it.
    pub(crate) fn wake_after(&mut self, change: ClusterChange<'_>) {
        self.queues.room_changes += 1;
        self.recheck_nominations_on(change);
        if self.queues.parked.is_empty() {
            // Pods that wait later are classified by it from the start.
            self.placing.take_newly_read();
            return;
        }
        self.split_classes();
        match change {
            ClusterChange::Volumes(change) => return self.wake_after_volume_change(change),
            ClusterChange::Devices(change) => return self.wake_after_device_change(change),
            _ => {}
        }
        let nodes = nodes_of(change);
        let far = self.concerned_anywhere(change);
        let mut near = self.concerned_on(change, &nodes);
        near.retain(|class| !far.contains(class));
        for class in &far {
            self.judge(class, &Scope::Everywhere);
            self.file(class);
        }
        let scope = Scope::Nodes(nodes);
        for class in &near {
            self.judge(class, &scope);
        }
    }

    /// The classes to which other Nodes than those that have changed may be something else now.
    fn concerned_anywhere(&self, change: ClusterChange<'_>) -> BTreeSet<ParkKey> {
        let index = &self.queues.wake_index;
        let mut terms: Vec<&PodAffinityTerm> = Vec::new();
        match change {
            ClusterChange::Namespaces | ClusterChange::Feasibility => {
                return index.with_room().cloned().collect();
            }
            ClusterChange::Volumes(_)
            | ClusterChange::Devices(_)
            | ClusterChange::Selectors { .. } => {}
            ClusterChange::Node(name) => {
                let on_node = self.observed.cluster.pods_on(name);
                terms.extend(on_node.flat_map(|pod| &pod.pod_affinity.anti_required));
            }
            ClusterChange::Pod { before, after } => {
                let pods = [before, after].into_iter().flatten();
                terms.extend(pods.flat_map(|pod| &pod.pod_affinity.anti_required));
            }
        }
        let meant = (!terms.is_empty()).then(|| index.meant_by(&self.observed.cluster, &terms));
        let sharing = self.sharing_claims(change);
        index.pod_dependent().chain(meant.into_iter().flatten()).chain(sharing).cloned().collect()
    }

    /// The classes that use a claim of a Pod that has come or gone: only one Pod may use some claims, wherever it is.
    fn sharing_claims(&self, change: ClusterChange<'_>) -> Vec<&ParkKey> {
        let ClusterChange::Pod { before, after } = change else { return Vec::new() };
        let pods = [before, after].into_iter().flatten();
        let mut claims = pods.flat_map(|pod| pod.volumes.iter().map(move |it| (pod, it)));
        let claims = claims.by_ref().filter_map(|(pod, volume)| {
            let (namespace, name) = (pod.namespace().clone(), volume.claim()?.clone());
            Some(ObjectKey { namespace, name })
        });
        let interests: BTreeSet<_> = claims.map(ClaimInterest::Claim).collect();
        let index = &self.queues.wake_index;
        interests.iter().flat_map(|interest| index.interested_in(interest)).collect()
    }

    /// The classes to which one of these Nodes, which have changed, may be something else now.
    fn concerned_on(
        &mut self,
        change: ClusterChange<'_>,
        nodes: &BTreeSet<NodeName>,
    ) -> BTreeSet<ParkKey> {
        // A Pod that comes helps no other, unless it could be preempted.
        let above = match change {
            ClusterChange::Pod { before: None, after: Some(pod) } => Some(pod.priority),
            _ => None,
        };
        let mut concerned = BTreeSet::new();
        for name in nodes {
            if let Some(node) = self.observed.cluster.nodes.get(name) {
                let profiles = &self.config.profiles;
                let rules_of = |profile: &str| &profiles.of(profile).rules;
                concerned.extend(self.queues.wake_index.with_room_on(
                    &self.observed.cluster,
                    node,
                    above,
                    rules_of,
                ));
            }
            concerned.extend(self.queues.parked.nominated_on(name));
        }
        let had_one = |class: &&ParkKey| {
            let chances = self.queues.parked.chances(class);
            chances.is_some_and(|it| nodes.iter().any(|node| it.are_on(node)))
        };
        concerned.extend(self.queues.wake_index.placeable().filter(had_one).cloned());
        concerned
    }

    /// Notes what the class lacks, for the changes to come.
    pub(crate) fn file(&mut self, class: &ParkKey) {
        if self.queues.parked.chances(class).is_none() {
            return;
        }
        let key = self.class_key_without_claims(class);
        let with_claims = class.has_claims().then(|| self.pod_to_place(class));
        let rules = &self.config.profiles.of(&class.profile).rules;
        let cluster = &self.observed.cluster;
        let is_local = !rules.look_beyond_nodes(&class.scheduling);
        let level = level(rules, class);
        let shortage = match &with_claims {
            Some(pod) if rules::claims_reject(rules, cluster, pod) => Shortage::CLAIMS,
            _ => self.placing.shortage(View { rules, cluster }, &key, level),
        };
        let interests = with_claims.map(|pod| ClaimInterest::of(cluster, &pod));
        let interests = interests.unwrap_or_default();
        self.queues.wake_index.file(class, level, is_local, shortage, interests);
        self.note_chances(class);
    }

    fn note_chances(&mut self, class: &ParkKey) {
        let has_any = self.queues.parked.chances(class).is_some_and(|it| *it != Chances::default());
        self.queues.wake_index.set_placeable(class, has_any);
    }

    /// Selectors may tell Pods apart now that were of one class: those become classes of their own, which know what they knew.
    fn split_classes(&mut self) {
        let newly_read = self.placing.take_newly_read();
        if newly_read.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        let concerns = |labels: &Labels| {
            newly_read.as_ref().is_none_or(|all| all.iter().any(|it| it.concerns(labels)))
        };
        let mut moved = Vec::new();
        for (key, group) in self.queues.parked.groups() {
            for (order, pod) in &group.pods {
                let scheduling =
                    self.observed.pods.get(pod).map(|record| &record.pod.spec.scheduling);
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

    /// The Pod is of another class than it was, to which Nodes are what they were to the other.
    pub(super) fn park_as(&mut self, from: &ParkKey, to: ParkKey, order: Order, pod: &PodUid) {
        let known = self.queues.parked.known_of(from);
        let is_one_awake =
            self.queues.parked.group(from).is_some_and(|group| group.awake.is_some());
        if self.queues.parked.remove(from, order) {
            self.queues.wake_index.remove(&from.plain());
        }
        let to = self.queues.parked.shared(to);
        if let Some(record) = self.observed.pods.get_mut(pod) {
            record.parked_as = Some(Box::new(to.clone()));
        }
        if self.queues.parked.insert(to.clone(), order, pod.clone(), known) {
            self.file(&to.plain());
        }
        // The Pod that is tried first may be of the other class, and then its result does not apply to this one.
        if is_one_awake {
            self.wake_one(&to);
        }
    }

    /// An object that Pods refer to can be used at other Nodes than before.
    pub(super) fn judge_users_of(&mut self, object: &ObjectRef) {
        let classes = self.queues.parked.classes().filter(|class| class.objects.contains(object));
        let classes: Vec<ParkKey> = classes.cloned().collect();
        for class in classes {
            self.judge(&class, &Scope::Everywhere);
            self.file(&class);
        }
    }

    /// One of its class has been tried, or will not be: what it left over may be for the next.
    pub(crate) fn turn_ended(&mut self, key: &ParkKey, pod: &PodUid) {
        let Some(group) = self.queues.parked.group_mut(key) else { return };
        if group.awake.as_ref() != Some(pod) {
            return;
        }
        group.awake = None;
        let is_alone = group.pods.values().all(|other| other == pod);
        let hopeless =
            self.queues.parked.chances(&key.plain()).is_none_or(|it| *it == Chances::default());
        if !hopeless && !is_alone {
            self.wake_one(key);
        }
    }

    /// Wakes one Pod of each class for which there is a chance that there was not. Returns of how many classes.
    pub(super) fn judge(&mut self, class: &ParkKey, scope: &Scope) -> u64 {
        let gained = match scope {
            Scope::Everywhere => {
                let now = self.chances_of(class);
                let Some(known) = self.queues.parked.chances_mut(class) else { return 0 };
                let before = std::mem::replace(known, now);
                known.without(&before)
            }
            Scope::Nodes(nodes) => self.gained_on(class, nodes),
        };
        self.note_chances(class);
        let mut woken = self.judge_nominated(class, scope, &gained);
        if gained != Chances::default() && self.queues.parked.has(class) {
            self.wake_one(class);
            woken += 1;
        }
        woken
    }

    /// The same for those that are nominated for a Node, after their class has gained these chances. Where all have
    /// none, only those are checked that are nominated for a Node that has changed.
    fn judge_nominated(&mut self, class: &ParkKey, scope: &Scope, gained: &Chances) -> u64 {
        let nodes = match scope {
            Scope::Nodes(nodes) if *gained == Chances::default() => Some(nodes),
            _ => None,
        };
        let mut woken = 0;
        for key in self.queues.parked.nominated(class, nodes) {
            let now = self.prospect_of(&key);
            let Some(group) = self.queues.parked.group_mut(&key) else { continue };
            let before = std::mem::replace(&mut group.prospect, now);
            let elsewhere = |nodes: &BTreeSet<NodeName>| {
                let nominated = key.nominated.as_ref().map(|(node, _)| node);
                nodes.iter().any(|node| Some(node) != nominated)
            };
            let preemptible = match (before.may_preempt, now.may_preempt) {
                (true, true) => Some(&gained.preemptible),
                // While it might not, there was none for it.
                (false, true) => self.queues.parked.chances(class).map(|it| &it.preemptible),
                (_, false) => None,
            };
            let is_new = now.is_feasible && !before.is_feasible
                || now.is_preemptible && !before.is_preemptible
                || elsewhere(&gained.feasible)
                || preemptible.is_some_and(elsewhere);
            if is_new {
                self.wake_one(&key);
                woken += 1;
            }
        }
        woken
    }

    /// What the Pod has at its nominated Node.
    pub(crate) fn prospect_of(&self, key: &ParkKey) -> Prospect {
        Prospect::of(self.rules_of(&key.profile), &self.observed.cluster, &self.pod_to_place(key))
    }

    /// Where a Pod of this class could go now.
    pub(crate) fn chances_of(&mut self, class: &ParkKey) -> Chances {
        let key = self.class_key(class);
        let rules = &self.config.profiles.of(&class.profile).rules;
        let view = View { rules, cluster: &self.observed.cluster };
        let found = key.and_then(|key| self.placing.chances(view, &key));
        let Some(found) = found else {
            return Chances::of(rules, &self.observed.cluster, &self.pod_to_place(class));
        };
        let (feasible, preemptible): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, chance)| *chance == Chance::Feasible);
        let names = |found: Vec<(NodeName, Chance)>| found.into_iter().map(|(node, _)| node);
        Chances { feasible: names(feasible).collect(), preemptible: names(preemptible).collect() }
    }

    /// Looks at these Nodes again: only they may have changed. Returns what the class has there that it had not.
    fn gained_on(&mut self, class: &ParkKey, nodes: &BTreeSet<NodeName>) -> Chances {
        let key = self.class_key(class);
        let rules = &self.config.profiles.of(&class.profile).rules;
        let view = View { rules, cluster: &self.observed.cluster };
        let (mut now, mut left) = (Chances::default(), Vec::new());
        for node in nodes {
            match key.as_ref().and_then(|key| self.placing.chance_on(view, key, node)) {
                Some(chance) => {
                    now.set(node, chance == Chance::Feasible, chance == Chance::Preemptible);
                }
                None => left.push(node),
            }
        }
        if !left.is_empty() {
            let plain = Chances::on(rules, view.cluster, &self.pod_to_place(class), left);
            now.feasible.extend(plain.feasible);
            now.preemptible.extend(plain.preemptible);
        }
        let Some(known) = self.queues.parked.chances_mut(class) else { return Chances::default() };
        let gained = now.without(known);
        for node in nodes {
            known.set(node, now.feasible.contains(node), now.preemptible.contains(node));
        }
        gained
    }

    /// The one that may be tried soonest, and among those the first in order.
    fn wake_one(&mut self, key: &ParkKey) {
        let Some(group) = self.queues.parked.group(key).filter(|group| group.awake.is_none())
        else {
            return;
        };
        let may_be_tried = |pod: &PodUid| {
            self.observed.pods.get(pod).map_or(self.now, |record| record.not_before.max(self.now))
        };
        let first = group.pods.iter().min_by_key(|(order, pod)| (may_be_tried(pod), **order));
        let Some(pod) = first.map(|(_, pod)| pod.clone()) else { return };
        if let Some(group) = self.queues.parked.group_mut(key) {
            group.awake = Some(pod.clone());
        }
        if let Some(record) = self.observed.pods.get_mut(&pod) {
            record.woken_as = Some(Box::new(key.clone()));
        }
        self.wake(&pod);
    }
}

/// The Nodes that are something else than before.
fn nodes_of(change: ClusterChange<'_>) -> BTreeSet<NodeName> {
    match change {
        ClusterChange::Namespaces
        | ClusterChange::Selectors { .. }
        | ClusterChange::Volumes(_)
        | ClusterChange::Devices(_)
        | ClusterChange::Feasibility => BTreeSet::new(),
        ClusterChange::Node(name) => [name.clone()].into(),
        ClusterChange::Pod { before, after } => {
            let pods = [before, after].into_iter().flatten();
            pods.flat_map(|pod| [&pod.node, &pod.nominated_node]).flatten().cloned().collect()
        }
    }
}
