//! Random histories of everything behind volumes: no change that would help a waiting Pod is missed.

use std::sync::Arc;

use model::{
    Assignment, BindingMode, ClaimRef, CsiDriver, CsiNode, CsiStorageCapacity, LabelSelector,
    Labels, NodeSelector, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim,
    RawRequirement, StorageClass, VolumeAttachment, VolumeSource,
};
use proptest::prelude::*;
use rules::{Chances, ClusterObject, ClusterObjectId, Preemption};

use super::{LOCAL, MADE, World, bound, local, refused, unbound};
use crate::evaluation::Evaluation;
use crate::placing::{Diagnosis, PreemptionResult};
use crate::queue::ParkKey;
use crate::rejection::NodesRejection;
use crate::testkit::{NodeBuilder, PodBuilder, key};
use crate::{BindRefusalCause, Event, WatchedId};

const DRIVER: &str = "d.example";
const CLAIMS: u8 = 4;
const VOLUMES: u8 = 4;
const NODES: u8 = 3;

#[derive(Clone, Debug)]
enum Step {
    Claim { claim: u8, is_local: bool, volume: Option<u8> },
    Volume { volume: u8, node: Option<u8>, is_local: bool, claim: Option<u8>, handle: Option<u8> },
    Attachment { number: u8, node: u8, volume: u8 },
    CsiNode { node: u8, limit: u8 },
    Driver { publishes: bool },
    Capacity { number: u8, node: Option<u8>, gib: u8 },
    Node(u8),
    Class { topology: Option<u8> },
    Waiting { pod: u8, claims: [u8; 2], cpu_milli: i64 },
    Elsewhere { pod: u8, claim: u8, node: u8 },
    Refused(u8),
    Gone(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let some = |below: u8| proptest::option::of(0..below);
    prop_oneof![
        3 => (0..CLAIMS, any::<bool>(), some(VOLUMES))
            .prop_map(|(claim, is_local, volume)| Step::Claim { claim, is_local, volume }),
        4 => (0..VOLUMES, some(NODES), any::<bool>(), some(CLAIMS), some(3)).prop_map(
            |(volume, node, is_local, claim, handle)| {
                Step::Volume { volume, node, is_local, claim, handle }
            }
        ),
        2 => (0..3_u8, 0..NODES, 0..VOLUMES)
            .prop_map(|(number, node, volume)| Step::Attachment { number, node, volume }),
        2 => (0..NODES, 0..3_u8).prop_map(|(node, limit)| Step::CsiNode { node, limit }),
        1 => any::<bool>().prop_map(|publishes| Step::Driver { publishes }),
        2 => (0..3_u8, some(NODES), 0..3_u8)
            .prop_map(|(number, node, gib)| Step::Capacity { number, node, gib }),
        1 => (0..NODES).prop_map(Step::Node),
        1 => some(NODES).prop_map(|topology| Step::Class { topology }),
        4 => (0..6_u8, [0..CLAIMS, 0..CLAIMS], prop_oneof![Just(10), Just(4000)])
            .prop_map(|(pod, claims, cpu_milli)| Step::Waiting { pod, claims, cpu_milli }),
        2 => (0..3_u8, 0..CLAIMS, 0..NODES)
            .prop_map(|(pod, claim, node)| Step::Elsewhere { pod, claim, node }),
        1 => (0..6_u8).prop_map(Step::Refused),
        3 => (0..7_u8, 0..6_u8).prop_map(|(kind, number)| Step::Gone(kind, number)),
    ]
}

fn class(is_local: bool) -> &'static str {
    if is_local { LOCAL } else { MADE }
}

