//! What a profile does without.

use std::collections::BTreeSet;

use model::{Effect, NodeSelector, NodeSelectorTerm};

use crate::testkit::{cluster, hard, node, placed, pod, raw, term};
use crate::{Decision, Plugin, Preemption, Rules, decide, preempt};

fn without_filters<const N: usize>(plugins: [Plugin; N]) -> Rules {
    let mut rules = Rules::default();
    rules.switched_off.filters = plugins.into();
    rules
}

#[test]
fn a_filter_that_is_off_rejects_no_pod_and_the_others_still_do() {
    let crowded = cluster([node("n").cpu(1000).taint("gpu", Effect::NoSchedule)], []);
    let big = pod("p").asks(2000, 0).build();
    assert!(matches!(decide(&Rules::default(), &crowded, &big), Decision::Rejected(_)));
    let one = without_filters([Plugin::NodeResourcesFit]);
    assert!(matches!(decide(&one, &crowded, &big), Decision::Rejected(_)), "the taint remains");
    let both = without_filters([Plugin::NodeResourcesFit, Plugin::TaintToleration]);
    assert_eq!(placed(&both, &crowded, &big).best.len(), 1);
}

#[test]
fn what_a_filter_finds_out_before_any_node_goes_with_it() {
    let nodes = cluster([node("n1"), node("n2")], [pod("other").labels("app=a").on("n1")]);
    let named = NodeSelectorTerm::parse(&[], &[raw("metadata.name", "In", &["n1"])]);
    let named = pod("p").with(|pod| {
        let scheduling = std::sync::Arc::make_mut(&mut pod.scheduling);
        scheduling.node_affinity.required = Some(NodeSelector { terms: vec![named.clone()] });
    });
    let off = without_filters([
        Plugin::NodeAffinity,
        Plugin::InterPodAffinity,
        Plugin::PodTopologySpread,
    ]);
    let everywhere = BTreeSet::from(["n1".into(), "n2".into()]);
    assert_eq!(placed(&off, &nodes, &named.build()).feasible, everywhere);
    let alone = pod("p").away_from(term("kubernetes.io/hostname", "app=a")).build();
    assert_eq!(placed(&Rules::default(), &nodes, &alone).feasible.len(), 1);
    assert_eq!(placed(&off, &nodes, &alone).feasible, everywhere);
    let spread = pod("p").labels("app=a").spread(hard("nowhere", 1, "app=a")).build();
    assert_eq!(placed(&off, &nodes, &spread).feasible, everywhere);
}

#[test]
fn without_scores_every_node_that_fits_is_as_good_as_any() {
    let uneven = cluster([node("n1").cpu(1000), node("n2").cpu(64_000)], []);
    let small = pod("p").asks(500, 0).build();
    assert_eq!(placed(&Rules::default(), &uneven, &small).best.len(), 1);
    let mut rules = Rules::default();
    rules.switched_off.scores = [
        Plugin::TaintToleration,
        Plugin::NodeAffinity,
        Plugin::NodeResourcesFit,
        Plugin::PodTopologySpread,
        Plugin::InterPodAffinity,
        Plugin::NodeResourcesBalancedAllocation,
        Plugin::ImageLocality,
    ]
    .into();
    assert_eq!(placed(&rules, &uneven, &small).best.len(), 2);
}

#[test]
fn without_preemption_there_is_no_victim() {
    let full = cluster([node("n").cpu(1000)], [pod("low").asks(1000, 0).on("n")]);
    let high = pod("high").priority(10).asks(1000, 0).build();
    assert!(matches!(preempt(&Rules::default(), &full, &high), Preemption::Possible { .. }));
    let mut rules = Rules::default();
    rules.switched_off.preemption = true;
    assert_eq!(preempt(&rules, &full, &high), Preemption::NotTried);
    assert!(crate::Chances::of(&rules, &full, &high).preemptible.is_empty());
}
