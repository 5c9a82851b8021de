//! What pools have for one Node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    CounterSet, Device, DeviceId, DevicePlace, Node, Quantity, ResourceSlice, SelectedNodes,
};

use super::pools::{Generation, Generations, Slices};
use super::{DevicePools, FatalDeviceError, PoolId};

/// The pools of a Node, in the order in which they are used, and their devices, in the order in which they are tried.
#[derive(Debug)]
pub(super) struct NodePools<'a> {
    pub node: &'a Node,
    pub pools: Vec<NodePool<'a>>,
    pub devices: Vec<NodeDevice<'a>>,
}

#[derive(Debug)]
pub(super) struct NodePool<'a> {
    pub id: &'a PoolId,
    pub state: PoolState,
    /// Slices with devices that the Node may reach, by names. None unless the pool can be used.
    slices: Vec<&'a ResourceSlice>,
    /// Other slices with devices that draw from its counters.
    pub drawing_elsewhere: Vec<&'a ResourceSlice>,
    pub counter_sets: BTreeMap<&'a str, &'a CounterSet>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PoolState {
    Usable,
    /// Slices of it are missing.
    Incomplete,
    /// It contradicts itself, and how.
    Invalid(String),
}

/// A device that the Node may reach.
#[derive(Debug)]
pub(super) struct NodeDevice<'a> {
    pub id: DeviceId,
    /// The place of its pool in [`NodePools::pools`].
    pub pool: usize,
    pub slice: &'a ResourceSlice,
    pub device: &'a Device,
}

impl<'a> NodePools<'a> {
    pub fn gather(pools: &'a DevicePools, node: &'a Node) -> Result<Self, FatalDeviceError> {
        let mut usual = Vec::new();
        // A Pod waits for the conditions of such devices, so these come last.
        let mut with_conditions = Vec::new();
        for (id, generations) in pools.near(&node.name) {
            let Some(pool) = NodePool::gather(id, generations, node)? else { continue };
            let list = if pool.has_conditions() { &mut with_conditions } else { &mut usual };
            list.push(pool);
        }
        usual.append(&mut with_conditions);
        let devices = usual.iter().enumerate().flat_map(|(index, pool)| pool.devices(index));
        Ok(Self { node, devices: devices.collect(), pools: usual })
    }

    pub fn has_invalid(&self) -> bool {
        self.pools.iter().any(|pool| matches!(pool.state, PoolState::Invalid(_)))
    }

    /// The slices that publish the devices of a pool, whoever can reach them.
    pub fn published(&self, pool: usize) -> impl Iterator<Item = &'a ResourceSlice> {
        let pool = &self.pools[pool];
        pool.slices.iter().chain(&pool.drawing_elsewhere).copied()
    }
}

impl<'a> NodePool<'a> {
    /// `None`: the pool has nothing for the Node.
    fn gather(
        id: &'a PoolId,
        generations: &'a Generations,
        node: &Node,
    ) -> Result<Option<Self>, FatalDeviceError> {
        for (number, generation) in generations.iter().rev() {
            let relevant = relevant(generation, node)?;
            // Slices of one generation should agree on their number. If not, the pool is changing, and the largest counts.
            let Some(count) = relevant.iter().map(|slice| slice.slice_count).max() else {
                continue;
            };
            let has = |size: usize| i64::try_from(size) == Ok(count);
            if has(relevant.len()) {
                return Ok(Some(Self::checked(id, relevant, None)));
            }
            let is_obsolete = generations.range(number + 1..).next().is_some();
            if is_obsolete {
                return Ok(None);
            }
            if has(generation.size) {
                return Ok(Some(Self::checked(id, relevant, Some(&generation.drawing))));
            }
            return Ok(Some(Self::without_devices(id, PoolState::Incomplete)));
        }
        Ok(None)
    }

    fn without_devices(id: &'a PoolId, state: PoolState) -> Self {
        let (slices, drawing_elsewhere) = (Vec::new(), Vec::new());
        Self { id, state, slices, drawing_elsewhere, counter_sets: BTreeMap::new() }
    }

    /// `drawing`: every slice of the pool of which a device draws from counters, if not all slices are relevant.
    fn checked(
        id: &'a PoolId,
        relevant: Vec<&'a ResourceSlice>,
        drawing: Option<&'a Slices>,
    ) -> Self {
        let names: BTreeSet<_> = relevant.iter().map(|slice| &slice.name).collect();
        let drawing = drawing.into_iter().flat_map(BTreeMap::values).map(AsRef::as_ref);
        let drawing_elsewhere: Vec<&ResourceSlice> =
            drawing.filter(|slice| !names.contains(&slice.name)).collect();
        let (with_counters, slices): (Vec<_>, Vec<_>) =
            relevant.into_iter().partition(|slice| !slice.shared_counters.is_empty());
        let checked = unique_devices(&slices).and_then(|()| {
            let counter_sets = unique_counter_sets(&with_counters)?;
            known_counters(&counter_sets, &slices)?;
            known_counters(&counter_sets, &drawing_elsewhere)?;
            Ok(counter_sets)
        });
        match checked {
            Ok(counter_sets) => {
                Self { id, state: PoolState::Usable, slices, drawing_elsewhere, counter_sets }
            }
            Err(why) => Self::without_devices(id, PoolState::Invalid(why)),
        }
    }

