//! Random histories of everything behind devices: no device is given out twice, no change that would help a waiting Pod is
//! missed, and the quick form decides as the plain rules do.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{DevicePlace, RawNodeTerm, RawRequirement, SelectedNodes};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rules::{Chances, DeviceState, Preemption};

use super::*;
use crate::WatchedId;
use crate::evaluation::Evaluation;
use crate::placing::{Diagnosis, PreemptionResult};
use crate::queue::ParkKey;
use crate::rejection::NodesRejection;

const CLAIMS: u8 = 5;
const NODES: u8 = 3;
const SLICES: u8 = 4;
const SHAPES: u8 = 6;
const ODD_SHAPE: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    Slice { slice: u8, place: u8, a: u8, b: u8, shared: bool },
    Claim { claim: u8, shape: u8 },
    TakenElsewhere { claim: u8, slice: u8, device: u8, node: Option<u8> },
    Waiting { pod: u8, claims: [u8; 2], cpu_milli: i64 },
    Node(u8),
    Class(bool),
    Written,
    Refused(u8),
    Gone(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..SLICES, 0..6_u8, 0..3_u8, 0..3_u8, any::<bool>())
            .prop_map(|(slice, place, a, b, shared)| Step::Slice { slice, place, a, b, shared }),
        4 => (0..CLAIMS, 0..SHAPES).prop_map(|(claim, shape)| Step::Claim { claim, shape }),
        2 => (0..CLAIMS, 0..SLICES, 0..3_u8, proptest::option::of(0..NODES)).prop_map(
            |(claim, slice, device, node)| Step::TakenElsewhere { claim, slice, device, node }
        ),
        4 => (0..6_u8, [0..CLAIMS, 0..CLAIMS], prop_oneof![Just(10), Just(2000)])
            .prop_map(|(pod, claims, cpu_milli)| Step::Waiting { pod, claims, cpu_milli }),
        1 => (0..NODES).prop_map(Step::Node),
        1 => any::<bool>().prop_map(Step::Class),
        4 => Just(Step::Written),
        1 => (0..6_u8).prop_map(Step::Refused),
        3 => (0..4_u8, 0..6_u8).prop_map(|(kind, number)| Step::Gone(kind, number)),
    ]
}

fn spec(name: &str, shape: u8) -> ResourceClaim {
    let alternatives = |all: [(i64, &str); 2]| {
        let each = all.into_iter().zip(["first", "second"]);
        let each = each.map(|((count, expression), name)| SubRequest {
            name: name.into(),
            ..asking(count, expression)
        });
        claim_of(name, RequestAlternatives::FirstAvailable(each.collect()))
    };
    let some_memory = |expression| SubRequest {
        capacity: [(GIB.into(), "3".parse().unwrap())].into(),
        ..asking(1, expression)
    };
    match shape {
        0 => exactly(name, 1, IS_A),
        1 => exactly(name, 2, IS_B),
        2 => alternatives([(2, IS_A), (1, IS_B)]),
        3 => claim_of(name, RequestAlternatives::Exactly(some_memory(IS_A))),
        ODD_SHAPE => exactly(name, 1, ODD),
        _ => alternatives([(1, IS_B), (1, IS_A)]),
    }
}

fn place(place: u8) -> DevicePlace {
    match place {
        node @ 0..NODES => on_node(node),
        3 => DevicePlace::AllNodes,
        _ => {
            let zone = RawRequirement::new("zone", "In", &[if place == 4 { "z0" } else { "z1" }]);
            let term = RawNodeTerm { expressions: vec![zone], fields: Vec::new() };
            DevicePlace::Nodes(Arc::new(SelectedNodes::parse(vec![term])))
        }
    }
}

