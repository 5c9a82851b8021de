//! The classes of parked Pods that a change can help, found without a look at the others.
//!
//! A Node can only become feasible for a class if it has room for it, at least without the Pods that could be preempted.
//! So classes are ordered by how much they request of the resource that they lack, and a Node that has changed is
//! compared with that. A class for which no Node has room is not affected by changes elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ClusterNode, ClusterPod, Labels, NodeName, PodAffinityTerm, PreemptionPolicy};
use rules::{ClaimInterest, Cluster, Rules, existing_term_matches};

use super::free_capacity::FreeCapacities;
use crate::placing::{FixedMap, Lacking, NodeFilter, Shortage};
use crate::queue::ParkKey;

type ClassId = usize;
type FilterId = usize;

#[derive(Debug, Default)]
pub(crate) struct WakeIndex {
    ids: BTreeMap<ParkKey, ClassId>,
    classes: Vec<Option<IndexedClass>>,
    free: Vec<ClassId>,
    filter_ids: FixedMap<NodeFilter, FilterId>,
    filters: Vec<FilterBucket>,
    free_filters: Vec<FilterId>,
    /// Those that name no Nodes, and the others by the Nodes that they name.
    anywhere: BTreeSet<FilterId>,
    named: BTreeMap<NodeName, BTreeSet<FilterId>>,
    /// Those that some Node fits, or would after a preemption: that can be lost.
    placeable: BTreeSet<ClassId>,
    /// Those with room on some Node whose constraints depend on Pods on other Nodes.
    pod_dependent: BTreeSet<ClassId>,
    /// Those of Pods with claims, by the changes that may concern them.
    interested: BTreeMap<ClaimInterest, BTreeSet<ClassId>>,
    /// Those with room on some Node, by what terms of other Pods can match.
    with_room: BTreeMap<(Arc<str>, Labels), BTreeSet<ClassId>>,
}

/// Classes with the same node filter.
#[derive(Debug)]
struct FilterBucket {
    filter: Option<NodeFilter>,
    /// By priority and resource: the amounts that are asked for.
    by_amount: BTreeMap<(i32, Lacking), BTreeSet<(i64, ClassId)>>,
}

#[derive(Debug)]
struct IndexedClass {
    key: ParkKey,
    filter: FilterId,
    level: i32,
    shortage: Shortage,
    is_local: bool,
    interests: BTreeSet<ClaimInterest>,
}

/// Pods of a lower priority than this can be preempted by a Pod of the class.
pub(crate) fn level(rules: &Rules, class: &ParkKey) -> i32 {
    let never = class.scheduling.preemption_policy == PreemptionPolicy::Never;
    if never || rules.switched_off.preemption { i32::MIN } else { class.scheduling.priority }
}

impl WakeIndex {
    /// Files a class anew.
    pub fn file(
        &mut self,
        key: &ParkKey,
        level: i32,
        is_local: bool,
        shortage: Shortage,
        interests: BTreeSet<ClaimInterest>,
    ) {
        let known = self.ids.get(key).and_then(|id| self.classes[*id].as_ref());
        let is_known = |it: &IndexedClass| {
            it.level == level && it.shortage == shortage && it.interests == interests
        };
        if known.is_some_and(is_known) {
            return;
        }
        let was_placeable = self.ids.get(key).is_some_and(|id| self.placeable.contains(id));
        self.remove(key);
        let filter = self.filter_of(key);
        let id = self.free.pop().unwrap_or(self.classes.len());
        if id == self.classes.len() {
            self.classes.push(None);
        }
        let place = (level, shortage.lacking.clone());
        self.filters[filter].by_amount.entry(place).or_default().insert((shortage.amount, id));
        for interest in &interests {
            self.interested.entry(interest.clone()).or_default().insert(id);
        }
        let indexed =
            IndexedClass { key: key.clone(), filter, level, shortage, is_local, interests };
        self.ids.insert(key.clone(), id);
        if was_placeable {
            self.placeable.insert(id);
        }
        if indexed.shortage.has_room {
            self.note_room(id, &indexed);
        }
        self.classes[id] = Some(indexed);
    }

