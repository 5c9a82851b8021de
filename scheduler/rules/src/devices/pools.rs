//! Every ResourceSlice of the cluster, by pools and by the Nodes that they can be used from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use model::{DeviceId, DevicePlace, NodeName, ResourceSlice};

use super::node_pools::NodePool;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolId {
    pub driver: Arc<str>,
    pub pool: Arc<str>,
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.driver, self.pool)
    }
}

/// Kept with every change of a slice, so that a question about one Node walks only the pools that may reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DevicePools {
    /// By names.
    slices: BTreeMap<Arc<str>, Arc<ResourceSlice>>,
    pools: BTreeMap<PoolId, Generations>,
    /// Pools with slices of one Node, and how many.
    of_nodes: BTreeMap<NodeName, BTreeMap<PoolId, usize>>,
    /// Pools that several Nodes may reach, and those with which something is wrong.
    elsewhere: BTreeSet<PoolId>,
    /// Slices that name places in a way that ends attempts.
    odd_places: BTreeSet<Arc<str>>,
}

pub(super) type Generations = BTreeMap<i64, Generation>;

/// Slices by names, which is their order in a pool.
pub(super) type Slices = BTreeMap<Arc<str>, Arc<ResourceSlice>>;

/// The slices of a pool that were published together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Generation {
    pub of_nodes: BTreeMap<NodeName, Slices>,
    /// Those that several Nodes may reach, and all with counters.
    pub elsewhere: Slices,
    /// How many slices there are.
    pub size: usize,
    /// Those of which a device draws from counters.
    pub drawing: Slices,
}

/// Where to look for a slice.
enum Reach<'a> {
    Node(&'a NodeName),
    Elsewhere,
}

impl<'a> Reach<'a> {
    fn of(slice: &'a ResourceSlice) -> Self {
        match &slice.place {
            DevicePlace::Node(node) if slice.shared_counters.is_empty() => Self::Node(node),
            _ => Self::Elsewhere,
        }
    }
}

impl DevicePools {
    /// The slice is there, in place of what had its name.
    pub fn set(&mut self, slice: Arc<ResourceSlice>) {
        self.remove(&slice.name);
        let pool = PoolId::of(&slice);
        if let Reach::Node(node) = Reach::of(&slice) {
            let by_pool = self.of_nodes.entry(node.clone()).or_default();
            *by_pool.entry(pool.clone()).or_default() += 1;
        }
        if has_odd_place(&slice) {
            self.odd_places.insert(slice.name.clone());
        }
        let generations = self.pools.entry(pool.clone()).or_default();
        generations.entry(slice.generation).or_default().add(&slice);
        self.slices.insert(slice.name.clone(), slice);
        self.place_pool(pool);
    }

    /// A slice of the pool has come or gone.
    fn place_pool(&mut self, pool: PoolId) {
        let generations = self.pools.get(&pool);
        if generations.is_some_and(|it| has_elsewhere(it) && !is_of_one_node(&pool, it)) {
            self.elsewhere.insert(pool);
        } else {
            self.elsewhere.remove(&pool);
        }
    }

    /// The slice is gone. `None`: it was not there.
    pub fn remove(&mut self, name: &str) -> Option<Arc<ResourceSlice>> {
        let slice = self.slices.remove(name)?;
        let pool = PoolId::of(&slice);
        self.odd_places.remove(name);
        if let Reach::Node(node) = Reach::of(&slice)
            && let Some(by_pool) = self.of_nodes.get_mut(node)
        {
            take_one(by_pool, &pool);
            if by_pool.is_empty() {
                self.of_nodes.remove(node);
            }
        }
        if let Some(generations) = self.pools.get_mut(&pool) {
            if let Some(generation) = generations.get_mut(&slice.generation) {
                generation.remove(&slice);
                if generation.size == 0 {
                    generations.remove(&slice.generation);
                }
            }
            if generations.is_empty() {
                self.pools.remove(&pool);
            }
        }
        self.place_pool(pool);
        Some(slice)
    }

    pub fn slice(&self, name: &str) -> Option<&Arc<ResourceSlice>> {
        self.slices.get(name)
    }