impl World {
    fn take_step(&mut self, step: &Step) {
        match *step {
            Step::Slice { slice, place: at, a, b, shared } => {
                let kinds: Vec<_> = std::iter::repeat_n(("a", shared), a.into())
                    .chain(std::iter::repeat_n(("b", false), b.into()))
                    .collect();
                self.slice(slice_of(&format!("s{slice}"), place(at), &kinds));
            }
            Step::Claim { claim, shape } => {
                let name = format!("c{claim}");
                let known = self.engine.observed.cluster.objects.resource_claims.get(&key(&name));
                // The spec of a claim never changes.
                if known.is_none() {
                    self.claim_seen(spec(&name, shape));
                }
            }
            Step::TakenElsewhere { claim, slice, device, node } => {
                self.take_elsewhere(claim, slice, device, node);
            }
            Step::Waiting { pod, claims, cpu_milli } => {
                let names = claims.map(|claim| format!("c{claim}"));
                let mut asks = asks(&format!("p{pod}"), &[&names[0], &names[1]]);
                let mut spec = (*asks.spec).clone();
                let mut scheduling = (*spec.scheduling).clone();
                scheduling.requests.asked.cpu_milli = cpu_milli;
                scheduling.requests.effective.cpu_milli = cpu_milli;
                spec.scheduling = Arc::new(scheduling);
                asks.spec = Arc::new(spec);
                self.see(asks);
            }
            Step::Node(node) => self.handle(node_seen(node)),
            Step::Class(true) => self.handle(class_seen()),
            Step::Class(false) => {
                self.handle(Event::gone(ClusterObjectId::DeviceClass(CLASS.into())));
            }
            Step::Written => self.write_all(),
            Step::Refused(pod) => {
                let uid = format!("uid-p{pod}").as_str().into();
                self.prepares.retain(|prepare| prepare.uid != uid);
                self.handle(refused(&format!("p{pod}")));
            }
            Step::Gone(kind, number) => self.handle(Event::Gone(gone(kind, number))),
        }
    }

    /// As another scheduler does it: never what is given out already.
    fn take_elsewhere(&mut self, claim: u8, slice: u8, device: u8, node: Option<u8>) {
        let cluster = &self.engine.observed.cluster;
        let name = format!("e{claim}");
        let pool = format!("s{slice}");
        let known = cluster
            .devices
            .pools
            .slice(&pool)
            .and_then(|it| it.devices.get(usize::from(device)).map(|it| it.name.clone()));
        let Some(device) = known else { return };
        let id =
            DeviceId { driver: DRIVER.into(), pool: pool.as_str().into(), device: device.clone() };
        if cluster.devices.taken.device(&id).is_some() {
            return;
        }
        let mut claim = allocated(exactly(&name, 1, IS_A), &pool, &device);
        let term = |node| RawNodeTerm {
            expressions: Vec::new(),
            fields: vec![RawRequirement::new("metadata.name", "In", &[&format!("n{node}")])],
        };
        if let (Some(node), Some(allocation)) = (node, claim.allocation.as_mut()) {
            let nodes = SelectedNodes::parse(vec![term(node)]);
            Arc::make_mut(allocation).nodes = Some(Arc::new(nodes));
        }
        self.claim_seen(claim);
    }

    fn counts_are_right(&self, after: &Step) {
        let devices: &DeviceState = &self.engine.observed.cluster.devices;
        let contested: Vec<_> = devices.taken.contested().map(|(id, _)| id.clone()).collect();
        assert!(contested.is_empty(), "{after:?}: given out twice: {contested:?}");
        let shares = devices.taken.devices().into_iter().filter(|(_, it)| it.is_shared());
        for (id, shared) in shares {
            assert!(shared.consumed(GIB) <= "8".parse().unwrap(), "{after:?}: {id}");
        }
    }
}

fn gone(kind: u8, number: u8) -> WatchedId {
    WatchedId::ClusterObject(match kind {
        0 => return WatchedId::Pod(format!("uid-p{number}").as_str().into()),
        1 => ClusterObjectId::ResourceClaim(key(&format!("c{number}"))),
        2 => ClusterObjectId::ResourceClaim(key(&format!("e{number}"))),
        _ => ClusterObjectId::ResourceSlice(format!("s{number}").into()),
    })
}

