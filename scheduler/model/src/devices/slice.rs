use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Device;
use crate::{Node, NodeName, NodeSelector, Quantity, RawNodeTerm};

/// A part of a pool of devices, published by its driver. It has devices or counters, never both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSlice {
    pub name: Arc<str>,
    pub driver: Arc<str>,
    pub pool: Arc<str>,
    /// `spec.pool.generation`: of a pool only the slices of the highest count.
    pub generation: i64,
    /// `spec.pool.resourceSliceCount`: the pool is complete with so many slices of its generation.
    pub slice_count: i64,
    pub place: DevicePlace,
    pub devices: Vec<Device>,
    pub shared_counters: Vec<CounterSet>,
}

/// From which Nodes devices can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DevicePlace {
    /// `nodeName`.
    Node(NodeName),
    /// `nodeSelector`.
    Nodes(Arc<SelectedNodes>),
    /// `allNodes`.
    AllNodes,
    /// `perDeviceNodeSelection`: each device of the slice says it. For a device, and a slice that says nothing: nowhere.
    PerDevice,
}

/// A node selector, parsed, and as it is written: an allocation repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SelectedNodes {
    pub selector: NodeSelector,
    pub terms: Vec<RawNodeTerm>,
}

impl SelectedNodes {
    pub fn parse(terms: Vec<RawNodeTerm>) -> Self {
        Self { selector: NodeSelector::parse(&terms), terms }
    }

    pub fn matches(&self, node: &Node) -> bool {
        self.selector.matches(&node.name, &node.labels)
    }
}

/// Counters that the devices of a pool draw from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSet {
    pub name: Arc<str>,
    pub counters: BTreeMap<Arc<str>, Quantity>,
}
