//! The decision as a whole, and its message.

use std::collections::BTreeSet;

use model::{ClusterPod, Effect, NodeName, NodeSelector, NodeSelectorTerm};

use crate::testkit::{cluster, node, placed, pod, raw, rejected};
use crate::{Cluster, Decision, Plugin, Reason, Rules, decide, preempt};

fn message(cluster: &Cluster, pod: &ClusterPod) -> String {
    rejected(cluster, pod).message_with(&preempt(&Rules::default(), cluster, pod))
}

/// A Pod whose affinity names these Nodes, a term for each.
fn only_on(terms: &[&[&str]]) -> ClusterPod {
    let term = |names: &&[&str]| {
        let fields: Vec<_> = names.iter().map(|name| raw("metadata.name", "In", &[name])).collect();
        NodeSelectorTerm::parse(&[], &fields)
    };
    let required = NodeSelector { terms: terms.iter().map(term).collect() };
    pod("p").with(|pod| pod.node_affinity.required = Some(required)).build()
}

#[test]
fn the_message_is_kube_schedulers() {
    let tainted = |name| node(name).taint("t", Effect::NoSchedule);
    let small = |name| node(name).cpu(1000);
    let filler = |name, on| pod(name).on(on).asks(800, 0);
    let cluster = cluster(
        [tainted("1"), tainted("2"), small("3"), small("4"), small("5")],
        [filler("x", "3"), filler("y", "4"), filler("z", "5")],
    );
    assert_eq!(
        message(&cluster, &pod("p").asks(500, 0).build()),
        "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu. \
         no new claims to deallocate, preemption: 0/5 nodes are available: \
         2 Preemption is not helpful for scheduling, \
         3 No preemption victims found for incoming pod."
    );
}

#[test]
fn counts_are_sorted_as_texts() {
    let names: Vec<String> = (0..12).map(|number| format!("n{number:02}")).collect();
    let node_of = |(index, name): (usize, &String)| {
        if index < 10 { node(name).cordoned().build() } else { node(name).pods_max(0).build() }
    };
    let cluster = Cluster::new(names.iter().enumerate().map(node_of), []);
    let rejection = rejected(&cluster, &pod("p").build());
    assert_eq!(
        rejection.message(),
        "0/12 nodes are available: 10 node(s) were unschedulable, 2 Too many pods."
    );
    assert_eq!(rejection.counts()["Too many pods"], 2);
}

#[test]
fn a_cluster_without_nodes_says_so() {
    assert_eq!(message(&cluster([], []), &pod("p").build()), "no nodes available to schedule pods");
}

#[test]
fn contradicting_names_reject_the_pod_as_a_whole() {
    let cluster = cluster([node("a"), node("b")], []);
    let contradiction = only_on(&[&["a", "b"]]);
    assert_eq!(
        message(&cluster, &contradiction),
        "0/2 nodes are available: pod affinity terms conflict. not found",
        "kube-scheduler stumbles before it gets to preemption"
    );
    assert_eq!(rejected(&cluster, &contradiction).whole_pod, Some(Reason::NODE_NAMES_CONFLICT));
}

#[test]
fn names_keep_the_other_nodes_from_being_tried() {
    let cordoned = || [node("a").cordoned(), node("b"), node("c")];
    assert_eq!(
        rejected(&cluster(cordoned(), []), &only_on(&[&["a"]])).message(),
        "0/3 nodes are available: 1 node(s) were unschedulable, \
         2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    );
    assert_eq!(
        rejected(&cluster(cordoned(), []), &only_on(&[&["gone"]])).message(),
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    );
    let free = placed(&Rules::default(), &cluster(cordoned(), []), &only_on(&[&["b"], &["a"]]));
    assert_eq!(free.feasible, [NodeName::new("b")].into());
}

#[test]
fn a_nominated_node_is_taken_without_a_look_at_the_others() {
    let nodes = || [node("a"), node("b").taint("t", Effect::PreferNoSchedule)];
    let nominee = pod("p").nominated("b").build();
    let placement = placed(&Rules::default(), &cluster(nodes(), []), &nominee);
    assert_eq!(placement.feasible, [NodeName::new("b")].into());
    assert!(placement.scores.is_empty());
    let gone = pod("p").nominated("gone").build();
    let placement = placed(&Rules::default(), &cluster(nodes(), []), &gone);
    assert_eq!(placement.best, [NodeName::new("a")].into());
    let cordoned = cluster([node("a"), node("b").cordoned()], []);
    let placement = placed(&Rules::default(), &cordoned, &nominee);
    assert_eq!(placement.feasible, [NodeName::new("a")].into());
}

#[test]
fn a_nominated_node_is_tried_whatever_the_affinity_names() {
    let cluster = cluster([node("a").cordoned(), node("b"), node("c")], []);
    let mut pod = only_on(&[&["a"]]);
    pod.nominated_node = Some("b".into());
    assert_eq!(
        rejected(&cluster, &pod).message(),
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
         1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable."
    );
    pod.nominated_node = Some("a".into());
    assert_eq!(
        rejected(&cluster, &pod).message(),
        "0/3 nodes are available: 1 node(s) were unschedulable, \
         2 node(s) didn't satisfy plugin(s) [NodeAffinity NodeUnschedulable].",
        "what rejected the nominated Node is blamed for the others too"
    );
}

#[test]
fn equal_scores_are_all_best() {
    let cluster = cluster([node("a"), node("b"), node("c").cpu(500)], []);
    let placement = placed(&Rules::default(), &cluster, &pod("p").asks(400, 0).build());
    assert_eq!(placement.feasible.len(), 3);
    let best: BTreeSet<NodeName> = ["a".into(), "b".into()].into();
    assert_eq!(placement.best, best);
}

#[test]
fn a_preference_that_cannot_be_parsed_matters_only_when_there_is_a_choice() {
    let choosy = pod("p").prefers_node(5, &[raw("zone", "Gt", &["much"])]).build();
    let one = cluster([node("a"), node("b").cordoned()], []);
    assert_eq!(placed(&Rules::default(), &one, &choosy).best.len(), 1);
    let two = cluster([node("a"), node("b")], []);
    let Decision::Failed(failure) = decide(&Rules::default(), &two, &choosy) else {
        panic!("kube-scheduler ends such an attempt with an error");
    };
    assert_eq!(failure.plugin, Plugin::NodeAffinity);
    assert!(failure.to_string().contains("much"), "{failure}");
    let weightless = pod("p").prefers_node(0, &[raw("zone", "Gt", &["much"])]).build();
    assert_eq!(placed(&Rules::default(), &two, &weightless).best.len(), 2);
}
