//! PodTopologySpread as a filter.

use model::NodeInclusionPolicy::{Honor, Ignore};
use model::{ClusterPod, Deletion, Effect, LabelSelector, ObjectKey};

use crate::testkit::{cluster, fits, hard, invalid, labels, node, pod, reasons, selector, soft};
use crate::{Cluster, Decision, DefaultSpread, Plugin, Reason, Rules, decide, filter};

/// Zones a and b with one Node each; 2 matching Pods in a, 1 in b.
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

fn web(constraint: model::TopologySpreadConstraint) -> ClusterPod {
    pod("p").labels("app=web").spread(constraint).build()
}

#[test]
fn skew_counts_the_pod_itself_against_the_emptiest_place() {
    let cluster = two_zones();
    // In a: 2 + 1 − 1 = 2. In b: 1 + 1 − 1 = 1.
    assert_eq!(reasons(&cluster, &web(hard("zone", 1, "app=web")), "a"), [Reason::TOPOLOGY_SPREAD]);
    assert!(fits(&cluster, &web(hard("zone", 1, "app=web")), "b"));
    assert!(fits(&cluster, &web(hard("zone", 2, "app=web")), "a"));
    let stranger = pod("p").spread(hard("zone", 1, "app=web")).build();
    assert!(fits(&cluster, &stranger, "a"), "2 + 0 − 1: it does not count itself");
}

#[test]
fn a_node_without_the_key_is_beyond_help() {
    let cluster = cluster([node("n").labels("zone=a"), node("bare").unlabelled()], []);
    let found = reasons(&cluster, &web(hard("zone", 1, "app=web")), "bare");
    assert_eq!(found, [Reason::TOPOLOGY_SPREAD_LABEL_MISSING]);
    assert!(found[0].is_unresolvable() && !Reason::TOPOLOGY_SPREAD.is_unresolvable());
}

#[test]
fn only_nodes_with_all_keys_of_the_same_kind_count() {
    let nodes = [node("a").labels("zone=a,rack=1"), node("b").labels("zone=b")];
    let cluster = cluster(nodes, [pod("1").on("a").labels("app=web")]);
    // Alone, zone b is an empty place: 1 + 1 − 0 = 2.
    assert!(!fits(&cluster, &web(hard("zone", 1, "app=web")), "a"));
    // With a second key that b lacks, zone b is no place: 1 + 1 − 1 = 1.
    let both = pod("p").labels("app=web");
    let both = both.spread(hard("zone", 1, "app=web")).spread(hard("rack", 1, "app=web"));
    assert!(fits(&cluster, &both.build(), "a"));
    // A soft constraint does not narrow a hard one.
    let mixed = pod("p").labels("app=web");
    let mixed = mixed.spread(hard("zone", 1, "app=web")).spread(soft("rack", 1, "app=web"));
    assert!(!fits(&cluster, &mixed.build(), "a"));
}

#[test]
fn too_few_places_count_as_an_empty_one() {
    let cluster = two_zones();
    let mut constraint = hard("zone", 1, "app=web");
    constraint.min_domains = Some(3);
    // In b: 1 + 1 − 0 = 2.
    assert!(!fits(&cluster, &web(constraint.clone()), "b"));
    constraint.min_domains = Some(2);
    assert!(fits(&cluster, &web(constraint), "b"));
}

#[test]
fn other_namespaces_and_terminating_pods_do_not_count() {
    let cluster = cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b")],
        [
            pod("team-b/1").on("a").labels("app=web"),
            pod("2").on("a").labels("app=web").with(|pod| pod.deletion = Deletion::Terminating),
        ],
    );
    assert!(fits(&cluster, &web(hard("zone", 1, "app=web")), "a"));
}

#[test]
fn an_empty_selector_counts_only_the_pod_itself() {
    let mut constraint = hard("zone", 1, "");
    constraint.selector = LabelSelector::EVERYTHING;
    let cluster = two_zones();
    // 0 + 1 − 0, whatever is there.
    assert!(fits(&cluster, &web(constraint.clone()), "a"));
    constraint.max_skew = 0;
    assert!(!fits(&cluster, &web(constraint), "a"));
}