    /// Every slice, by names.
    pub fn slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        self.slices.values()
    }

    /// The only Node that devices of the pool can be used from. `None`: several may, or the pool is not known.
    pub fn only_node_of(&self, device: &DeviceId) -> Option<&NodeName> {
        let DeviceId { driver, pool, device: _ } = device;
        let pool = PoolId { driver: driver.clone(), pool: pool.clone() };
        let mut only = None;
        for generation in self.pools.get(&pool)?.values() {
            let elsewhere = generation.elsewhere.values().map(|slice| match &slice.place {
                DevicePlace::Node(node) => Some(node),
                DevicePlace::Nodes(_) | DevicePlace::AllNodes | DevicePlace::PerDevice => None,
            });
            for node in generation.of_nodes.keys().map(Some).chain(elsewhere) {
                if node.is_none() || only.is_some_and(|only| Some(only) != node) {
                    return None;
                }
                only = node;
            }
        }
        only
    }

    /// Whether a slice names places in a way that ends attempts that come across it.
    pub fn has_odd_places(&self) -> bool {
        !self.odd_places.is_empty()
    }

    /// The pools that may have devices for the Node, in order.
    pub(super) fn near(&self, node: &NodeName) -> impl Iterator<Item = (&PoolId, &Generations)> {
        let of_node = self.of_nodes.get(node).into_iter().flat_map(BTreeMap::keys);
        let near: BTreeSet<_> = of_node.chain(&self.elsewhere).collect();
        near.into_iter().filter_map(|id| self.pools.get_key_value(id))
    }
}

impl Generation {
    fn add(&mut self, slice: &Arc<ResourceSlice>) {
        let slices = match Reach::of(slice) {
            Reach::Node(node) => self.of_nodes.entry(node.clone()).or_default(),
            Reach::Elsewhere => &mut self.elsewhere,
        };
        slices.insert(slice.name.clone(), slice.clone());
        if slice.devices.iter().any(|device| !device.consumes_counters.is_empty()) {
            self.drawing.insert(slice.name.clone(), slice.clone());
        }
        self.size += 1;
    }

    /// Whether all slices are there, and do not contradict each other.
    fn is_sound(&self, pool: &PoolId) -> bool {
        let of_nodes = self.of_nodes.values().flat_map(BTreeMap::values);
        let slices = of_nodes.chain(self.elsewhere.values()).map(AsRef::as_ref);
        let slices: Vec<&ResourceSlice> = slices.collect();
        let is_whole = |slice: &&ResourceSlice| i64::try_from(self.size) == Ok(slice.slice_count);
        slices.iter().all(is_whole) && NodePool::is_sound(pool, slices)
    }

    fn remove(&mut self, slice: &ResourceSlice) {
        match Reach::of(slice) {
            Reach::Node(node) => {
                if let Some(slices) = self.of_nodes.get_mut(node) {
                    slices.remove(&slice.name);
                    if slices.is_empty() {
                        self.of_nodes.remove(node);
                    }
                }
            }
            Reach::Elsewhere => {
                self.elsewhere.remove(&slice.name);
            }
        }
        self.drawing.remove(&slice.name);
        self.size -= 1;
    }
}

impl PoolId {
    pub fn of(slice: &ResourceSlice) -> Self {
        Self { driver: slice.driver.clone(), pool: slice.pool.clone() }
    }
}

fn has_elsewhere(generations: &Generations) -> bool {
    generations.values().any(|generation| !generation.elsewhere.is_empty())
}

/// Whether the pool is whole, sound and of one Node with all of its slices: then its counters, which belong to all Nodes,
/// mean nothing to others.
fn is_of_one_node(pool: &PoolId, generations: &Generations) -> bool {
    let Some((_, generation)) = generations.first_key_value().filter(|_| generations.len() == 1)
    else {
        return false;
    };
    let mut nodes = generation.of_nodes.keys();
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return false };
    let is_there = |slice: &ResourceSlice| match &slice.place {
        DevicePlace::Node(of) => of == node,
        DevicePlace::Nodes(_) | DevicePlace::AllNodes | DevicePlace::PerDevice => false,
    };
    generation.elsewhere.values().all(|slice| is_there(slice)) && generation.is_sound(pool)
}

fn has_odd_place(slice: &ResourceSlice) -> bool {
    let each = slice.devices.iter().filter_map(|device| device.place.as_ref());
    let mut places = std::iter::once(&slice.place).chain(each);
    places.any(|place| match place {
        DevicePlace::Nodes(nodes) => {
            nodes.terms.len() > 1 || nodes.selector.terms.iter().any(|term| term.error().is_some())
        }
        DevicePlace::Node(_) | DevicePlace::AllNodes | DevicePlace::PerDevice => false,
    })
}

fn take_one(counts: &mut BTreeMap<PoolId, usize>, pool: &PoolId) {
    if let Some(count) = counts.get_mut(pool) {
        *count -= 1;
        if *count == 0 {
            counts.remove(pool);
        }
    }
}