fn is_odd(world: &World, claim: &str) -> bool {
    let claims = &world.engine.observed.cluster.objects.resource_claims;
    claims.get(&key(claim)).is_some_and(|claim| claim.spec == spec("", ODD_SHAPE).spec)
}

/// What is known of each waiting Pod's chances is at least what it has.
fn nothing_is_missed(world: &World, after: &Step) {
    let engine = &world.engine;
    for class in engine.queues.parked.classes() {
        let Some(known) = engine.queues.parked.chances(class) else { continue };
        // A device for which an expression fails is not looked at while it is in use: that a device is taken may let a
        // Pod pass. Nobody is woken for it before the next sweep.
        if class.resource_claims.iter().filter_map(PodClaim::claim).any(|it| is_odd(world, it)) {
            continue;
        }
        let rules = engine.rules_of(&class.profile);
        let now = Chances::of(rules, &engine.observed.cluster, &engine.pod_to_place(class));
        assert!(!now.exceed(known), "{after:?}: {now:?} instead of {known:?} for {class:?}");
    }
}

fn the_quick_form_decides_alike(world: &mut World, counts: &mut [usize; 2], after: &Step) {
    for (first, second) in (0..CLAIMS).flat_map(|it| (it..CLAIMS).map(move |other| (it, other))) {
        let claims = [format!("c{first}"), format!("c{second}")];
        let pod = asks("asks", &[&claims[0], &claims[1]]);
        let key = ParkKey::of_pod(&pod);
        let Some(quick) = world.engine.best_node(&key) else { continue };
        counts[usize::from(quick.is_ok())] += 1;
        match (quick, world.engine.evaluate(&key)) {
            (Ok(node), Evaluation::Feasible(placement)) => {
                let best = &placement.best;
                assert!(best.contains(&node), "{after:?}: {claims:?} on {node}, not {best:?}");
            }
            (Err(why), Evaluation::Rejected { rejected, preemption, .. }) => {
                let Diagnosis { reasons, preemption: quick } = why;
                let message = match &quick {
                    PreemptionResult::NotEligible(why) => Some(why.to_string()),
                    PreemptionResult::NotHelpful(why) => Some(why.clone()),
                    PreemptionResult::NotTried | PreemptionResult::Possible(..) => None,
                };
                let quick_says = NodesRejection::of_counts(reasons, message);
                assert_eq!(quick_says, rejected, "{after:?}: {claims:?}");
                let is_possible = matches!(preemption, Preemption::Possible { .. });
                assert_eq!(matches!(quick, PreemptionResult::Possible(..)), is_possible);
            }
            (quick, _) => panic!("{after:?}: {claims:?} {quick:?}"),
        }
    }
}

fn live(steps: &[Step], counts: &mut [usize; 2]) -> World {
    let mut world = World::with_devices();
    for step in steps {
        world.take_step(step);
        for _ in 0..2 {
            world.counts_are_right(step);
            nothing_is_missed(&world, step);
            the_quick_form_decides_alike(&mut world, counts, step);
            world.pass(Duration::from_millis(300));
            world.decide();
        }
        world.counts_are_right(step);
    }
    world
}

#[test]
fn many_pods_with_devices_are_decided_by_the_quick_form() {
    let mut runner = TestRunner::deterministic();
    let mut counts = [0; 2];
    let mut bound = BTreeSet::new();
    for _ in 0..40 {
        let steps = prop::collection::vec(step(), 40..80).new_tree(&mut runner).unwrap().current();
        let world = live(&steps, &mut counts);
        let claims = world.engine.observed.cluster.objects.resource_claims.values();
        bound.extend(claims.filter(|it| !it.reserved_for.is_empty()).map(|it| it.spec.clone()));
    }
    let [rejected, placed] = counts;
    assert!(placed > 1000 && rejected > 1000, "{placed} placed, {rejected} rejected");
    assert_eq!(bound.len(), usize::from(SHAPES), "claims of every shape get their devices");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_device_is_given_out_twice_and_nobody_is_forgotten(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        live(&steps, &mut [0; 2]);
    }
}
