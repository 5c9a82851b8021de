//! Pods with ResourceClaims: what is written into them, what is awaited, and that no device is given out twice.

mod binding_cycle;
mod histories;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::{
    AllocatedDevice, Allocation, Assignment, Attribute, ClaimSpec, ClaimUser, Device,
    DeviceCapacity, DeviceClass, DeviceCount, DeviceId, DevicePlace, DeviceRequest, DeviceSelector,
    DeviceType, PodClaim, PodClaimSource, RawNodeTerm, RawRequirement, RequestAlternatives,
    ResourceClaim, ResourceSlice, SelectedNodes, SelectorVerdict, SubRequest,
};
use rules::{ClusterObject, ClusterObjectId};

use super::World;
use crate::event::SelectorEvaluation;
use crate::testkit::{NodeBuilder, PodBuilder, key};
use crate::{BindRefusal, BindRefusalCause, Event, Prepare, PrepareWrite};

const DRIVER: &str = "d";
const CLASS: &str = "devices";
/// Expressions, of which the verdicts are told here: CEL is not the engine's business.
const IS_A: &str = "is a";
const IS_B: &str = "is b";
/// Fails for devices that are b.
const ODD: &str = "odd";
const GIB: &str = "memory";

impl World {
    /// Nodes in two zones, and a class of all devices.
    fn with_devices() -> Self {
        let mut world = Self::with_nodes(0);
        for number in 0..3 {
            world.handle(node_seen(number));
        }
        world.handle(class_seen());
        let verdicts = |holds: fn(&DeviceType) -> SelectorVerdict| {
            types().into_iter().map(|it| (it.clone(), holds(&it))).collect()
        };
        let all = [
            (IS_A, verdicts(|it| is(it, "a"))),
            (IS_B, verdicts(|it| is(it, "b"))),
            (ODD, verdicts(|it| if is(it, "b").matches() { fails() } else { is(it, "a") })),
        ];
        let evaluation = |(expression, verdicts): (&str, _)| SelectorEvaluation {
            expression: expression.into(),
            verdicts,
        };
        world.handle(Event::SelectorsEvaluated(all.map(evaluation).into()));
        world
    }

    fn claim_seen(&mut self, claim: ResourceClaim) {
        self.handle(Event::seen(ClusterObject::ResourceClaim(claim.key.clone(), claim.into())));
    }

    fn slice(&mut self, slice: ResourceSlice) {
        self.handle(Event::seen(ClusterObject::ResourceSlice(slice.name.clone(), slice.into())));
    }

    fn claim_named(&self, name: &str) -> ResourceClaim {
        let claims = &self.engine.observed.cluster.objects.resource_claims;
        ResourceClaim::clone(claims.get(&key(name)).unwrap())
    }

    /// As the API server does it, and the watch shows it.
    fn write_all(&mut self) {
        for prepare in std::mem::take(&mut self.prepares) {
            for write in &prepare.writes {
                self.write(&prepare, write);
            }
            self.handle(Event::PrepareDone(prepare.uid));
        }
    }

    fn write(&mut self, prepare: &Prepare, write: &PrepareWrite) {
        let (PrepareWrite::ProtectClaim { claim, .. }
        | PrepareWrite::ReserveClaim { claim, .. }
        | PrepareWrite::DeallocateClaim { claim, .. }) = write
        else {
            panic!("{write:?}")
        };
        let known = self.engine.observed.cluster.objects.resource_claims.get(claim);
        let Some(mut changed) = known.map(|it| ResourceClaim::clone(it)) else { return };
        match write {
            PrepareWrite::ReserveClaim { allocation, .. } => {
                let name = prepare.pod.name.clone();
                let uid = prepare.uid.as_str().into();
                changed.reserved_for.push(ClaimUser { is_pod: true, name, uid });
                changed.allocation = changed.allocation.or(allocation.clone());
            }
            PrepareWrite::DeallocateClaim { .. } => {
                changed.allocation = None;
                changed.reserved_for.clear();
            }
            _ => changed.has_finalizer = true,
        }
        self.claim_seen(changed);
    }

    fn device_stage(&self, pod: &str) -> &'static str {
        self.engine.explain(&key(pod)).map(|it| it.state).unwrap_or_default()
    }
}

trait Matches {
    fn matches(&self) -> bool;
}

impl Matches for SelectorVerdict {
    fn matches(&self) -> bool {
        *self == Self::Matches
    }
}

