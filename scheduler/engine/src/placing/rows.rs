//! One row for each Node: what it can allocate, and what the Pods on it take. Rows stay in their place
//! while their Node exists.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ClusterNode, ClusterPod, HostPort, NodeName, Resources};
use rules::Cluster;

use super::FixedMap;
use super::plugins::node_resources_balanced_allocation::balance;

/// The place of a Node.
pub(super) type Slot = u32;

/// What almost every decision looks at.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// CPU, memory, ephemeral storage.
    pub allocatable: [i64; 3],
    pub requested: [i64; 3],
    /// CPU and memory, with defaults where nothing is listed.
    pub requested_in_scores: [i64; 2],
    pub pods: i64,
    /// 0 for a Node that is gone.
    pub pods_max: i64,
    /// How even the use of CPU and memory is, before another Pod comes.
    pub balance: i64,
    /// One divided by the allocatable CPU and memory; 0 where amounts are so odd that a score takes more than that.
    pub inverse: [f64; 2],
    /// Pods on it with amounts so large, or negative, that sums could stop at the largest number.
    extreme_pods: u32,
    /// Pods that are nominated for the Node.
    pub nominated: u32,
    is_put: bool,
    /// The lowest priority of its Pods, and how many have it.
    pub lowest_priority: i32,
    lowest_pods: u32,
}

/// What few Pods ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Extras {
    pub allocatable: BTreeMap<Arc<str>, i64>,
    pub requested: BTreeMap<Arc<str>, i64>,
    pub ports: BTreeSet<HostPort>,
}

impl Extras {
    /// What the Node has and what is taken of a resource with a name of its own.
    pub fn scalar(&self, name: &str) -> (i64, i64) {
        let amount = |of: &BTreeMap<Arc<str>, i64>| of.get(name).copied().unwrap_or(0);
        (amount(&self.allocatable), amount(&self.requested))
    }
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    all: Vec<Row>,
    extras: Vec<Extras>,
    names: Vec<Option<NodeName>>,
    slots: FixedMap<NodeName, Slot>,
    /// The lowest is taken first, so that the places depend on little of what was before.
    free: BTreeSet<Slot>,
}

/// Sums of amounts below this cannot overflow: there are fewer than 2^13 of them on one Node.
pub(super) const ORDINARY_MAX: i64 = 1 << 50;

impl Rows {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Nodes that exist.
    pub fn nodes(&self) -> usize {
        self.slots.len()
    }

    pub fn row(&self, slot: Slot) -> &Row {
        &self.all[slot as usize]
    }

    pub fn extras(&self, slot: Slot) -> &Extras {
        &self.extras[slot as usize]
    }

    pub fn slot_of(&self, name: &NodeName) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    pub fn name(&self, slot: Slot) -> Option<&NodeName> {
        self.names.get(slot as usize)?.as_ref()
    }

    /// Every place, taken or not.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        numbered(self.all.len())
    }

    /// The Node in each slot: a rebuilt index with the same slots decides alike.
    pub fn names(&self) -> &[Option<NodeName>] {
        &self.names
    }

    /// Gives these Nodes these places.
    pub fn seat(&mut self, names: Vec<Option<NodeName>>) {
        self.all.resize(names.len(), Row::default());
        self.extras.resize(names.len(), Extras::default());
        for (slot, name) in numbered(names.len()).zip(&names) {
            match name {
                Some(name) => drop(self.slots.insert(name.clone(), slot)),
                None => drop(self.free.insert(slot)),
            }
        }
        self.names = names;
    }

    /// The Node as it is now, in its place or a new one.
    pub fn put(&mut self, node: &ClusterNode, cluster: &Cluster) -> Slot {
        let name = &node.node.name;
        let slot = self.slot_of(name).unwrap_or_else(|| self.take_place(name));
        self.renew(slot, cluster);
        slot
    }

    fn take_place(&mut self, name: &NodeName) -> Slot {
        let slot = self.free.pop_first().unwrap_or_else(|| {
            self.all.push(Row::default());
            self.extras.push(Extras::default());
            self.names.push(None);
            u32::try_from(self.all.len() - 1).unwrap_or(Slot::MAX)
        });
        self.names[slot as usize] = Some(name.clone());
        self.slots.insert(name.clone(), slot);
        slot
    }

    pub fn remove(&mut self, name: &NodeName) -> Option<Slot> {
        let slot = self.slots.remove(name)?;
        self.all[slot as usize] = Row::default();
        self.extras[slot as usize] = Extras::default();
        self.names[slot as usize] = None;
        self.free.insert(slot);
        Some(slot)
    }

    /// Counts everything about a Node anew.
    pub fn renew(&mut self, slot: Slot, cluster: &Cluster) {
        let Some(name) = self.name(slot).cloned() else { return };
        let Some(node) = cluster.nodes.get(&name) else { return };
        let has = &node.node.allocatable;
        let nominated = self.all[slot as usize].nominated;
        self.all[slot as usize] = Row {
            allocatable: three(has),
            pods_max: node.node.pods_max,
            nominated,
            is_put: true,
            lowest_priority: i32::MAX,
            ..Row::default()
        };
        self.extras[slot as usize] =
            Extras { allocatable: has.scalar.clone(), ..Extras::default() };
        for pod in cluster.pods_on(&name) {
            self.count(slot, pod, 1);
            self.all[slot as usize].extreme_pods += u32::from(is_extreme(pod));
        }
        let row = &mut self.all[slot as usize];
        row.settle();
        row.inverse = row.inverses();
    }

    /// Whether the sums can follow the Pod, and need not be counted anew.
    pub fn can_add(&self, slot: Slot, pod: &ClusterPod, sign: i64) -> bool {
        let frees_ports = sign < 0 && !pod.host_ports.is_empty();
        let row = self.row(slot);
        let was_lowest = sign < 0 && row.lowest_priority == pod.priority && row.lowest_pods == 1;
        !frees_ports && !was_lowest && !is_extreme(pod) && row.extreme_pods == 0
    }

    /// A Pod has come to the Node (1) or left it (−1).
    pub fn add(&mut self, slot: Slot, pod: &ClusterPod, sign: i64) {
        self.count(slot, pod, sign);
        self.all[slot as usize].settle();
    }

    pub fn set_nominated(&mut self, slot: Slot, pods: usize) {
        self.all[slot as usize].nominated = u32::try_from(pods).unwrap_or(u32::MAX);
    }

    /// Whether the Node has been counted in its place.
    pub fn is_put(&self, slot: Slot) -> bool {
        self.row(slot).is_put
    }

    /// Whether sums of it could stop at the largest number.
    pub fn is_extreme(&self, slot: Slot) -> bool {
        self.row(slot).is_extreme()
    }

    fn count(&mut self, slot: Slot, pod: &ClusterPod, sign: i64) {
        let (row, extras) = (&mut self.all[slot as usize], &mut self.extras[slot as usize]);
        count(row, extras, pod, sign);
    }
}

