//! InterPodAffinity as a filter.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Deletion, LabelSelector, Labels, PodAffinityTerm};

use crate::testkit::{cluster, fits, invalid, node, pod, raw, reasons, rejected, selector, term};
use crate::{Plugin, Reason};

fn reaching(namespaces: &[&str], selector_: Option<LabelSelector>) -> PodAffinityTerm {
    let own: Arc<str> = "team-a".into();
    let namespaces: BTreeSet<Arc<str>> = namespaces.iter().map(|name| Arc::from(*name)).collect();
    PodAffinityTerm::new(&own, "zone", selector("app=db"), namespaces, selector_)
}

#[test]
fn affinity_needs_a_pod_in_the_same_place() {
    let nodes =
        [node("a1").labels("zone=a"), node("a2").labels("zone=a"), node("b").labels("zone=b")];
    let cluster = cluster(nodes, [pod("db").on("a1").labels("app=db")]);
    let near = pod("p").near(term("zone", "app=db")).build();
    assert!(fits(&cluster, &near, "a1") && fits(&cluster, &near, "a2"));
    assert_eq!(reasons(&cluster, &near, "b"), [Reason::POD_AFFINITY]);
    assert!(Reason::POD_AFFINITY.is_unresolvable());
}

#[test]
fn one_pod_must_match_all_terms_each_in_its_own_topology() {
    let nodes = [node("n1").labels("zone=a,rack=1"), node("n2").labels("zone=a,rack=2")];
    let cluster = cluster(
        nodes,
        [
            pod("both").on("n1").labels("app=db,tier=x"),
            pod("half").on("n2").labels("app=db"),
            pod("other").on("n2").labels("tier=x"),
        ],
    );
    let near = pod("p").near(term("zone", "app=db")).near(term("rack", "tier=x")).build();
    assert!(fits(&cluster, &near, "n1"));
    assert!(!fits(&cluster, &near, "n2"), "two halves do not make one");
}

#[test]
fn the_first_of_a_group_is_let_in_where_the_keys_are() {
    let nodes = || [node("n").labels("zone=a"), node("bare").unlabelled()];
    let first = pod("p").labels("app=db").near(term("zone", "app=db")).build();
    let empty = cluster(nodes(), []);
    assert!(fits(&empty, &first, "n"));
    assert_eq!(reasons(&empty, &first, "bare"), [Reason::POD_AFFINITY]);
    let stranger = pod("p").near(term("zone", "app=db")).build();
    assert!(!fits(&empty, &stranger, "n"), "it does not mean itself");
    let seen = cluster(
        [node("n").labels("zone=a"), node("m").labels("zone=b")],
        [pod("db").on("m").labels("app=db")],
    );
    assert!(!fits(&seen, &first, "n"), "it is not the first");
    let out_of_place = cluster(nodes(), [pod("db").on("bare").labels("app=db")]);
    assert!(fits(&out_of_place, &first, "n"), "a Pod that is in no place does not count");
}

#[test]
fn anti_affinity_keeps_away_and_a_node_in_no_place_passes() {
    let cluster = cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b"), node("bare").unlabelled()],
        [pod("db").on("a").labels("app=db"), pod("lost").on("bare").labels("app=db")],
    );
    let away = pod("p").away_from(term("zone", "app=db")).build();
    assert_eq!(reasons(&cluster, &away, "a"), [Reason::POD_ANTI_AFFINITY]);
    assert!(fits(&cluster, &away, "b") && fits(&cluster, &away, "bare"));
    assert!(!Reason::POD_ANTI_AFFINITY.is_unresolvable());
}

#[test]
fn placed_pods_keep_others_away_too() {
    let shy = pod("shy").on("a").away_from(term("zone", "app=db"));
    let cluster = cluster([node("a").labels("zone=a"), node("b").labels("zone=b")], [shy]);
    let db = pod("p").labels("app=db").build();
    assert_eq!(reasons(&cluster, &db, "a"), [Reason::EXISTING_PODS_ANTI_AFFINITY]);
    assert!(fits(&cluster, &db, "b"));
    assert!(fits(&cluster, &pod("team-b/p").labels("app=db").build(), "a"), "another namespace");
}