    /// Whether these, which are all slices of the pool, do not contradict each other.
    pub fn is_sound(id: &PoolId, slices: Vec<&ResourceSlice>) -> bool {
        NodePool::checked(id, slices, None).state == PoolState::Usable
    }

    fn has_conditions(&self) -> bool {
        let mut devices = self.slices.iter().flat_map(|slice| &slice.devices);
        devices.any(|device| !device.binding_conditions.is_empty())
    }

    fn devices(&self, pool: usize) -> impl Iterator<Item = NodeDevice<'a>> {
        let id = self.id;
        self.slices.clone().into_iter().flat_map(move |slice| {
            slice.devices.iter().map(move |device| {
                let (driver, in_pool) = (id.driver.clone(), id.pool.clone());
                let id = DeviceId { driver, pool: in_pool, device: device.name.clone() };
                NodeDevice { id, pool, slice, device }
            })
        })
    }
}

impl NodeDevice<'_> {
    /// Whether the device can be used from the Node: a slice may say this of each of its devices.
    pub fn is_reached_from(&self, node: &Node) -> Result<bool, FatalDeviceError> {
        match self.slice.place {
            DevicePlace::PerDevice => device_reaches(self.slice, self.device, node),
            _ => Ok(true),
        }
    }

    /// From where it can be used.
    pub fn place(&self) -> &DevicePlace {
        match &self.slice.place {
            DevicePlace::PerDevice => self.device.place.as_ref().unwrap_or(&DevicePlace::PerDevice),
            place => place,
        }
    }

    /// What the pool has in total of a counter.
    pub fn counter(&self, pools: &NodePools, set: &str, counter: &str) -> Quantity {
        let set = pools.pools[self.pool].counter_sets.get(set);
        set.and_then(|set| set.counters.get(counter)).copied().unwrap_or_default()
    }
}

/// The slices of a generation that matter for a Node, by names.
fn relevant<'a>(
    generation: &'a Generation,
    node: &Node,
) -> Result<Vec<&'a ResourceSlice>, FatalDeviceError> {
    let of_node = generation.of_nodes.get(&node.name).into_iter().flat_map(BTreeMap::values);
    let mut relevant: Vec<&ResourceSlice> = of_node.map(AsRef::as_ref).collect();
    for slice in generation.elsewhere.values() {
        if slice_reaches(slice, node)? {
            relevant.push(slice);
        }
    }
    relevant.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(relevant)
}

fn slice_reaches(slice: &ResourceSlice, node: &Node) -> Result<bool, FatalDeviceError> {
    if !slice.shared_counters.is_empty() {
        return Ok(true);
    }
    if slice.place != DevicePlace::PerDevice {
        return reaches(&slice.place, slice, node);
    }
    for device in &slice.devices {
        if device_reaches(slice, device, node)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn device_reaches(
    slice: &ResourceSlice,
    device: &Device,
    node: &Node,
) -> Result<bool, FatalDeviceError> {
    device.place.as_ref().map_or(Ok(false), |place| reaches(place, slice, node))
}

fn reaches(
    place: &DevicePlace,
    slice: &ResourceSlice,
    node: &Node,
) -> Result<bool, FatalDeviceError> {
    Ok(match place {
        DevicePlace::Node(name) => *name == node.name,
        DevicePlace::AllNodes => true,
        DevicePlace::Nodes(nodes) => match parse_error(nodes) {
            None => nodes.matches(node),
            Some(why) => {
                let (node, slice) = (node.name.clone(), slice.name.clone());
                return Err(FatalDeviceError::NodeSelector { node, slice, why });
            }
        },
        DevicePlace::PerDevice => false,
    })
}

fn parse_error(nodes: &SelectedNodes) -> Option<Arc<str>> {
    let error = nodes.selector.terms.iter().find_map(|term| term.error())?;
    Some(error.to_string().into())
}

fn unique_devices(slices: &[&ResourceSlice]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut devices = slices.iter().flat_map(|slice| &slice.devices);
    match devices.find(|device| !names.insert(&device.name)) {
        Some(device) => Err(format!("duplicate device name {}", device.name)),
        None => Ok(()),
    }
}

fn unique_counter_sets<'a>(
    slices: &[&'a ResourceSlice],
) -> Result<BTreeMap<&'a str, &'a CounterSet>, String> {
    let mut sets = BTreeMap::new();
    for set in slices.iter().flat_map(|slice| &slice.shared_counters) {
        if sets.insert(set.name.as_ref(), set).is_some() {
            return Err(format!("duplicate counter set name {}", set.name));
        }
    }
    Ok(sets)
}

fn known_counters(
    sets: &BTreeMap<&str, &CounterSet>,
    slices: &[&ResourceSlice],
) -> Result<(), String> {
    let devices = slices.iter().flat_map(|slice| &slice.devices);
    for drawn in devices.flat_map(|device| &device.consumes_counters) {
        let Some(set) = sets.get(drawn.counter_set.as_ref()) else {
            return Err(format!("counter set {} not found", drawn.counter_set));
        };
        let unknown = drawn.counters.keys().find(|name| !set.counters.contains_key(*name));
        if let Some(name) = unknown {
            return Err(format!("counter {name} not found in counter set {}", set.name));
        }
    }
    Ok(())
}
