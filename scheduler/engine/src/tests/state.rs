//! A decision depends on the state alone: not on the order in which it was reached, and not on what
//! was tried and taken back.

use model::{Assignment, Effect, HostPort, LabelSelector, ObjectKey, PodAffinityTerm, Taint};
use proptest::prelude::*;

use super::World;
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder};
use crate::{BindRefusal, BindRefusalCause, ClusterObject, Event, Explanation, Work};

const EVERYTHING: Work = Work { attempts_max: 1, nodes_max: usize::MAX };

/// One piece of a cluster.
fn piece() -> impl Strategy<Value = (u8, i64, u8, bool)> {
    (0..4_u8, 1..20_i64, 0..3_u8, any::<bool>())
}

fn events(pieces: &[(u8, i64, u8, bool)]) -> Vec<Event> {
    let mut events = vec![
        Event::seen(CorridorBuilder::new("c1", 100).build()),
        Event::seen(ClusterObject::Service(
            ObjectKey::new("team-a", "web"),
            LabelSelector::of_labels(&[("app".into(), "a0".into())].into()),
        )),
    ];
    for number in 0..4 {
        let name = format!("n{number}");
        let node = NodeBuilder::new(&name).label("zone", &format!("z{}", number % 2));
        let node = if number == 3 {
            let (key, value) = ("k".into(), "".into());
            node.taint(Taint { key, value, effect: Effect::PreferNoSchedule })
        } else {
            node
        };
        events.push(Event::seen(node.build()));
    }
    for (index, (node, cpu, app, avoids)) in pieces.iter().enumerate() {
        let node = format!("n{node}").as_str().into();
        let pod = PodBuilder::new(&format!("p{index}")).cpu_milli(cpu * 100);
        let pod = pod.label("app", &format!("a{app}")).scheduling(|scheduling| {
            if *avoids {
                scheduling.pod_affinity.anti_required.push(term(*app));
            }
        });
        let pod = pod.assigned(Assignment::Bound { node, grant: None });
        events.push(Event::seen(pod.build()));
    }
    events
}

fn term(app: u8) -> PodAffinityTerm {
    let selector = LabelSelector::of_labels(&[("app".into(), format!("a{app}").into())].into());
    let own = "team-a".into();
    PodAffinityTerm::new(&own, "zone", selector, std::collections::BTreeSet::new(), None)
}

fn ask(world: &World) -> Vec<Explanation> {
    let asks = [
        PodBuilder::new("plain").label("app", "a0"),
        PodBuilder::new("urgent").cpu_milli(3500).priority(9),
        PodBuilder::new("away")
            .scheduling(|scheduling| scheduling.pod_affinity.anti_required.push(term(1))),
        PodBuilder::new("near")
            .scheduling(|scheduling| scheduling.pod_affinity.required.push(term(2))),
        PodBuilder::new("port")
            .scheduling(|scheduling| scheduling.host_ports.extend(HostPort::new("", "", 80))),
        PodBuilder::new("light").needs("c1", Some(60)),
    ];
    let what_if = |pod: PodBuilder| world.engine.what_if(&pod.build().spec, EVERYTHING);
    asks.map(what_if).into()
}

fn world(events: Vec<Event>) -> World {
    let mut world = World::with_nodes(0);
    for event in events {
        world.handle(event);
    }
    world
}

proptest! {
    #[test]
    fn the_order_of_arrival_does_not_matter(
        pieces in prop::collection::vec(piece(), 0..16),
        seed in any::<u64>(),
    ) {
        let straight = events(&pieces);
        let mut turned = straight.clone();
        // Any order will do: a fixed shuffle by the seed.
        turned.sort_by_cached_key(|event| {
            let text = format!("{event:?}");
            text.bytes().fold(seed, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
        });
        let (straight, turned) = (world(straight), world(turned));
        prop_assert_eq!(ask(&straight), ask(&turned));
        prop_assert_eq!(&straight.engine.observed.cluster, &turned.engine.observed.cluster);
    }

    #[test]
    fn what_was_reserved_and_refused_leaves_no_trace(
        pieces in prop::collection::vec(piece(), 0..16),
    ) {
        let mut world = world(events(&pieces));
        let before = (ask(&world), world.engine.observed.cluster.clone());
        let pods = [
            PodBuilder::new("first").cpu_milli(300).needs("c1", Some(70)),
            PodBuilder::new("second").cpu_milli(200).needs("c1", None),
            PodBuilder::new("third").cpu_milli(100),
        ];
        for pod in pods {
            world.see(pod.build());
        }
        for bind in world.decide() {
            let refusal = BindRefusal { cause: BindRefusalCause::Conflict, message: "conflict".to_owned() };
            world.handle(Event::BindRefused { pod: bind.uid, refusal });
        }
        for name in ["first", "second", "third"] {
            world.end(name);
        }
        prop_assert_eq!(before, (ask(&world), world.engine.observed.cluster.clone()));
        prop_assert!(world.engine.ledger.is_empty());
    }
}