    pub fn remove(&mut self, key: &ParkKey) {
        let Some(id) = self.ids.remove(key) else { return };
        let Some(indexed) = self.classes[id].take() else { return };
        self.free.push(id);
        self.placeable.remove(&id);
        self.pod_dependent.remove(&id);
        for interest in &indexed.interests {
            if let Some(alike) = self.interested.get_mut(interest) {
                alike.remove(&id);
                if alike.is_empty() {
                    self.interested.remove(interest);
                }
            }
        }
        let labels = labels_of(&indexed.key);
        if let Some(alike) = self.with_room.get_mut(&labels) {
            alike.remove(&id);
            if alike.is_empty() {
                self.with_room.remove(&labels);
            }
        }
        let IndexedClass { filter, level, shortage, .. } = indexed;
        let place = (level, shortage.lacking);
        let bucket = &mut self.filters[filter].by_amount;
        if let Some(classes) = bucket.get_mut(&place) {
            classes.remove(&(shortage.amount, id));
            if classes.is_empty() {
                bucket.remove(&place);
            }
        }
        if bucket.is_empty() {
            self.drop_filter(filter);
        }
    }

    fn note_room(&mut self, id: ClassId, indexed: &IndexedClass) {
        self.with_room.entry(labels_of(&indexed.key)).or_default().insert(id);
        if !indexed.is_local {
            self.pod_dependent.insert(id);
        }
    }

    /// Whether some Node fits the class, or would after a preemption.
    pub fn set_placeable(&mut self, key: &ParkKey, is_placeable: bool) {
        let Some(id) = self.ids.get(key) else { return };
        if is_placeable {
            self.placeable.insert(*id);
        } else {
            self.placeable.remove(id);
        }
    }

    fn filter_of(&mut self, key: &ParkKey) -> FilterId {
        // Where the objects of a Pod can be used changes; without that, no Node is missed.
        let filter = NodeFilter::new(&key.profile, &key.scheduling, &[]);
        if let Some(id) = self.filter_ids.get(&filter) {
            return *id;
        }
        let id = self.free_filters.pop().unwrap_or(self.filters.len());
        match &filter.named {
            None => drop(self.anywhere.insert(id)),
            Some(named) => {
                for node in named {
                    self.named.entry(node.clone()).or_default().insert(id);
                }
            }
        }
        let bucket = FilterBucket { filter: Some(filter.clone()), by_amount: BTreeMap::new() };
        if id == self.filters.len() {
            self.filters.push(bucket);
        } else {
            self.filters[id] = bucket;
        }
        self.filter_ids.insert(filter, id);
        id
    }

    fn drop_filter(&mut self, id: FilterId) {
        let Some(filter) = self.filters[id].filter.take() else { return };
        for node in filter.named.iter().flatten() {
            if let Some(filters) = self.named.get_mut(node) {
                filters.remove(&id);
                if filters.is_empty() {
                    self.named.remove(node);
                }
            }
        }
        self.anywhere.remove(&id);
        self.filter_ids.remove(&filter);
        self.free_filters.push(id);
    }

