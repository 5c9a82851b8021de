//! NodeResourcesFit as a filter.

use crate::testkit::{cluster, fits, node, pod, reasons};
use crate::{Reason, Rules, filter};

fn insufficient(resource: &str, exceeds_node: bool) -> Reason {
    Reason::Insufficient { resource: resource.into(), exceeds_node }
}

#[test]
fn what_is_held_and_what_is_asked_must_fit_together() {
    let cluster = cluster([node("n").cpu(1000)], [pod("other").on("n").asks(600, 0)]);
    assert!(fits(&cluster, &pod("p").asks(400, 0).build(), "n"));
    assert_eq!(
        reasons(&cluster, &pod("p").asks(401, 0).build(), "n"),
        [insufficient("cpu", false)]
    );
    let huge = reasons(&cluster, &pod("p").asks(1001, 0).build(), "n");
    assert_eq!(huge, [insufficient("cpu", true)]);
    assert!(huge[0].is_unresolvable(), "no preemption makes the node larger");
}

#[test]
fn what_is_not_asked_is_not_checked_but_the_number_of_pods_is() {
    let cluster = cluster([node("n").cpu(100).pods_max(2)], [pod("greedy").on("n").asks(9000, 0)]);
    assert!(fits(&cluster, &pod("p").asks(0, 1).build(), "n"), "the node is over its CPU");
    let full = crate::testkit::cluster(
        [node("n").pods_max(1)],
        [pod("other").on("n"), pod("elsewhere").on("m")],
    );
    assert_eq!(reasons(&full, &pod("p").build(), "n"), [Reason::TOO_MANY_PODS]);
    assert!(!Reason::TOO_MANY_PODS.is_unresolvable());
}

#[test]
fn every_resource_that_lacks_is_named() {
    let cluster = cluster([node("n").cpu(100).memory(100).scalar("example.com/gpu", 1)], []);
    let asks = pod("p").asks(200, 200).asks_scalar("example.com/gpu", 2);
    let asks = asks.asks_scalar("hugepages-2Mi", 1).build();
    let texts: Vec<String> =
        reasons(&cluster, &asks, "n").iter().map(ToString::to_string).collect();
    let expected = [
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient example.com/gpu",
        "Insufficient hugepages-2Mi",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn extended_resources_can_be_ignored_by_name_and_by_group() {
    let cluster = cluster([node("n")], []);
    let node = &cluster.nodes[&"n".into()];
    let gpu = pod("p").asks_scalar("example.com/gpu", 1).build();
    let pages = pod("p").asks_scalar("hugepages-2Mi", 1).build();
    let by_name = Rules {
        ignored_resources: ["example.com/gpu".into(), "hugepages-2Mi".into()].into(),
        ..Rules::default()
    };
    let by_group =
        Rules { ignored_resource_groups: ["example.com".into()].into(), ..Rules::default() };
    assert_eq!(filter(&by_name, &cluster, &gpu, node), []);
    assert_eq!(filter(&by_group, &cluster, &gpu, node), []);
    assert_eq!(filter(&by_name, &cluster, &pages, node).len(), 1, "only extended resources");
    assert_eq!(filter(&Rules::default(), &cluster, &gpu, node).len(), 1);
}

#[test]
fn pods_of_a_node_that_is_gone_count_nowhere() {
    let cluster = cluster([node("n").cpu(1000)], [pod("ghost").on("gone").asks(1000, 0)]);
    assert!(fits(&cluster, &pod("p").asks(1000, 0).build(), "n"));
}

#[test]
fn nominated_pods_hold_their_room_against_their_equals_and_below() {
    let cluster =
        cluster([node("n").cpu(1000)], [pod("nominated").nominated("n").priority(5).asks(800, 0)]);
    let asks = |priority| pod("p").priority(priority).asks(500, 0).build();
    assert!(!fits(&cluster, &asks(4), "n"));
    assert!(!fits(&cluster, &asks(5), "n"));
    assert!(
        fits(&cluster, &asks(6), "n"),
        "a higher priority takes what lower ones are nominated for"
    );
    let itself = &cluster.pods()[&model::PodUid::new("team-a/nominated")];
    assert!(fits(&cluster, itself, "n"), "nobody stands in their own way");
}
