//! PodTopologySpread as a score.

use model::{ClusterPod, NodeInclusionPolicy, ObjectKey, Owner, OwnerKind};

use crate::testkit::{cluster, hard, invalid, labels, node, placed, pod, selector, soft};
use crate::{Cluster, Decision, DefaultSpread, Plugin, Rules, decide};

/// Raw and normalised scores on all Nodes, in the order of their names.
fn spread(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Vec<(i64, i64)> {
    let placement = placed(rules, cluster, pod);
    assert_eq!(placement.scores.len(), cluster.nodes.len(), "all Nodes are feasible here");
    let plugins = placement.scores.values().flat_map(|score| &score.plugins);
    let of_spread = plugins.filter(|score| score.plugin == Plugin::PodTopologySpread);
    of_spread.map(|score| (score.raw, score.normalised)).collect()
}

fn web(constraint: model::TopologySpreadConstraint) -> ClusterPod {
    pod("p").labels("app=web").spread(constraint).build()
}

fn two_zones() -> Cluster {
    cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b")],
        [
            pod("1").on("a").labels("app=web"),
            pod("2").on("a").labels("app=web"),
            pod("3").on("b").labels("app=web"),
        ],
    )
}

#[test]
fn emptier_places_score_higher() {
    // ln(2 + 2) = 1.386: a 2.77 → 3, b 1.39 → 1; then 100 × (3 + 1 − s) / 3.
    let scores = spread(&Rules::default(), &two_zones(), &web(soft("zone", 1, "app=web")));
    assert_eq!(scores, [(3, 33), (1, 100)]);
}

#[test]
fn a_larger_skew_waters_the_difference_down() {
    // 2.77 + 9 → 12, 1.39 + 9 → 10: 100 × 10 / 12 = 83.
    let scores = spread(&Rules::default(), &two_zones(), &web(soft("zone", 10, "app=web")));
    assert_eq!(scores, [(12, 83), (10, 100)]);
}

#[test]
fn nodes_without_the_key_do_not_compete() {
    let nodes = [node("a").labels("zone=a"), node("bare").unlabelled()];
    let cluster = cluster(nodes, [pod("1").on("bare").labels("app=web")]);
    let scores = spread(&Rules::default(), &cluster, &web(soft("zone", 1, "app=web")));
    assert_eq!(scores, [(0, 100), (0, 0)]);
}

#[test]
fn the_system_spreads_the_pods_of_a_service_even_where_there_is_no_zone() {
    let zone = "topology.kubernetes.io/zone=a";
    let mut cluster =
        cluster([node("a").labels(zone), node("b")], [pod("1").on("a").labels("app=web")]);
    let service = ObjectKey::new("team-a", "service");
    cluster.objects.services.insert(service, selector("app=web"));
    let plain = pod("p").labels("app=web").build();
    // The missing zone counts as a place, so both weigh ln(4).
    // a: 1.386 + 2 + 1.386 + 4 = 8.77 → 9. b: 0 + 2. 100 × 2 / 9 = 22.
    assert_eq!(spread(&Rules::default(), &cluster, &plain), [(9, 22), (2, 100)]);
    let list = Rules {
        default_spread: DefaultSpread::List(DefaultSpread::System.constraints()),
        ..Rules::default()
    };
    let scores = spread(&list, &cluster, &plain);
    assert_eq!(scores[1], (0, 0), "the same constraints as a list leave such Nodes out");
}

#[test]
fn the_owner_tells_the_siblings_too() {
    let mut cluster = cluster([node("a"), node("b")], [pod("1").on("a").labels("app=web")]);
    let controller = |name: &str| Owner { kind: OwnerKind::ReplicaSet, name: name.into() };
    cluster.objects.replica_sets.insert(ObjectKey::new("team-a", "web"), selector("app=web"));
    cluster.objects.replica_sets.insert(ObjectKey::new("team-a", "bad"), invalid());
    let nobodys = pod("p").labels("app=web").build();
    assert_eq!(spread(&Rules::default(), &cluster, &nobodys), []);
    let owned = pod("p").with(|pod| pod.owner = Some(controller("web"))).build();
    // No zones: "" is one place, ln(3). a: 1.386 + 2 = 3.39 → 3. b: 2. 100 × 2 / 3 = 66.
    assert_eq!(spread(&Rules::default(), &cluster, &owned), [(3, 66), (2, 100)]);
    let invalidly = pod("p").with(|pod| pod.owner = Some(controller("bad"))).build();
    assert_eq!(spread(&Rules::default(), &cluster, &invalidly), []);
}

#[test]
fn hard_constraints_do_not_score() {
    assert_eq!(spread(&Rules::default(), &two_zones(), &web(hard("zone", 9, "app=web"))), []);
}

#[test]
fn a_node_that_the_pod_does_not_accept_is_not_counted() {
    let cluster = cluster(
        [
            node("a").labels("zone=a,disk=ssd"),
            node("b").labels("zone=b,disk=ssd"),
            node("c").labels("zone=b"),
        ],
        [pod("1").on("c").labels("app=web")],
    );
    let on = |policy| {
        let mut constraint = soft("zone", 1, "app=web");
        constraint.node_affinity_policy = policy;
        let pod = pod("p").labels("app=web").spread(constraint);
        let pod = pod.with(|pod| pod.node_selector = labels("disk=ssd")).build();
        let placement = placed(&Rules::default(), &cluster, &pod);
        placement.best.len()
    };
    assert_eq!(on(NodeInclusionPolicy::Honor), 2, "a and b look the same");
    assert_eq!(on(NodeInclusionPolicy::Ignore), 1, "there is a Pod in zone b");
}

#[test]
fn an_invalid_preference_fails_the_attempt() {
    let mut constraint = soft("zone", 1, "app=web");
    constraint.selector = invalid();
    let decision = decide(&Rules::default(), &two_zones(), &web(constraint));
    assert!(matches!(decision, Decision::Failed(_)), "{decision:?}");
}
