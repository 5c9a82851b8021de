//! Every score but the spreading ones, computed by hand.

use std::collections::BTreeSet;

use model::{Effect, NodeName, NodeSelectorTerm, PreferredNodeTerm};

use crate::testkit::{NodeBuilder, PodBuilder, cluster, node, placed, pod, raw, term};
use crate::{
    Cluster, Plugin, PluginScore, ResourceWeight, Rules, ScoringStrategy, ShapePoint,
    cpu_and_memory, score,
};

const MIB: i64 = 1 << 20;

/// Raw and normalised scores of one rule on all Nodes, in the order of their names; `None` when
/// the rule is silent.
fn column(
    rules: &Rules,
    cluster: &Cluster,
    pod: PodBuilder,
    plugin: Plugin,
) -> Option<Vec<(i64, i64)>> {
    let all: BTreeSet<NodeName> = cluster.nodes.keys().cloned().collect();
    let scores = score(rules, cluster, &pod.build(), &all).unwrap();
    let of = |plugins: &[PluginScore]| {
        let found = plugins.iter().find(|score| score.plugin == plugin);
        found.map(|score| (score.raw, score.normalised))
    };
    scores.values().map(|node| of(&node.plugins)).collect()
}

fn by_default(cluster: &Cluster, pod: PodBuilder, plugin: Plugin) -> Option<Vec<(i64, i64)>> {
    column(&Rules::default(), cluster, pod, plugin)
}

#[test]
fn fewer_untolerated_preferences_are_better() {
    let prefer = |node: NodeBuilder, key: &str| node.taint(key, Effect::PreferNoSchedule);
    let three = prefer(prefer(prefer(node("c"), "x"), "y"), "z");
    let cluster = cluster([node("a"), prefer(node("b"), "x"), three], []);
    let plugin = Plugin::TaintToleration;
    let scores = by_default(&cluster, pod("p"), plugin);
    assert_eq!(scores, Some(vec![(0, 100), (1, 67), (3, 0)]));
    let narrow = pod("p").tolerates("x", Some(Effect::NoSchedule));
    assert_eq!(by_default(&cluster, narrow, plugin), scores, "the effect must fit too");
    let wide = pod("p").tolerates("", None);
    assert_eq!(by_default(&cluster, wide, plugin), Some(vec![(0, 100); 3]), "all alike");
}

#[test]
fn preferred_terms_add_up_with_those_of_the_profile() {
    let cluster =
        cluster([node("a").labels("zone=a,disk=ssd"), node("b").labels("zone=b"), node("c")], []);
    let zone = |zone: &str| [raw("zone", "In", &[zone])];
    let likes = || pod("p").prefers_node(10, &zone("a")).prefers_node(20, &zone("b"));
    let plugin = Plugin::NodeAffinity;
    assert_eq!(by_default(&cluster, pod("p"), plugin), None);
    let own = by_default(&cluster, likes(), plugin);
    assert_eq!(own, Some(vec![(10, 50), (20, 100), (0, 0)]));
    let mut rules = Rules::default();
    let term = NodeSelectorTerm::parse(&[raw("disk", "Exists", &[])], &[]);
    rules.added_affinity.preferred.push(PreferredNodeTerm { weight: 50, term });
    let both = column(&rules, &cluster, likes(), plugin);
    assert_eq!(both, Some(vec![(60, 100), (20, 33), (0, 0)]));
}

#[test]
fn least_allocated_scores_the_share_that_stays_free() {
    let cluster = cluster(
        [node("a").cpu(3000).memory(1000), node("b").cpu(1000).memory(1000)],
        [pod("other").on("b").asks(500, 0)],
    );
    // a: CPU 2000 × 100 / 3000 = 66, memory 90, mean 78. b: over its CPU 0, memory 90, mean 45.
    let scores = by_default(&cluster, pod("p").asks(1000, 100), Plugin::NodeResourcesFit);
    assert_eq!(scores, Some(vec![(78, 78), (45, 45)]));
}

