//! What a kubelet says against our decisions.

use std::time::Duration;

use model::{Assignment, PodUid};

use super::World;
use crate::Event;
use crate::testkit::{NodeBuilder, PodBuilder};

/// Binds one Pod, and has its kubelet turn it away.
fn turn_away(world: &mut World, name: &str) {
    world.see(PodBuilder::new(name).build());
    assert_eq!(world.bind_all(), [name]);
    let pod = format!("uid-{name}").as_str().into();
    world.handle(Event::KubeletRejected { pod, why: "OutOfcpu".into() });
    world.see(PodBuilder::new(name).assigned(Assignment::Finished).build());
}

#[test]
fn nothing_is_put_where_a_kubelet_has_just_rejected_a_pod_and_then_again() {
    let mut world = World::with_nodes(1);
    turn_away(&mut world, "a");
    world.see(PodBuilder::new("b").build());
    assert!(world.bind_all().is_empty());
    let told = world.held_reports();
    let expected = "0/1 nodes are available: 1 Too many pods. no new claims to deallocate, preemption: 0/1 nodes \
                    are available: 1 No preemption victims found for incoming pod. \
                    Closed for a short while: n0: the kubelet has rejected a Pod (OutOfcpu).";
    assert_eq!(told[0].1, expected);
    assert_eq!(world.message("b"), expected);
    // Whatever else becomes of the Node meanwhile.
    world.pass(Duration::from_secs(9));
    world.handle(Event::seen(NodeBuilder::new("n0").label("a", "b").build()));
    assert!(world.bind_all().is_empty());
    assert_eq!(world.engine.poll_timeout(), Some(world.now + Duration::from_secs(1)));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.bind_all(), ["b"], "by time alone");
    assert_eq!(world.engine.stats().woken_by_sweep, 0);
}

#[test]
fn pods_go_elsewhere_meanwhile() {
    let mut world = World::with_nodes(2);
    turn_away(&mut world, "a");
    for name in ["b", "c", "d"] {
        world.see(PodBuilder::new(name).build());
    }
    let nodes: Vec<String> = world.decide().iter().map(|it| it.node.to_string()).collect();
    assert_eq!(nodes.len(), 3);
    assert!(nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
}

#[test]
fn a_pod_that_was_not_decided_here_closes_nothing() {
    let mut world = World::with_nodes(1);
    let on_it = Assignment::Bound { node: "n0".into(), grant: None };
    world.see(PodBuilder::new("a").assigned(on_it).build());
    world.handle(Event::KubeletRejected { pod: "uid-a".into(), why: "OutOfcpu".into() });
    world.handle(Event::KubeletRejected { pod: "unknown".into(), why: "OutOfcpu".into() });
    world.see(PodBuilder::new("b").build());
    assert_eq!(world.bind_all(), ["b"]);
}

#[test]
fn a_node_stays_closed_while_anything_else_keeps_it_closed() {
    let mut world = World::with_nodes(1);
    turn_away(&mut world, "a");
    world.handle(Event::PodUnreadable { pod: "odd".into(), node: "n0".into() });
    world.see(PodBuilder::new("b").build());
    world.pass(Duration::from_secs(10));
    assert!(world.bind_all().is_empty());
    world.handle(Event::gone(PodUid::from("odd")));
    world.pass(Duration::from_secs(2));
    assert_eq!(world.bind_all(), ["b"]);
}