fn event(step: &Step) -> Event {
    match *step {
        Step::Claim { claim, is_local, volume } => {
            let name = format!("c{claim}");
            let claim = match volume {
                Some(volume) => bound(&name, class(is_local), &format!("v{volume}")),
                None => unbound(&name, class(is_local)),
            };
            let claim: Arc<PersistentVolumeClaim> = claim.into();
            Event::seen(ClusterObject::PersistentVolumeClaim(claim.key.clone(), claim))
        }
        Step::Volume { volume, node, is_local, claim, handle } => {
            let volume = Arc::new(persistent_volume(volume, node, is_local, claim, handle));
            Event::seen(ClusterObject::PersistentVolume(volume.name.clone(), volume))
        }
        Step::Attachment { number, node, volume } => {
            let name: Arc<str> = format!("a{number}").into();
            let attachment = VolumeAttachment {
                name: name.clone(),
                node: format!("n{node}").as_str().into(),
                attacher: DRIVER.into(),
                volume_name: Some(format!("v{volume}").into()),
            };
            Event::seen(ClusterObject::VolumeAttachment(name, attachment))
        }
        Step::CsiNode { node, limit } => {
            let name: Arc<str> = format!("n{node}").into();
            let drivers = [(DRIVER.into(), Some(i32::from(limit)))].into();
            let csi_node = CsiNode { name: name.clone(), drivers, migrated_plugins: [].into() };
            Event::seen(ClusterObject::CsiNode(name, csi_node))
        }
        Step::Driver { publishes } => {
            let driver = CsiDriver { name: DRIVER.into(), has_storage_capacity: publishes };
            Event::seen(ClusterObject::CsiDriver(DRIVER.into(), driver))
        }
        Step::Capacity { number, node, gib } => {
            let labels: Labels =
                node.into_iter().map(|node| ("host".into(), format!("n{node}").into())).collect();
            let capacity = CsiStorageCapacity {
                key: key(&format!("s{number}")),
                class: MADE.into(),
                node_topology: Some(LabelSelector::of_labels(&labels)),
                limit: Some(format!("{gib}Gi").parse().unwrap()),
                capacity: None,
            };
            Event::seen(ClusterObject::CsiStorageCapacity(capacity.key.clone(), capacity))
        }
        Step::Node(node) => node_seen(node),
        Step::Class { topology } => class_seen(topology),
        Step::Waiting { pod, claims, cpu_milli } => {
            let claims = claims.map(|claim| format!("c{claim}"));
            let claims = [claims[0].as_str(), claims[1].as_str()];
            let name = format!("p{pod}");
            Event::seen(PodBuilder::new(&name).claims(&claims).cpu_milli(cpu_milli).build())
        }
        Step::Elsewhere { pod, claim, node } => {
            let node = format!("n{node}").as_str().into();
            let pod = PodBuilder::new(&format!("e{pod}")).claims(&[&format!("c{claim}")]);
            let bound = Assignment::Bound { node, grant: None };
            Event::seen(pod.cpu_milli(500).assigned(bound).build())
        }
        Step::Refused(pod) => refused(&format!("p{pod}"), BindRefusalCause::ApiServer),
        Step::Gone(kind, number) => Event::Gone(gone(kind, number)),
    }
}

fn node_seen(node: u8) -> Event {
    let (name, zone) = (format!("n{node}"), format!("z{}", node % 2));
    let node = NodeBuilder::new(&name).label("host", &name);
    Event::seen(node.label("topology.kubernetes.io/zone", &zone).build())
}

fn class_seen(topology: Option<u8>) -> Event {
    let hosts = topology.map(|node| ("host", vec![format!("n{node}")]));
    let class = StorageClass {
        name: MADE.into(),
        provisioner: DRIVER.into(),
        binding_mode: Some(BindingMode::WaitForFirstConsumer),
        allowed_topologies: hosts.map(|it| StorageClass::topology_term([it])).into_iter().collect(),
    };
    Event::seen(ClusterObject::StorageClass(MADE.into(), class))
}

fn persistent_volume(
    volume: u8,
    node: Option<u8>,
    is_local: bool,
    claim: Option<u8>,
    handle: Option<u8>,
) -> PersistentVolume {
    let of = local(&format!("v{volume}"), &format!("n{}", node.unwrap_or_default()));
    let claim = claim.map(|claim| key(&format!("c{claim}")));
    // Those with an odd number name the Nodes that they are not for: no label is known by which to find theirs.
    let host = format!("n{}", node.unwrap_or_default());
    let elsewhere = NodeSelectorTerm::parse(&[RawRequirement::new("host", "NotIn", &[&host])], &[]);
    let elsewhere = Some(NodeSelector { terms: vec![elsewhere] });
    let affinity = if volume.is_multiple_of(2) { of.node_affinity.clone() } else { elsewhere };
    let zone = ("topology.kubernetes.io/zone".into(), "z1".into());
    PersistentVolume {
        class: class(is_local).into(),
        labels: (volume == 3).then_some(zone).into_iter().collect(),
        node_affinity: affinity.filter(|_| node.is_some()),
        claim_ref: claim.map(|key| ClaimRef { key, uid: None }),
        source: handle.map_or(VolumeSource::Other, |handle| VolumeSource::Csi {
            driver: DRIVER.into(),
            handle: format!("h{handle}").into(),
        }),
        ..of
    }
}