#[test]
fn policies_say_which_nodes_count() {
    let nodes = || {
        let tainted = node("b").labels("zone=b,disk=hdd").taint("t", Effect::NoSchedule);
        [node("a").labels("zone=a,disk=ssd"), tainted]
    };
    let cluster = cluster(nodes(), [pod("1").on("a").labels("app=web")]);
    let wants_ssd = |pod: &mut ClusterPod| pod.node_selector = labels("disk=ssd");
    let with = |affinity, taints| {
        let mut constraint = hard("zone", 1, "app=web");
        constraint.node_affinity_policy = affinity;
        constraint.node_taints_policy = taints;
        pod("p").labels("app=web").spread(constraint)
    };
    // While zone b counts, a has 1 + 1 − 0 = 2.
    assert!(!fits(&cluster, &with(Honor, Ignore).build(), "a"), "taints are ignored by default");
    assert!(fits(&cluster, &with(Honor, Honor).build(), "a"));
    assert!(fits(&cluster, &with(Honor, Ignore).with(wants_ssd).build(), "a"));
    assert!(!fits(&cluster, &with(Ignore, Ignore).with(wants_ssd).build(), "a"));
    let cordoned = crate::testkit::cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b").cordoned()],
        [pod("1").on("a").labels("app=web")],
    );
    assert!(!fits(&cordoned, &with(Honor, Honor).build(), "a"), "a cordon is no taint here");
}

#[test]
fn match_label_keys_compare_the_pods_own_values() {
    let cluster = cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b")],
        [pod("1").on("a").labels("app=web,rev=1")],
    );
    let mut constraint = hard("zone", 1, "app=web");
    constraint.match_label_keys = vec!["rev".into(), "absent".into()];
    let revision = |text: &str| pod("p").labels(text).spread(constraint.clone()).build();
    assert!(!fits(&cluster, &revision("app=web,rev=1"), "a"));
    assert!(fits(&cluster, &revision("app=web,rev=2"), "a"));
}

#[test]
fn list_defaults_hold_for_pods_of_a_service_that_have_no_constraint() {
    let mut cluster = two_zones();
    let defaults = DefaultSpread::List(vec![hard("zone", 1, "")]);
    let rules = Rules { default_spread: defaults, ..Rules::default() };
    let on_a = |cluster: &Cluster, pod: &ClusterPod| {
        filter(&rules, cluster, pod, &cluster.nodes[&"a".into()])
    };
    let plain = pod("p").labels("app=web").build();
    assert_eq!(on_a(&cluster, &plain), [], "nobody's Pod has no siblings");
    let service = ObjectKey::new("team-a", "service");
    cluster.objects.services.insert(service, selector("app=web"));
    assert_eq!(on_a(&cluster, &plain), [Reason::TOPOLOGY_SPREAD]);
    let own = web(soft("zone", 1, "app=web"));
    assert_eq!(on_a(&cluster, &own), [], "any constraint of its own turns the defaults off");
    let other = pod("team-b/p").labels("app=web").build();
    assert_eq!(on_a(&cluster, &other), []);
}

#[test]
fn an_invalid_selector_fails_the_attempt() {
    let mut constraint = hard("zone", 1, "app=web");
    constraint.selector = invalid();
    let Decision::Failed(failure) = decide(&Rules::default(), &two_zones(), &web(constraint))
    else {
        panic!("kube-scheduler ends such an attempt with an error");
    };
    assert_eq!(failure.plugin, Plugin::PodTopologySpread);
}

#[test]
fn what_is_nominated_counts_also_when_the_selector_is_empty() {
    let mut constraint = hard("zone", 1, "");
    constraint.selector = LabelSelector::EVERYTHING;
    let nodes = [node("a").labels("zone=a"), node("b").labels("zone=b")];
    let cluster = cluster(nodes, [pod("1").nominated("a").priority(1)]);
    assert_eq!(reasons(&cluster, &web(constraint), "a"), [Reason::TOPOLOGY_SPREAD]);
}