#[test]
fn other_strategies_score_what_is_used() {
    let cluster = cluster([node("a").cpu(3000).memory(1000)], []);
    let with = |fit, pod| {
        let rules = Rules { fit, ..Rules::default() };
        column(&rules, &cluster, pod, Plugin::NodeResourcesFit).unwrap()[0].0
    };
    let ratio = |points: &[(i32, i32)]| ScoringStrategy::RequestedToCapacityRatio {
        resources: cpu_and_memory(),
        shape: points
            .iter()
            .map(|(utilization, score)| ShapePoint { utilization: *utilization, score: *score })
            .collect(),
    };
    let asks = || pod("p").asks(1000, 100);
    // CPU 33, memory 10.
    assert_eq!(with(ScoringStrategy::MostAllocated(cpu_and_memory()), asks()), 21);
    assert_eq!(with(ratio(&[(0, 0), (100, 10)]), asks()), 22, "21.5 is rounded");
    let cpu_only = || pod("p").asks(1000, 0);
    assert_eq!(with(ratio(&[(0, 0), (100, 10)]), cpu_only()), 33, "a score of 0 has no weight");
    assert_eq!(with(ratio(&[(0, 10), (100, 0)]), cpu_only()), 84, "(67 + 100) / 2, rounded");
    // Level before the first point and after the last.
    assert_eq!(with(ratio(&[(20, 4), (30, 8)]), asks()), 60, "(80 + 40) / 2");
}

#[test]
fn devices_count_only_for_pods_that_ask_for_them() {
    let cluster = cluster([node("a").cpu(1000).scalar("example.com/gpu", 4)], []);
    let mut resources = cpu_and_memory();
    resources.retain(|it| it.resource.as_ref() == "cpu");
    resources.push(ResourceWeight { resource: "example.com/gpu".into(), weight: 3 });
    let rules = Rules { fit: ScoringStrategy::LeastAllocated(resources), ..Rules::default() };
    let fit = |pod| column(&rules, &cluster, pod, Plugin::NodeResourcesFit).unwrap()[0].0;
    assert_eq!(fit(pod("p").asks(500, 0)), 50);
    // (50 × 1 + 75 × 3) / 4.
    assert_eq!(fit(pod("p").asks(500, 0).asks_scalar("example.com/gpu", 1)), 68);
}

#[test]
fn the_fit_score_looks_at_sums_with_defaults_and_the_balance_at_requests() {
    let defaulted = |pod: PodBuilder| {
        pod.with(|pod| {
            pod.requests.effective_in_scores.cpu_milli = 500;
            pod.requests.asked_in_scores.cpu_milli = 100;
        })
    };
    let cluster = cluster([node("a").cpu(1000).memory(1000)], [defaulted(pod("other").on("a"))]);
    let asks = || defaulted(pod("p").asks(0, 500));
    // CPU: 1000 − 500 − 100 → 40. Memory: 50.
    let fit = by_default(&cluster, asks(), Plugin::NodeResourcesFit);
    assert_eq!(fit, Some(vec![(45, 45)]));
    // Before 0 and 0 → 100; with the Pod 0 and 0.5 → 75: 50 + (50 − 25) / 2.
    let balance = by_default(&cluster, asks(), Plugin::NodeResourcesBalancedAllocation);
    assert_eq!(balance, Some(vec![(62, 62)]));
}

#[test]
fn a_pod_that_evens_out_the_node_scores_higher() {
    let cluster = cluster([node("a").cpu(1000).memory(1000)], [pod("other").on("a").asks(400, 0)]);
    let balance = |cpu, memory| {
        by_default(&cluster, pod("p").asks(cpu, memory), Plugin::NodeResourcesBalancedAllocation)
    };
    // Before |0.4 − 0| / 2 = 0.2 → 80. With 400 of memory even → 100.
    assert_eq!(balance(0, 400), Some(vec![(85, 85)]));
    // With 400 more CPU |0.8 − 0| / 2 = 0.4 → 60.
    assert_eq!(balance(400, 0), Some(vec![(65, 65)]));
    assert_eq!(balance(0, 0), None, "a Pod without requests is not scored");
}

#[test]
fn three_resources_are_compared_by_their_deviation() {
    let gpu = "example.com/gpu";
    let cluster = cluster([node("a").cpu(1000).memory(1000).scalar(gpu, 10)], []);
    let rules = Rules {
        balanced_resources: vec!["cpu".into(), "memory".into(), gpu.into()],
        ..Rules::default()
    };
    let plugin = Plugin::NodeResourcesBalancedAllocation;
    let balance = |pod| column(&rules, &cluster, pod, plugin).unwrap()[0].0;
    // Shares 0.5, 0.5, 0.5: 50 + (50 + 0) / 2.
    assert_eq!(balance(pod("p").asks(500, 500).asks_scalar(gpu, 5)), 75);
    // Shares 0, 0.3, 0.6: mean 0.3, √(0.18 / 3) = 0.2449 → 75: 50 + (50 − 25) / 2.
    assert_eq!(balance(pod("p").asks(0, 300).asks_scalar(gpu, 6)), 62);
}