    /// The classes for which the Node has room, without Pods that they could preempt. They have room from now on. With
    /// `above`, only those of a higher priority.
    pub fn with_room_on<'r>(
        &mut self,
        cluster: &Cluster,
        node: &ClusterNode,
        above: Option<i32>,
        rules_of: impl Fn(&str) -> &'r Rules,
    ) -> Vec<ParkKey> {
        let named = self.named.get(&node.node.name).into_iter().flatten();
        let (mut capacities, mut found) = (FreeCapacities::on(cluster, node), Vec::new());
        for id in self.anywhere.iter().chain(named) {
            let FilterBucket { filter: Some(filter), by_amount } = &self.filters[*id] else {
                continue;
            };
            if !filter.admits(node, rules_of(&filter.profile)) {
                continue;
            }
            for ((level, lacking), classes) in by_amount {
                if above.is_some_and(|above| *level <= above) {
                    continue;
                }
                let capacity = capacities.above(*level);
                let in_bucket = classes.range(..=(capacity.of(lacking), ClassId::MAX));
                found.extend(in_bucket.map(|(_, id)| *id).filter(|id| {
                    let indexed = self.classes[*id].as_ref();
                    indexed.is_some_and(|indexed| capacity.holds(indexed.shortage.asked))
                }));
            }
        }
        for id in &found {
            let Some(mut indexed) = self.classes[*id].take() else { continue };
            if !std::mem::replace(&mut indexed.shortage.has_room, true) {
                self.note_room(*id, &indexed);
            }
            self.classes[*id] = Some(indexed);
        }
        found.into_iter().filter_map(|id| Some(self.classes[id].as_ref()?.key.clone())).collect()
    }

    #[cfg(test)]
    pub fn classes(&self) -> impl Iterator<Item = &ParkKey> {
        self.ids.keys()
    }

    /// Whether some Node has room for the class, or would have without Pods that it could preempt.
    pub fn has_room(&self, key: &ParkKey) -> bool {
        let indexed = self.ids.get(key).and_then(|id| self.classes[*id].as_ref());
        indexed.is_some_and(|indexed| indexed.shortage.has_room)
    }

    /// Those that some Node fits, or would after a preemption.
    pub fn placeable(&self) -> impl Iterator<Item = &ParkKey> {
        self.keys(&self.placeable)
    }

    /// Those whose constraints depend on Pods on other Nodes, and that have room on some.
    pub fn pod_dependent(&self) -> impl Iterator<Item = &ParkKey> {
        self.keys(&self.pod_dependent)
    }

    /// Those of Pods with claims that a change for this reason may concern. Changes on Nodes concern none that its
    /// claims keep from all.
    pub fn interested_in(&self, interest: &ClaimInterest) -> impl Iterator<Item = &ParkKey> {
        self.interested.get(interest).into_iter().flat_map(|ids| self.keys(ids))
    }

    /// Whether its claims keep it from every Node.
    pub fn lacks_claims(&self, key: &ParkKey) -> bool {
        let indexed = self.ids.get(key).and_then(|id| self.classes[*id].as_ref());
        indexed.is_some_and(|indexed| indexed.shortage.lacking == Lacking::Claims)
    }

    /// Those that have room on some Node.
    pub fn with_room(&self) -> impl Iterator<Item = &ParkKey> {
        self.with_room.values().flat_map(|ids| self.keys(ids))
    }

    /// Those of them that one of these terms of other Pods matches.
    pub fn meant_by<'a>(
        &'a self,
        cluster: &'a Cluster,
        terms: &'a [&PodAffinityTerm],
    ) -> impl Iterator<Item = &'a ParkKey> {
        let is_meant = |ids: &&BTreeSet<ClassId>| {
            let Some(one) = self.keys(ids).next() else { return false };
            let pod = ClusterPod::with_scheduling(one.namespace.clone(), one.scheduling.clone());
            terms.iter().any(|term| existing_term_matches(cluster, term, &pod))
        };
        self.with_room.values().filter(is_meant).flat_map(|ids| self.keys(ids))
    }

    fn keys<'a>(&'a self, ids: &'a BTreeSet<ClassId>) -> impl Iterator<Item = &'a ParkKey> {
        ids.iter().filter_map(|id| Some(&self.classes[*id].as_ref()?.key))
    }
}

fn labels_of(key: &ParkKey) -> (Arc<str>, Labels) {
    (key.namespace.clone(), key.scheduling.labels.clone())
}