#[test]
fn terminating_pods_still_count() {
    let leaving = |pod: &mut model::ClusterPod| pod.deletion = Deletion::Terminating;
    let cluster =
        cluster([node("a").labels("zone=a")], [pod("db").on("a").labels("app=db").with(leaving)]);
    assert!(!fits(&cluster, &pod("p").away_from(term("zone", "app=db")).build(), "a"));
}

#[test]
fn namespaces_and_their_selector_add_up() {
    let cluster =
        cluster([node("a").labels("zone=a")], [pod("team-b/db").on("a").labels("app=db")]);
    let met = |term| !fits(&cluster, &pod("p").away_from(term).build(), "a");
    assert!(!met(reaching(&[], None)), "its own namespace only");
    assert!(met(reaching(&["team-b"], None)));
    assert!(met(reaching(&["team-c"], Some(selector("team=b")))), "either is enough");
    assert!(!met(reaching(&[], Some(selector("team=c")))));
    assert!(met(reaching(&[], Some(LabelSelector::EVERYTHING))));
}

#[test]
fn a_selector_that_matches_no_labels_reaches_every_namespace() {
    let cluster =
        cluster([node("a").labels("zone=a")], [pod("team-b/db").on("a").labels("app=db")]);
    let not_b = LabelSelector::parse(&Labels::new(), &[raw("team", "NotIn", &["b"])]);
    let term = reaching(&[], Some(not_b));
    let own = pod("p").away_from(term.clone()).build();
    assert!(!fits(&cluster, &own, "a"), "kube-scheduler asks the selector again, without labels");
    // The term of a placed Pod is judged by the labels that the namespace has.
    let placed =
        crate::testkit::cluster([node("a").labels("zone=a")], [pod("shy").on("a").away_from(term)]);
    assert!(fits(&placed, &pod("team-b/p").labels("app=db").build(), "a"));
    assert!(!fits(&placed, &pod("team-c/p").labels("app=db").build(), "a"), "it has no labels");
}

#[test]
fn affinity_speaks_before_anti_affinity_and_others() {
    let shy = pod("shy").on("a").labels("app=db").away_from(term("zone", "x=y"));
    let cluster = cluster([node("a").labels("zone=a")], [shy]);
    let pod = pod("p").labels("x=y").near(term("zone", "app=web"));
    let pod = pod.away_from(term("zone", "app=db"));
    assert_eq!(reasons(&cluster, &pod.build(), "a"), [Reason::POD_AFFINITY]);
}

#[test]
fn an_invalid_term_rejects_its_pod_and_is_given_up_in_others() {
    let bad = PodAffinityTerm { selector: invalid(), ..term("zone", "app=db") };
    let lists = pod("db").on("a").away_from(bad.clone()).away_from(term("zone", "app=db"));
    let cluster = cluster([node("a").labels("zone=a")], [lists]);
    assert!(fits(&cluster, &pod("p").labels("app=db").build(), "a"), "the whole list is gone");
    let rejection = rejected(&cluster, &pod("p").near(bad).build());
    let reason = rejection.whole_pod.clone().unwrap();
    assert_eq!(reason.plugin(), Plugin::InterPodAffinity);
    let message = rejection.message();
    assert!(message.starts_with("0/1 nodes are available: parsing pod: "), "{message}");
}

#[test]
fn a_pod_without_rules_does_not_see_the_anti_affinity_of_the_nominated() {
    let nominated = || pod("shy").nominated("a").priority(9).away_from(term("zone", "app=db"));
    let web = pod("p").labels("app=db").build();
    let idle = cluster([node("a").labels("zone=a")], [nominated()]);
    assert!(fits(&idle, &web, "a"), "kube-scheduler leaves the rule out");
    let elsewhere = pod("placed").on("b").away_from(term("zone", "app=db"));
    let busy =
        cluster([node("a").labels("zone=a"), node("b").labels("zone=b")], [nominated(), elsewhere]);
    assert_eq!(reasons(&busy, &web, "a"), [Reason::EXISTING_PODS_ANTI_AFFINITY]);
}

#[test]
fn a_pod_must_fit_without_the_nominated_too() {
    let friend = pod("db").nominated("a").priority(9).labels("app=db");
    let cluster = cluster([node("a").labels("zone=a")], [friend]);
    assert!(!fits(&cluster, &pod("p").near(term("zone", "app=db")).build(), "a"));
}
