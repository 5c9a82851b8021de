//! A case for each rule of the allocator, most of all for the traps.

mod admin;
mod capacity;
mod constraints;
mod counters;
mod fatal;
mod pools;
mod requests;
mod results;
mod taken;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Allocation, Attribute, ClaimSpec, Constraint, CounterSet, CounterUse, Device, DeviceCapacity,
    DeviceClass, DeviceCount, DevicePlace, DeviceRequest, DeviceSelector, DeviceTaint,
    DeviceTaintEffect, DeviceToleration, DeviceType, Node, NodeName, ObjectKey, RawNodeTerm,
    RawRequirement, RequestAlternatives, ResourceClaim, ResourceSlice, SelectedNodes,
    SelectorVerdict, SubRequest,
};

use super::*;

/// Expressions of these tests: `all`, `none`, `error`, or `attribute=text`.
struct Plain;

impl Selectors for Plain {
    fn verdict(&self, expression: &Arc<str>, device: &Arc<DeviceType>) -> SelectorVerdict {
        let matches = match expression.split_once('=') {
            Some((name, text)) => {
                device.attributes.get(name) == Some(&Attribute::Text(text.into()))
            }
            None if expression.as_ref() == "error" => {
                return SelectorVerdict::Fails("CEL runtime error: no such key: x".into());
            }
            None => expression.as_ref() == "all",
        };
        if matches { SelectorVerdict::Matches } else { SelectorVerdict::DoesNotMatch }
    }
}

/// A cluster with the Node `n1` in zone `a`, and the class `gpu`, which means every device.
struct Given {
    pools: DevicePools,
    classes: DeviceClasses,
    taken: TakenDevices,
    node: Node,
    step_limit: u32,
}

impl Given {
    fn new(slices: impl IntoIterator<Item = ResourceSlice>) -> Self {
        let mut pools = DevicePools::default();
        slices.into_iter().for_each(|slice| pools.set(slice.into()));
        let classes = [("gpu".into(), class("gpu", &[]).into())].into();
        let (taken, node) = (TakenDevices::default(), node("n1", "a"));
        Self { pools, classes, taken, node, step_limit: STEPS_MAX }
    }

    /// One pool of the Node with these devices.
    fn devices(devices: impl IntoIterator<Item = Device>) -> Self {
        Self::new([slice("s", "p", devices)])
    }