/// The Pod comes to the Node (1) or leaves it (−1).
fn count(row: &mut Row, extras: &mut Extras, pod: &ClusterPod, sign: i64) {
    add_requests(row, extras, pod, sign);
    match pod.priority.cmp(&row.lowest_priority) {
        Ordering::Less => (row.lowest_priority, row.lowest_pods) = (pod.priority, 1),
        Ordering::Equal if sign > 0 => row.lowest_pods += 1,
        Ordering::Equal => row.lowest_pods = row.lowest_pods.saturating_sub(1),
        Ordering::Greater => {}
    }
    for (sum, amount) in
        row.requested_in_scores.iter_mut().zip(three(&pod.requests.effective_in_scores))
    {
        *sum = moved(*sum, amount, sign);
    }
    extras.ports.extend(pod.host_ports.iter().cloned());
}

/// The same, as far as it decides whether another Pod has room.
pub(super) fn add_requests(row: &mut Row, extras: &mut Extras, pod: &ClusterPod, sign: i64) {
    let requested = &pod.requests.effective;
    row.pods += sign;
    for (sum, amount) in row.requested.iter_mut().zip(three(requested)) {
        *sum = moved(*sum, amount, sign);
    }
    for (name, amount) in &requested.scalar {
        let sum = extras.requested.entry(name.clone()).or_default();
        *sum = moved(*sum, *amount, sign);
        if *sum == 0 {
            extras.requested.remove(name);
        }
    }
}

fn moved(sum: i64, amount: i64, sign: i64) -> i64 {
    if sign > 0 { sum.saturating_add(amount) } else { sum.saturating_sub(amount) }
}

fn numbered(count: usize) -> impl Iterator<Item = Slot> + use<> {
    (0..count).map(|slot| u32::try_from(slot).unwrap_or(Slot::MAX))
}

impl Row {
    fn settle(&mut self) {
        self.balance = balance(self.allocatable, self.requested);
    }

    /// Whether [`Self::inverse`] can be used.
    pub fn is_ordinary(&self) -> bool {
        self.inverse[0] > 0.0
    }

    /// Whether sums of it could stop at the largest number.
    pub fn is_extreme(&self) -> bool {
        self.extreme_pods > 0
    }

    #[cfg(test)]
    pub fn of_amounts(allocatable: [i64; 3], requested: [i64; 3]) -> Self {
        let mut row = Self { allocatable, requested, ..Self::default() };
        row.inverse = row.inverses();
        row
    }

    #[expect(clippy::cast_precision_loss, reason = "callers correct what is lost")]
    fn inverses(&self) -> [f64; 2] {
        let [cpu, memory, storage] = self.allocatable;
        let has_parts = cpu > 0 && memory > 0 && storage >= 0;
        let is_ordinary = has_parts && self.allocatable.iter().all(|it| *it < ORDINARY_MAX);
        if is_ordinary && self.extreme_pods == 0 {
            [1.0 / cpu as f64, 1.0 / memory as f64]
        } else {
            [0.0; 2]
        }
    }
}

pub(crate) fn three(amounts: &Resources) -> [i64; 3] {
    [amounts.cpu_milli, amounts.memory_bytes, amounts.ephemeral_storage_bytes]
}

pub(crate) fn is_extreme(pod: &ClusterPod) -> bool {
    let ordinary = 0..ORDINARY_MAX;
    let is_ordinary = |amounts: &Resources| {
        three(amounts).iter().chain(amounts.scalar.values()).all(|it| ordinary.contains(it))
    };
    !(is_ordinary(&pod.requests.effective) && is_ordinary(&pod.requests.effective_in_scores))
}
