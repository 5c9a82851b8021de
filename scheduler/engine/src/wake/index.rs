//! Which classes of parked Pods a change can concern, found without a look at the others.
//!
//! A Node can only be new to a class if it has room for it, at least without the Pods that it could send away. So classes stand
//! on shelves, in the order of what they ask of the resource that they lack, and a Node that has changed is held against
//! that. A class for which no Node has room is concerned by nothing that happens elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ClusterNode, ClusterPod, Labels, NodeName, PodAffinityTerm, PreemptionPolicy};
use rules::{Cluster, Rules, placed_term_means};

use super::free_capacity::FreeCapacities;
use crate::placing::{FixedMap, Lacking, NodeFilter, Shortage};
use crate::queue::ParkKey;

type ClassId = usize;
type FilterId = usize;

#[derive(Debug, Default)]
pub(crate) struct WakeIndex {
    ids: BTreeMap<ParkKey, ClassId>,
    classes: Vec<Option<Filed>>,
    free: Vec<ClassId>,
    filter_ids: FixedMap<NodeFilter, FilterId>,
    filters: Vec<Shelves>,
    free_filters: Vec<FilterId>,
    /// Those that name no Nodes, and the others by the Nodes that they name.
    anywhere: BTreeSet<FilterId>,
    named: BTreeMap<NodeName, BTreeSet<FilterId>>,
    /// Those that have a chance somewhere: it can be lost.
    hopeful: BTreeSet<ClassId>,
    /// Those with room somewhere that look at Pods on other Nodes.
    watchful: BTreeSet<ClassId>,
    /// Those with room somewhere, by what terms of others can mean.
    with_room: BTreeMap<(Arc<str>, Labels), BTreeSet<ClassId>>,
}

/// Sorts that make the same of Nodes themselves.
#[derive(Debug)]
struct Shelves {
    filter: Option<NodeFilter>,
    /// By priority and resource: the amounts that are asked for.
    by_amount: BTreeMap<(i32, Lacking), BTreeSet<(i64, ClassId)>>,
}

#[derive(Debug)]
struct Filed {
    key: ParkKey,
    filter: FilterId,
    level: i32,
    shortage: Shortage,
    is_local: bool,
}

/// Pods of a lower priority than this can be sent away by a Pod of the class.
pub(crate) fn level(rules: &Rules, class: &ParkKey) -> i32 {
    let never = class.scheduling.preemption_policy == PreemptionPolicy::Never;
    if never || rules.switched_off.preemption { i32::MIN } else { class.scheduling.priority }
}

impl WakeIndex {
    /// Files a class anew.
    pub fn file(&mut self, key: &ParkKey, level: i32, is_local: bool, shortage: Shortage) {
        let known = self.ids.get(key).and_then(|id| self.classes[*id].as_ref());
        if known.is_some_and(|it| it.level == level && it.shortage == shortage) {
            return;
        }
        let was_hopeful = self.ids.get(key).is_some_and(|id| self.hopeful.contains(id));
        self.remove(key);
        let filter = self.filter_of(key);
        let id = self.free.pop().unwrap_or(self.classes.len());
        if id == self.classes.len() {
            self.classes.push(None);
        }
        let place = (level, shortage.lacking.clone());
        self.filters[filter].by_amount.entry(place).or_default().insert((shortage.amount, id));
        let filed = Filed { key: key.clone(), filter, level, shortage, is_local };
        self.ids.insert(key.clone(), id);
        if was_hopeful {
            self.hopeful.insert(id);
        }
        if filed.shortage.has_room {
            self.note_room(id, &filed);
        }
        self.classes[id] = Some(filed);
    }

