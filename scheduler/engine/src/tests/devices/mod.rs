//! Pods with ResourceClaims: what is written into them, what is awaited, and that no device is given out twice.

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

#[test]
fn a_claim_is_protected_then_gets_its_devices_and_then_its_pod_is_bound() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(1), &[("a", false), ("b", false)]));
    world.claim_seen(exactly("c", 1, IS_B));
    world.see(asks("p", &["c"]));
    assert!(world.decide().is_empty());
    let writes = &world.prepares[0].writes;
    let [PrepareWrite::ProtectClaim { .. }, PrepareWrite::ReserveClaim { allocation, .. }] =
        &writes[..]
    else {
        panic!("{writes:?}")
    };
    assert_eq!(&*allocation.as_ref().unwrap().devices[0].id.device, "b1");
    world.write_all();
    assert_eq!(world.decide()[0].node, "n1".into());
}

#[test]
fn two_pods_do_not_get_one_device() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(1), &[("a", false)]));
    for (pod, claim) in [("p", "c"), ("q", "d")] {
        world.claim_seen(exactly(claim, 1, IS_A));
        world.see(asks(pod, &[claim]));
    }
    world.decide();
    assert_eq!(world.prepares.len(), 1, "what is written soon is taken already");
    assert!(world.message("q").contains("cannot allocate all claims"));
    world.prepares.clear();
    world.handle(refused("p"));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(world.prepares.len(), 1, "what one gives back is there for the others");
}

#[test]
fn pods_that_share_a_claim_follow_the_first_to_its_node() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(2), &[("a", false)]));
    world.claim_seen(exactly("c", 1, IS_A));
    for pod in ["p", "q"] {
        world.see(asks(pod, &["c"]));
    }
    world.decide();
    assert_eq!(world.prepares.len(), 1);
    let message = world.message("q");
    assert!(message.contains("resource claim c is in the process of being allocated"), "{message}");
    world.write_all();
    world.pass(Duration::from_secs(2));
    world.decide();
    world.write_all();
    world.decide();
    let claim = world.claim_named("c");
    assert_eq!(claim.reserved_for.len(), 2, "{claim:?}");
    assert_eq!(claim.allocation.unwrap().devices.len(), 1);
}

#[test]
fn a_claim_named_twice_is_taken_once() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(0), &[("a", false)]));
    world.claim_seen(exactly("c", 1, IS_A));
    world.see(asks("p", &["c", "c"]));
    world.decide();
    assert_eq!(world.prepares[0].writes.len(), 2);
    world.write_all();
    assert_eq!(world.decide().len(), 1);
}

#[test]
fn a_device_that_is_free_again_wakes_who_waits_also_if_its_claim_is_deleted() {
    for is_deleted in [false, true] {
        let mut world = World::with_devices();
        world.slice(slice_of("s", on_node(0), &[("a", false)]));
        let held = allocated(exactly("held", 1, IS_A), "s", "a0");
        world.claim_seen(held);
        world.claim_seen(exactly("c", 1, IS_A));
        world.see(asks("p", &["c"]));
        world.decide();
        assert!(world.prepares.is_empty());
        if is_deleted {
            world.handle(Event::gone(ClusterObjectId::ResourceClaim(key("held"))));
        } else {
            world.claim_seen(exactly("held", 1, IS_A));
        }
        world.pass(Duration::from_secs(2));
        world.decide();
        assert_eq!(world.prepares.len(), 1, "deleted: {is_deleted}");
    }
}

#[test]
fn a_pod_waits_for_the_conditions_of_its_device_and_ends_with_a_failure() {
    for is_failure in [false, true] {
        let mut world = World::with_devices();
        let mut slice = slice_of("s", on_node(0), &[("a", false)]);
        slice.devices[0].binding_conditions = vec!["attached".into()];
        slice.devices[0].binding_failure_conditions = vec!["broken".into()];
        world.slice(slice);
        world.claim_seen(exactly("c", 1, IS_A));
        world.see(asks("p", &["c"]));
        world.decide();
        world.write_all();
        assert!(world.decide().is_empty());
        assert_eq!(world.device_stage("p"), "waiting for claims");
        let mut claim = world.claim_named("c");
        let device = claim.allocation.as_ref().unwrap().devices[0].id.clone();
        let condition = if is_failure { "broken" } else { "attached" };
        claim.true_conditions.insert(device, [condition.into()].into());
        world.claim_seen(claim);
        assert_eq!(world.decide().len(), usize::from(!is_failure));
    }
}

#[test]
fn conditions_that_never_come_end_the_attempt() {
    let mut world = World::with_devices();
    let mut slice = slice_of("s", on_node(0), &[("a", false)]);
    slice.devices[0].binding_conditions = vec!["attached".into()];
    world.slice(slice);
    world.claim_seen(exactly("c", 1, IS_A));
    world.see(asks("p", &["c"]));
    world.decide();
    world.write_all();
    world.pass(Duration::from_secs(601));
    assert!(world.decide().is_empty());
    assert!(world.message("p").contains("device binding timeout"), "{}", world.message("p"));
}

