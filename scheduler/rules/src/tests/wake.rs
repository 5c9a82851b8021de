//! When a rejected Pod is worth another attempt.

use model::Effect;

use crate::testkit::{PodBuilder, cluster, node, pod};
use crate::{Cluster, Rules, rejection_may_have_changed};

fn wakes(before: &Cluster, after: &Cluster, pod: PodBuilder) -> bool {
    rejection_may_have_changed(&Rules::default(), before, after, &pod.build())
}

fn full() -> Cluster {
    cluster([node("n").cpu(1000)], [pod("other").on("n").asks(800, 0)])
}

#[test]
fn enough_room_wakes_and_less_does_not() {
    let asks = || pod("p").asks(500, 0);
    let freed = |held| cluster([node("n").cpu(1000)], [pod("other").on("n").asks(held, 0)]);
    assert!(!wakes(&full(), &full(), asks()));
    assert!(!wakes(&full(), &freed(501), asks()));
    assert!(wakes(&full(), &freed(500), asks()));
    assert!(wakes(
        &full(),
        &cluster([node("n").cpu(1300)], [pod("other").on("n").asks(800, 0)]),
        asks()
    ));
}

#[test]
fn what_does_not_bear_on_the_rejection_does_not_wake() {
    let asks = || pod("p").asks(500, 0);
    let mut relabelled = full();
    let labels = &mut relabelled.nodes.get_mut(&"n".into()).unwrap().node.labels;
    labels.insert("disk".into(), "ssd".into());
    assert!(!wakes(&full(), &relabelled, asks()));
    let another = cluster(
        [node("n").cpu(1000), node("new").taint("t", Effect::NoSchedule)],
        [pod("other").on("n").asks(800, 0)],
    );
    assert!(!wakes(&full(), &another, asks()));
    assert!(wakes(&full(), &another, asks().tolerates("t", None)));
}

#[test]
fn a_chance_to_preempt_wakes() {
    let asks = || pod("p").priority(5).asks(500, 0);
    let held_by = |priority| {
        cluster([node("n").cpu(1000)], [pod("other").on("n").priority(priority).asks(800, 0)])
    };
    assert!(wakes(&held_by(5), &held_by(4), asks()));
    assert!(!wakes(&held_by(4), &held_by(3), asks()), "there was one before");
    assert!(!wakes(&held_by(5), &held_by(6), asks()));
}

#[test]
fn the_first_node_wakes_pods_that_fit() {
    assert!(wakes(&cluster([], []), &cluster([node("n")], []), pod("p")));
    assert!(!wakes(&cluster([], []), &cluster([node("n").cordoned()], []), pod("p")));
}