#[test]
fn images_count_by_size_and_by_how_many_nodes_have_them() {
    let nodes = [node("a").image("app:latest", 500 * MIB), node("b").image("app:v1", 500 * MIB)];
    let with_app = cluster(nodes, []);
    let plugin = Plugin::ImageLocality;
    // 500 MiB × 1/2 = 250; (250 − 23) × 100 / (1000 − 23) = 23.
    let scores = by_default(&with_app, pod("p").image("app"), plugin);
    assert_eq!(scores, Some(vec![(23, 23), (0, 0)]));
    let elsewhere = by_default(&with_app, pod("p").image("registry/app"), plugin);
    assert_eq!(elsewhere, Some(vec![(0, 0), (0, 0)]), "names are not completed");
    // The same image in two containers counts twice, and the limit is for both.
    let twice = pod("p").image("app").image("app").with(|pod| pod.containers = 2);
    // (500 − 23) × 100 / (2000 − 23) = 24.
    assert_eq!(by_default(&with_app, twice, plugin), Some(vec![(24, 24), (0, 0)]));
    let huge = cluster([node("a").image("app:latest", 9000 * MIB)], []);
    assert_eq!(by_default(&huge, pod("p").image("app"), plugin), Some(vec![(100, 100)]));
}

#[test]
fn the_first_node_by_name_gives_an_image_its_size() {
    let nodes =
        [node("a").image("app:latest", 100 * MIB), node("b").image("app:latest", 900 * MIB)];
    let scores = by_default(&cluster(nodes, []), pod("p").image("app"), Plugin::ImageLocality);
    assert_eq!(scores, Some(vec![(7, 7); 2]), "(100 − 23) × 100 / 977 on both");
}

#[test]
fn preferences_between_pods_pull_and_push() {
    let cluster = cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b"), node("c").labels("zone=c")],
        [pod("db").on("a").labels("app=db"), pod("noise").on("b").labels("app=noise")],
    );
    let choosy = pod("p").likes(10, term("zone", "app=db")).dislikes(5, term("zone", "app=noise"));
    // 100 × (0 − −5) / 15 = 33.
    let scores = by_default(&cluster, choosy, Plugin::InterPodAffinity);
    assert_eq!(scores, Some(vec![(10, 100), (-5, 0), (0, 33)]));
    assert_eq!(by_default(&cluster, pod("p"), Plugin::InterPodAffinity), None);
}

#[test]
fn placed_pods_pull_with_their_preferences_and_their_required_affinity() {
    let cluster = cluster(
        [node("a").labels("zone=a"), node("b").labels("zone=b"), node("c").labels("zone=c")],
        [
            pod("needs").on("a").near(term("zone", "app=web")),
            pod("likes").on("b").likes(3, term("zone", "app=web")),
            pod("dislikes").on("c").dislikes(2, term("zone", "app=web")),
        ],
    );
    let web = || pod("p").labels("app=web");
    let plugin = Plugin::InterPodAffinity;
    let scores = by_default(&cluster, web(), plugin);
    assert_eq!(scores, Some(vec![(1, 60), (3, 100), (-2, 0)]));
    let heavy = Rules { hard_pod_affinity_weight: 8, ..Rules::default() };
    assert_eq!(column(&heavy, &cluster, web(), plugin).unwrap()[0], (8, 100));
    let weightless = Rules { hard_pod_affinity_weight: 0, ..Rules::default() };
    assert_eq!(column(&weightless, &cluster, web(), plugin).unwrap()[0].0, 0);
    let deaf = Rules { ignore_preferred_terms_of_existing_pods: true, ..Rules::default() };
    assert_eq!(column(&deaf, &cluster, web(), plugin), None);
    let choosy = web().likes(1, term("zone", "app=none"));
    assert_eq!(column(&deaf, &cluster, choosy, plugin), scores, "unless it has some of its own");
}

#[test]
fn totals_weigh_the_rules_and_zero_counts_as_one() {
    let cluster = cluster([node("a"), node("b").taint("t", Effect::PreferNoSchedule)], []);
    let total = |rules: &Rules| {
        let placement = placed(rules, &cluster, &pod("p").build());
        assert_eq!(placement.best, [NodeName::new("a")].into());
        placement.scores.values().map(|score| score.total).collect::<Vec<_>>()
    };
    // Taints 3 × 100 against 0, fit 100, no images.
    assert_eq!(total(&Rules::default()), [400, 100]);
    let mut rules = Rules::default();
    rules.weights.insert(Plugin::TaintToleration, 0);
    assert_eq!(total(&rules), [200, 100]);
}