    fn input(&self) -> AllocatorInput<'_> {
        let Self { pools, classes, taken, step_limit, .. } = self;
        AllocatorInput { pools, classes, selectors: &Plain, taken, step_limit: *step_limit }
    }

    fn allocate(&self, claims: &[ResourceClaim]) -> Result<Vec<Allocation>, AllocationFailure> {
        allocate(&self.input(), &self.node, &claims.iter().collect::<Vec<_>>())
    }

    fn allocation(&self, requests: impl IntoIterator<Item = DeviceRequest>) -> Allocation {
        self.allocate(&[claim("c", requests)]).unwrap().remove(0)
    }

    /// What each request gets, as `request=device`.
    fn gets(&self, requests: impl IntoIterator<Item = DeviceRequest>) -> Vec<String> {
        shown(&self.allocation(requests))
    }

    fn failure(&self, claims: &[ResourceClaim]) -> AllocationFailure {
        self.allocate(claims).unwrap_err()
    }

    fn fits(&self, requests: impl IntoIterator<Item = DeviceRequest>) -> bool {
        match self.allocate(&[claim("c", requests)]) {
            Ok(_) => true,
            Err(AllocationFailure::DoesNotFit { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Another claim gets what these requests ask for, and keeps it.
    fn take(&mut self, claim_uid: &str, requests: impl IntoIterator<Item = DeviceRequest>) {
        let mut allocation = self.allocation(requests);
        let mut ids = (1..).map(|id: i32| Arc::from(format!("share-{id}")));
        name_shares(&mut allocation, || ids.next().unwrap());
        self.taken.set(&claim_uid.into(), Some(&allocation));
    }
}

fn shown(allocation: &Allocation) -> Vec<String> {
    let devices = allocation.devices.iter();
    devices.map(|device| format!("{}={}", device.request, device.id.device)).collect()
}

fn node(name: &str, zone: &str) -> Node {
    Node {
        name: name.into(),
        labels: [("zone".into(), zone.into())].into(),
        taints: Vec::new(),
        unschedulable: false,
        allocatable: model::Resources::default(),
        pods_max: 110,
    }
}

fn class(name: &str, expressions: &[&str]) -> DeviceClass {
    DeviceClass {
        name: name.into(),
        created_at_unix_s: 0,
        selectors: expressions.iter().map(|it| DeviceSelector::Cel((*it).into())).collect(),
        configs: Vec::new(),
        extended_resource: None,
    }
}

/// The only slice of a pool of the Node `n1`.
fn slice(name: &str, pool: &str, devices: impl IntoIterator<Item = Device>) -> ResourceSlice {
    ResourceSlice {
        name: name.into(),
        driver: "d".into(),
        pool: pool.into(),
        generation: 1,
        slice_count: 1,
        place: DevicePlace::Node(NodeName::new("n1")),
        devices: devices.into_iter().collect(),
        shared_counters: Vec::new(),
    }
}

fn in_zone(zone: &str) -> DevicePlace {
    let zone = RawRequirement::new("zone", "In", &[zone]);
    let terms = vec![RawNodeTerm { expressions: vec![zone], fields: Vec::new() }];
    DevicePlace::Nodes(SelectedNodes::parse(terms).into())
}

fn device(name: &str) -> Device {
    let device_type = DeviceType { driver: "d".into(), ..DeviceType::default() }.into();
    Device { name: name.into(), device_type, ..Device::default() }
}

trait DeviceWith: Sized {
    fn typed(self, change: impl FnOnce(&mut DeviceType)) -> Self;
    fn text(self, name: &str, value: &str) -> Self {
        self.attribute(name, Attribute::Text(value.into()))
    }
    fn attribute(self, name: &str, value: Attribute) -> Self {
        self.typed(|it| drop(it.attributes.insert(name.into(), value)))
    }
    fn shared(self) -> Self {
        self.typed(|it| it.allow_multiple_allocations = true)
    }
    fn capacity(self, name: &str, value: &str) -> Self {
        let capacity = DeviceCapacity {
            value: value.parse().unwrap(),
            text: value.into(),
            ..DeviceCapacity::default()
        };
        self.typed(|it| drop(it.capacity.insert(name.into(), capacity)))
    }
    fn draws(self, set: &str, counter: &str, amount: i64) -> Self;
    fn tainted(self, key: &str, effect: DeviceTaintEffect) -> Self;
}

impl DeviceWith for Device {
    fn typed(mut self, change: impl FnOnce(&mut DeviceType)) -> Self {
        change(Arc::make_mut(&mut self.device_type));
        self
    }

    fn draws(mut self, set: &str, counter: &str, amount: i64) -> Self {
        let counters = [(counter.into(), model::Quantity::from_whole(amount))].into();
        self.consumes_counters.push(CounterUse { counter_set: set.into(), counters });
        self
    }

    fn tainted(mut self, key: &str, effect: DeviceTaintEffect) -> Self {
        self.taints.push(DeviceTaint { key: key.into(), value: "v".into(), effect });
        self
    }
}

/// A slice with counters for the pool `p`, of two slices.
fn counters(counters: &[(&str, i64)]) -> ResourceSlice {
    let amount =
        |&(name, amount): &(&str, i64)| (Arc::from(name), model::Quantity::from_whole(amount));
    let set = CounterSet { name: "set".into(), counters: counters.iter().map(amount).collect() };
    let of_pool = slice("counters", "p", []);
    ResourceSlice { shared_counters: vec![set], slice_count: 2, ..of_pool }
}

/// Devices of the pool `p` that may draw from its counters.
fn drawing(devices: impl IntoIterator<Item = Device>) -> ResourceSlice {
    ResourceSlice { slice_count: 2, ..slice("devices", "p", devices) }
}

fn sub_request(name: &str, count: i64) -> SubRequest {
    SubRequest {
        name: name.into(),
        class: "gpu".into(),
        selectors: Vec::new(),
        count: DeviceCount::Exact(count),
        admin_access: false,
        tolerations: Vec::new(),
        capacity: BTreeMap::new(),
    }
}

fn exactly(request: SubRequest) -> DeviceRequest {
    let name = request.name.clone();
    DeviceRequest { name, alternatives: RequestAlternatives::Exactly(request) }
}

fn request(name: &str, count: i64) -> DeviceRequest {
    exactly(sub_request(name, count))
}

fn all(name: &str) -> DeviceRequest {
    exactly(SubRequest { count: DeviceCount::All, ..sub_request(name, 0) })
}

fn selected(name: &str, count: i64, expression: &str) -> DeviceRequest {
    let selectors = vec![DeviceSelector::Cel(expression.into())];
    exactly(SubRequest { selectors, ..sub_request(name, count) })
}

fn asking(name: &str, capacity: &str, amount: &str) -> DeviceRequest {
    let capacity = [(capacity.into(), amount.parse().unwrap())].into();
    exactly(SubRequest { capacity, ..sub_request(name, 1) })
}

fn admin(name: &str) -> DeviceRequest {
    exactly(SubRequest { admin_access: true, ..sub_request(name, 1) })
}

fn tolerating(name: &str, tolerations: Vec<DeviceToleration>) -> DeviceRequest {
    exactly(SubRequest { tolerations, ..sub_request(name, 1) })
}

fn first_of(name: &str, alternatives: impl IntoIterator<Item = SubRequest>) -> DeviceRequest {
    let alternatives = RequestAlternatives::FirstAvailable(alternatives.into_iter().collect());
    DeviceRequest { name: name.into(), alternatives }
}

fn claim(name: &str, requests: impl IntoIterator<Item = DeviceRequest>) -> ResourceClaim {
    let mut claim = ResourceClaim::new(ObjectKey::new("default", name));
    claim.uid = format!("uid-{name}").into();
    claim.spec =
        ClaimSpec { requests: requests.into_iter().collect(), ..ClaimSpec::default() }.into();
    claim
}

fn constrained(mut claim: ResourceClaim, constraints: Vec<Constraint>) -> ResourceClaim {
    Arc::make_mut(&mut claim.spec).constraints = constraints;
    claim
}

#[track_caller]
fn assert_does_not_fit(failure: &AllocationFailure) {
    assert_eq!(failure.to_string(), "cannot allocate all claims");
}
