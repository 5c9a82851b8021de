//! What a change costs beside many waiting Pods whose claims differ.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures, and asserts no time"
)]

use std::sync::Arc;
use std::time::Instant;

use model::{
    Assignment, CsiNode, CsiStorageCapacity, LabelSelector, PersistentVolume, VolumeAttachment,
};
use rules::ClusterObject;

use super::{LOCAL, MADE, World, local, taken, unbound};
use crate::Event;
use crate::testkit::{NodeBuilder, PodBuilder, key};

const NODES: usize = 1000;
const REPEATS: u32 = 10;

/// Half of the Pods wait for a volume of a class that makes none, the others for one that is bound without them.
fn waiting(pods: usize) -> World {
    let mut world = World::with_classes();
    for number in 0..NODES {
        let name = format!("node{number}");
        world.handle(Event::seen(NodeBuilder::new(&name).label("host", &name).build()));
    }
    for number in 0..pods {
        let name = format!("c{number}");
        world.claim(unbound(&name, if number % 2 == 0 { LOCAL } else { "" }));
        world.see(PodBuilder::new(&format!("p{number}")).claims(&[&name]).build());
        world.decide();
    }
    assert_eq!(world.engine.stats().parked, pods);
    world
}

fn changes(number: u32) -> [(&'static str, Event); 6] {
    let node = format!("node{number}");
    let volume = |volume: PersistentVolume| {
        ClusterObject::PersistentVolume(volume.name.clone(), Arc::new(volume))
    };
    let capacity = CsiStorageCapacity {
        key: key(&node),
        class: MADE.into(),
        node_topology: Some(LabelSelector::EVERYTHING),
        limit: Some("1Gi".parse().unwrap()),
        capacity: None,
    };
    let attachment = VolumeAttachment {
        name: node.as_str().into(),
        node: node.as_str().into(),
        attacher: "d.example".into(),
        volume_name: None,
    };
    let csi_node = CsiNode {
        name: node.as_str().into(),
        drivers: [("d.example".into(), Some(9))].into(),
        migrated_plugins: [].into(),
    };
    let other = PodBuilder::new(&format!("other{number}")).cpu_milli(1);
    let bound = Assignment::Bound { node: node.as_str().into(), grant: None };
    [
        ("volume of a claim", Event::seen(volume(taken(local(&node, &node), "other")))),
        ("free volume elsewhere", {
            let name = format!("free{number}");
            Event::seen(volume(PersistentVolume { class: MADE.into(), ..local(&name, &node) }))
        }),
        (
            "capacity",
            Event::seen(ClusterObject::CsiStorageCapacity(capacity.key.clone(), capacity)),
        ),
        (
            "attachment",
            Event::seen(ClusterObject::VolumeAttachment(node.as_str().into(), attachment)),
        ),
        ("CSINode", Event::seen(ClusterObject::CsiNode(node.as_str().into(), csi_node))),
        ("Pod", Event::seen(other.assigned(bound).build())),
    ]
}

#[test]
#[ignore = "measures; for release builds"]
fn what_a_change_costs_beside_waiting_pods_with_claims() {
    for pods in [2000, 8000] {
        let mut world = waiting(pods);
        let mut spent = [("", 0); 6];
        for number in 0..REPEATS {
            for (sum, (what, event)) in spent.iter_mut().zip(changes(number)) {
                let began = Instant::now();
                world.handle(event);
                *sum = (what, sum.1 + began.elapsed().as_micros());
            }
        }
        for (what, micros) in spent {
            println!("{pods} waiting, {what}: {} µs", micros / u128::from(REPEATS));
        }
        assert_eq!(world.engine.stats().parked, pods, "none of it helps any of them");
    }
}