fn gone(kind: u8, number: u8) -> WatchedId {
    WatchedId::ClusterObject(match kind {
        0 => return WatchedId::Pod(format!("uid-p{number}").as_str().into()),
        1 => return WatchedId::Pod(format!("uid-e{number}").as_str().into()),
        2 => ClusterObjectId::PersistentVolumeClaim(key(&format!("c{number}"))),
        3 => ClusterObjectId::PersistentVolume(format!("v{number}").into()),
        4 => ClusterObjectId::VolumeAttachment(format!("a{number}").into()),
        5 => ClusterObjectId::CsiNode(format!("n{number}").into()),
        _ => ClusterObjectId::CsiStorageCapacity(key(&format!("s{number}"))),
    })
}

/// What is known of each waiting Pod's chances is at least what it has. Returns whether the history can go on.
fn nothing_is_missed(world: &World, after: &Step) -> bool {
    let engine = &world.engine;
    for class in engine.queues.parked.classes() {
        let Some(known) = engine.queues.parked.chances(class) else { continue };
        let rules = engine.rules_of(&class.profile);
        let now = Chances::of(rules, &engine.observed.cluster, &engine.pod_to_place(class));
        // Two PersistentVolumes of one handle, or two claims of one PersistentVolume: what a Pod brings to a Node may
        // then be what another lacks there. Nobody is woken for it before the next sweep.
        if matches!(after, Step::Elsewhere { .. }) && now.exceed(known) {
            return false;
        }
        assert!(!now.exceed(known), "{after:?}: {now:?} instead of {known:?} for {class:?}");
    }
    true
}

/// Where the quick form sends a Pod, the plain rules would, too.
fn the_quick_form_decides_alike(world: &mut World, counts: &mut [usize; 2], after: &Step) {
    for (first, second) in (0..CLAIMS).flat_map(|it| (it..CLAIMS).map(move |other| (it, other))) {
        let claims = [format!("c{first}"), format!("c{second}")];
        let pod = PodBuilder::new("asks").claims(&[&claims[0], &claims[1]]).build();
        let key = ParkKey::of_pod(&pod);
        let quick = world.engine.best_node(&key);
        if let Some(quick_says) = world.engine.rejected_as_whole(&key) {
            let Evaluation::Rejected { rejected, .. } = world.engine.evaluate(&key) else {
                panic!("{after:?}: {claims:?} are not rejected")
            };
            assert_eq!(quick_says, rejected, "{after:?}: {claims:?}");
        }
        let Some(quick) = quick else { continue };
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

#[test]
fn many_pods_with_claims_are_decided_by_the_quick_form() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut counts = [0; 2];
    for _ in 0..60 {
        let steps = prop::collection::vec(step(), 40..80).new_tree(&mut runner).unwrap().current();
        let mut world = World::with_classes();
        for step in &steps {
            world.handle(event(step));
            the_quick_form_decides_alike(&mut world, &mut counts, step);
            world.pass(std::time::Duration::from_millis(300));
            world.decide();
            the_quick_form_decides_alike(&mut world, &mut counts, step);
        }
    }
    let [rejected, placed] = counts;
    assert!(placed > 2000 && rejected > 200, "{placed} placed, {rejected} rejected");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_change_that_helps_a_waiting_pod_is_missed(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::with_classes();
        for step in &steps {
            world.handle(event(step));
            if !nothing_is_missed(&world, step) {
                return Ok(());
            }
            world.pass(std::time::Duration::from_millis(300));
            world.decide();
            if !nothing_is_missed(&world, step) {
                return Ok(());
            }
        }
    }

    #[test]
    fn the_quick_form_sends_no_pod_with_claims_where_the_rules_would_not(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::with_classes();
        for step in &steps {
            world.handle(event(step));
            the_quick_form_decides_alike(&mut world, &mut [0; 2], step);
            world.pass(std::time::Duration::from_millis(300));
            world.decide();
            the_quick_form_decides_alike(&mut world, &mut [0; 2], step);
        }
    }
}
