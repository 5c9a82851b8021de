//! Rules that look at the Node alone: cordon, name, taints, affinity, ports, features.

use model::{Effect, NodeSelector, NodeSelectorTerm};

use crate::testkit::{cluster, fits, labels, node, pod, raw, reasons};
use crate::{Plugin, Reason, Rules, filter};

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let cluster = cluster([node("n").cordoned()], []);
    assert_eq!(reasons(&cluster, &pod("p").build(), "n"), [Reason::NODE_UNSCHEDULABLE]);
    let cordon = "node.kubernetes.io/unschedulable";
    let tolerant = pod("p").tolerates(cordon, Some(Effect::NoSchedule)).build();
    assert!(fits(&cluster, &tolerant, "n"));
    let other_effect = pod("p").tolerates(cordon, Some(Effect::NoExecute)).build();
    assert!(!fits(&cluster, &other_effect, "n"));
    assert!(fits(&cluster, &pod("p").tolerates("", None).build(), "n"), "an empty key is any");
}

#[test]
fn a_requested_node_name_excludes_the_others() {
    let cluster = cluster([node("n1"), node("n2")], []);
    let bound = pod("p").on("n1").build();
    assert_eq!(reasons(&cluster, &bound, "n2"), [Reason::NODE_NAME]);
    assert!(fits(&cluster, &bound, "n1"));
}

#[test]
fn no_execute_repels_too_and_preferences_do_not() {
    for (effect, passes) in
        [(Effect::NoSchedule, false), (Effect::NoExecute, false), (Effect::PreferNoSchedule, true)]
    {
        let cluster = cluster([node("n").taint("gpu", effect)], []);
        assert_eq!(fits(&cluster, &pod("p").build(), "n"), passes, "{effect:?}");
        assert!(fits(&cluster, &pod("p").tolerates("gpu", None).build(), "n"));
    }
    let text = Reason::UNTOLERATED_TAINT.to_string();
    assert_eq!(text, "node(s) had untolerated taint(s)", "the taint is not named");
}

#[test]
fn the_cordon_speaks_before_the_taint_that_comes_with_it() {
    let cordon = "node.kubernetes.io/unschedulable";
    let cluster = cluster([node("n").cordoned().taint(cordon, Effect::NoSchedule)], []);
    assert_eq!(reasons(&cluster, &pod("p").build(), "n"), [Reason::NODE_UNSCHEDULABLE]);
}

#[test]
fn node_selector_and_affinity_must_both_hold() {
    let cluster = cluster([node("n").labels("zone=a,disk=ssd")], []);
    let wants = |selector: &str, zone: &str| {
        let term = NodeSelectorTerm::parse(&[raw("zone", "In", &[zone])], &[]);
        pod("p").with(|pod| {
            pod.node_selector = labels(selector);
            pod.node_affinity.required = Some(NodeSelector { terms: vec![term] });
        })
    };
    assert!(fits(&cluster, &wants("disk=ssd", "a").build(), "n"));
    for wrong in [wants("disk=hdd", "a"), wants("disk=ssd", "b")] {
        assert_eq!(reasons(&cluster, &wrong.build(), "n"), [Reason::NODE_AFFINITY]);
    }
}

#[test]
fn the_affinity_of_the_profile_comes_first_and_has_its_own_words() {
    let cluster = cluster([node("n").labels("zone=a")], []);
    let mut rules = Rules::default();
    let term = NodeSelectorTerm::parse(&[raw("zone", "In", &["b"])], &[]);
    rules.added_affinity.required = Some(NodeSelector { terms: vec![term] });
    let wrong = pod("p").with(|pod| pod.node_selector = labels("zone=c")).build();
    let found = filter(&rules, &cluster, &wrong, &cluster.nodes[&"n".into()]);
    assert_eq!(found, [Reason::ENFORCED_NODE_AFFINITY]);
    assert!(found[0].is_unresolvable() && found[0].plugin() == Plugin::NodeAffinity);
}

#[test]
fn an_address_for_all_conflicts_with_every_address() {
    let cluster = cluster([node("n")], [pod("other").on("n").port("10.0.0.1", 80)]);
    assert_eq!(reasons(&cluster, &pod("p").port("", 80).build(), "n"), [Reason::HOST_PORTS]);
    assert_eq!(
        reasons(&cluster, &pod("p").port("10.0.0.1", 80).build(), "n"),
        [Reason::HOST_PORTS]
    );
    assert!(fits(&cluster, &pod("p").port("10.0.0.2", 80).build(), "n"));
    assert!(fits(&cluster, &pod("p").port("", 81).build(), "n"));
    assert!(!Reason::HOST_PORTS.is_unresolvable());
}

#[test]
fn features_must_be_declared() {
    let mut cluster = cluster([node("n")], []);
    let needy = pod("p").with(|pod| pod.required_features = ["A".into()].into()).build();
    assert_eq!(reasons(&cluster, &needy, "n"), [Reason::DECLARED_FEATURES]);
    let declares = &mut cluster.nodes.get_mut(&"n".into()).unwrap().declared_features;
    declares.extend(["A".into(), "B".into()]);
    assert!(fits(&cluster, &needy, "n"));
}

#[test]
fn the_first_rule_that_rejects_supplies_the_reasons() {
    let cluster = cluster([node("n").taint("t", Effect::NoSchedule).cpu(100).pods_max(0)], []);
    let asks = pod("p").asks(500, 0);
    assert_eq!(reasons(&cluster, &asks.build(), "n"), [Reason::UNTOLERATED_TAINT]);
    let tolerant = pod("p").asks(500, 0).tolerates("t", None).build();
    let both = reasons(&cluster, &tolerant, "n");
    let texts: Vec<String> = both.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["Too many pods", "Insufficient cpu"], "one rule may have several");
}