#[test]
fn a_claim_with_as_many_users_as_it_may_have_takes_no_more() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(0), &[("a", false)]));
    let user = |number: usize| ClaimUser {
        is_pod: true,
        name: number.to_string().into(),
        uid: number.to_string().into(),
    };
    let claim = allocated(exactly("c", 1, IS_A), "s", "a0");
    let users = (0..ResourceClaim::USERS_MAX).map(user).collect();
    world.claim_seen(ResourceClaim { reserved_for: users, ..claim.clone() });
    world.see(asks("p", &["c"]));
    world.decide();
    let message = world.message("p");
    assert!(message.contains("is reserved for 256 users, as many as it may have"), "{message}");
    world.claim_seen(claim);
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(world.prepares.len(), 1, "one of them has ended");
}

#[test]
fn a_new_leader_goes_on_from_what_its_predecessor_has_written() {
    let claims = [("p", "c"), ("q", "d")];
    let known = |world: &mut World, written: Option<ResourceClaim>| {
        world.slice(slice_of("s", on_node(0), &[("a", false)]));
        for (pod, claim) in claims {
            world.claim_seen(exactly(claim, 1, IS_A));
            world.see(asks(pod, &[claim]));
        }
        if let Some(written) = written {
            world.claim_seen(written);
        }
    };
    let mut predecessor = World::with_devices();
    known(&mut predecessor, None);
    predecessor.decide();
    let [prepare] = &predecessor.prepares.clone()[..] else { panic!("one Pod gets the device") };
    for write in &prepare.writes {
        predecessor.write(prepare, write);
    }
    let claim = &claims.iter().find(|(pod, _)| *pod == &*prepare.pod.name).unwrap().1;
    let mut leader = World::with_devices();
    known(&mut leader, Some(predecessor.claim_named(claim)));
    let bound = leader.decide();
    assert_eq!(bound.iter().map(|it| &it.uid).collect::<Vec<_>>(), [&prepare.uid]);
    assert!(leader.prepares.is_empty(), "nothing is written again");
}

#[test]
fn devices_of_a_pod_that_is_gone_stay_taken_until_its_write_has_an_outcome() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(0), &[("a", false)]));
    for (pod, claim) in [("p", "c"), ("q", "d")] {
        world.claim_seen(exactly(claim, 1, IS_A));
        world.see(asks(pod, &[claim]));
    }
    world.decide();
    let sent = world.prepares.remove(0);
    let other = if *sent.pod.name == *"p" { "q" } else { "p" };
    world.handle(Event::gone(sent.uid.clone()));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert!(world.prepares.is_empty(), "the write may still be carried out");
    world.handle(refused(&sent.pod.name));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(&*world.prepares[0].pod.name, other);
}

#[test]
fn a_claim_that_cannot_be_used_gives_its_devices_back_and_gets_others() {
    for is_used in [false, true] {
        let mut world = World::with_devices();
        world.slice(slice_of("s", on_node(0), &[("a", false)]));
        world.slice(slice_of("t", on_node(1), &[("a", false)]));
        let mut claim = allocated(exactly("c", 1, IS_A), "s", "a0");
        let only = RawRequirement::new("metadata.name", "In", &["n0"]);
        let term = RawNodeTerm { expressions: Vec::new(), fields: vec![only] };
        let nodes = Some(Arc::new(SelectedNodes::parse(vec![term])));
        Arc::make_mut(claim.allocation.as_mut().unwrap()).nodes = nodes;
        if is_used {
            let (name, uid) = ("other".into(), "uid-other".into());
            claim.reserved_for.push(ClaimUser { is_pod: true, name, uid });
        }
        world.claim_seen(claim);
        // The Node of the devices has no room.
        let full = Assignment::Bound { node: "n0".into(), grant: None };
        world.see(PodBuilder::new("full").cpu_milli(4000).assigned(full).build());
        world.see(asks("p", &["c"]));
        world.decide();
        if is_used {
            assert!(world.prepares.is_empty());
            assert!(world.message("p").contains("resourceclaim not available on the node"));
            continue;
        }
        let writes = &world.prepares[0].writes;
        assert!(matches!(writes[..], [PrepareWrite::DeallocateClaim { .. }]), "{writes:?}");
        world.write_all();
        world.decide();
        world.write_all();
        assert_eq!(world.decide()[0].node, "n1".into());
    }
}

#[test]
fn a_claim_that_is_not_given_back_is_tried_again_later() {
    let mut world = World::with_devices();
    let mut slice = slice_of("s", on_node(0), &[("a", false)]);
    slice.devices[0].binding_failure_conditions = vec!["broken".into()];
    world.slice(slice);
    world.slice(slice_of("t", on_node(1), &[("a", false)]));
    let mut claim = allocated(exactly("c", 1, IS_A), "s", "a0");
    let device = &mut Arc::make_mut(claim.allocation.as_mut().unwrap()).devices[0];
    device.binding_failure_conditions = vec!["broken".into()];
    let id = device.id.clone();
    claim.true_conditions.insert(id, ["broken".into()].into());
    world.claim_seen(claim);
    world.see(asks("p", &["c"]));
    world.decide();
    assert_eq!(std::mem::take(&mut world.prepares).len(), 1);
    world.handle(refused("p"));
    assert!(world.prepares.is_empty() && world.decide().is_empty());
    world.pass(Duration::from_secs(2));
    world.decide();
    world.write_all();
    world.decide();
    world.write_all();
    assert_eq!(world.decide()[0].node, "n1".into());
}