fn fails() -> SelectorVerdict {
    SelectorVerdict::Fails("CEL runtime error: no such key".into())
}

fn is(device_type: &DeviceType, kind: &str) -> SelectorVerdict {
    if device_type.attributes.get("kind") == Some(&Attribute::Text(kind.into())) {
        SelectorVerdict::Matches
    } else {
        SelectorVerdict::DoesNotMatch
    }
}

fn device_type(kind: &str, is_shared: bool) -> Arc<DeviceType> {
    let capacity = DeviceCapacity { value: "8".parse().unwrap(), text: "8".into(), policy: None };
    Arc::new(DeviceType {
        driver: DRIVER.into(),
        attributes: [("kind".into(), Attribute::Text(kind.into()))].into(),
        capacity: if is_shared { [(GIB.into(), capacity)].into() } else { BTreeMap::new() },
        allow_multiple_allocations: is_shared,
    })
}

fn types() -> Vec<Arc<DeviceType>> {
    [("a", false), ("b", false), ("a", true), ("b", true)]
        .map(|(it, of)| device_type(it, of))
        .into()
}

fn node_seen(number: u8) -> Event {
    let name = format!("n{number}");
    let zone = format!("z{}", number % 2);
    Event::seen(NodeBuilder::new(&name).label("host", &name).label("zone", &zone).build())
}

fn class_seen() -> Event {
    let class = DeviceClass {
        name: CLASS.into(),
        created_at_unix_s: 0,
        selectors: Vec::new(),
        configs: Vec::new(),
        extended_resource: None,
    };
    Event::seen(ClusterObject::DeviceClass(CLASS.into(), class.into()))
}

/// A pool of its own.
fn slice_of(name: &str, place: DevicePlace, kinds: &[(&str, bool)]) -> ResourceSlice {
    let device = |(number, (kind, is_shared)): (usize, &(&str, bool))| Device {
        name: format!("{kind}{number}").into(),
        device_type: device_type(kind, *is_shared),
        ..Device::default()
    };
    ResourceSlice {
        name: name.into(),
        driver: DRIVER.into(),
        pool: name.into(),
        generation: 1,
        slice_count: 1,
        place,
        devices: kinds.iter().enumerate().map(device).collect(),
        shared_counters: Vec::new(),
    }
}

fn on_node(node: u8) -> DevicePlace {
    DevicePlace::Node(format!("n{node}").as_str().into())
}

fn asking(count: i64, expression: &str) -> SubRequest {
    SubRequest {
        name: "r".into(),
        class: CLASS.into(),
        selectors: vec![DeviceSelector::Cel(expression.into())],
        count: DeviceCount::Exact(count),
        admin_access: false,
        tolerations: Vec::new(),
        capacity: BTreeMap::new(),
    }
}

fn claim_of(name: &str, alternatives: RequestAlternatives) -> ResourceClaim {
    let requests = vec![DeviceRequest { name: "r".into(), alternatives }];
    ResourceClaim {
        uid: format!("uid-{name}").into(),
        spec: Arc::new(ClaimSpec { requests, ..ClaimSpec::default() }),
        ..ResourceClaim::new(key(name))
    }
}

fn exactly(name: &str, count: i64, expression: &str) -> ResourceClaim {
    claim_of(name, RequestAlternatives::Exactly(asking(count, expression)))
}

fn allocated(claim: ResourceClaim, pool: &str, device: &str) -> ResourceClaim {
    let id = DeviceId { driver: DRIVER.into(), pool: pool.into(), device: device.into() };
    let device = AllocatedDevice {
        request: "r".into(),
        id,
        admin_access: false,
        tolerations: Vec::new(),
        binding_conditions: Vec::new(),
        binding_failure_conditions: Vec::new(),
        share_id: None,
        consumed_capacity: BTreeMap::new(),
    };
    let allocation = Allocation { devices: vec![device], ..Allocation::default() };
    ResourceClaim { allocation: Some(allocation.into()), ..claim }
}

fn asks(name: &str, claims: &[&str]) -> model::Pod {
    let claim = |name: &&str| PodClaim {
        name: (*name).into(),
        source: PodClaimSource::Claim((*name).into()),
    };
    PodBuilder::new(name).resource_claims(claims.iter().map(claim).collect()).build()
}

fn refused(pod: &str) -> Event {
    let refusal = BindRefusal { cause: BindRefusalCause::ApiServer, message: "no".into() };
    Event::PrepareRefused { pod: format!("uid-{pod}").as_str().into(), refusal }
}