    pub fn remove(&mut self, key: &ParkKey) {
        let Some(id) = self.ids.remove(key) else { return };
        let Some(filed) = self.classes[id].take() else { return };
        self.free.push(id);
        self.hopeful.remove(&id);
        self.watchful.remove(&id);
        let labels = labels_of(&filed.key);
        if let Some(alike) = self.with_room.get_mut(&labels) {
            alike.remove(&id);
            if alike.is_empty() {
                self.with_room.remove(&labels);
            }
        }
        let Filed { filter, level, shortage, .. } = filed;
        let place = (level, shortage.lacking);
        let shelves = &mut self.filters[filter].by_amount;
        if let Some(classes) = shelves.get_mut(&place) {
            classes.remove(&(shortage.amount, id));
            if classes.is_empty() {
                shelves.remove(&place);
            }
        }
        if shelves.is_empty() {
            self.drop_filter(filter);
        }
    }

    fn note_room(&mut self, id: ClassId, filed: &Filed) {
        self.with_room.entry(labels_of(&filed.key)).or_default().insert(id);
        if !filed.is_local {
            self.watchful.insert(id);
        }
    }

    /// The class has a chance somewhere, or none.
    pub fn set_hopeful(&mut self, key: &ParkKey, is_hopeful: bool) {
        let Some(id) = self.ids.get(key) else { return };
        if is_hopeful {
            self.hopeful.insert(*id);
        } else {
            self.hopeful.remove(id);
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
        let shelves = Shelves { filter: Some(filter.clone()), by_amount: BTreeMap::new() };
        if id == self.filters.len() {
            self.filters.push(shelves);
        } else {
            self.filters[id] = shelves;
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

    /// The classes for which the Node has room, without Pods that they could send away. They have room from now on. With
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
            let Shelves { filter: Some(filter), by_amount } = &self.filters[*id] else { continue };
            if !filter.admits(node, rules_of(&filter.profile)) {
                continue;
            }
            for ((level, lacking), classes) in by_amount {
                if above.is_some_and(|above| *level <= above) {
                    continue;
                }
                let capacity = capacities.above(*level);
                let on_shelf = classes.range(..=(capacity.of(lacking), ClassId::MAX));
                found.extend(on_shelf.map(|(_, id)| *id).filter(|id| {
                    let filed = self.classes[*id].as_ref();
                    filed.is_some_and(|filed| capacity.holds(filed.shortage.asked))
                }));
            }
        }
        for id in &found {
            let Some(mut filed) = self.classes[*id].take() else { continue };
            if !std::mem::replace(&mut filed.shortage.has_room, true) {
                self.note_room(*id, &filed);
            }
            self.classes[*id] = Some(filed);
        }
        found.into_iter().filter_map(|id| Some(self.classes[id].as_ref()?.key.clone())).collect()
    }

    #[cfg(test)]
    pub fn classes(&self) -> impl Iterator<Item = &ParkKey> {
        self.ids.keys()
    }

    /// Whether some Node has room for the class, or would have without Pods that it could send away.
    pub fn has_room(&self, key: &ParkKey) -> bool {
        let filed = self.ids.get(key).and_then(|id| self.classes[*id].as_ref());
        filed.is_some_and(|filed| filed.shortage.has_room)
    }

    /// Those that have a chance somewhere.
    pub fn hopeful(&self) -> impl Iterator<Item = &ParkKey> {
        self.keys(&self.hopeful)
    }

    /// Those that look at Pods on other Nodes, and have room on some.
    pub fn watchful(&self) -> impl Iterator<Item = &ParkKey> {
        self.keys(&self.watchful)
    }

    /// Those that have room on some Node.
    pub fn with_room(&self) -> impl Iterator<Item = &ParkKey> {
        self.with_room.values().flat_map(|ids| self.keys(ids))
    }

    /// Those of them that one of these terms of others means.
    pub fn meant_by<'a>(
        &'a self,
        cluster: &'a Cluster,
        terms: &'a [&PodAffinityTerm],
    ) -> impl Iterator<Item = &'a ParkKey> {
        let is_meant = |ids: &&BTreeSet<ClassId>| {
            let Some(one) = self.keys(ids).next() else { return false };
            let pod = ClusterPod::with_scheduling(one.namespace.clone(), one.scheduling.clone());
            terms.iter().any(|term| placed_term_means(cluster, term, &pod))
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
