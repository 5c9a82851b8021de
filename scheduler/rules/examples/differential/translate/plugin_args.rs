//! The profile of a KubeSchedulerConfiguration.

use rules::{DefaultSpread, Plugin, ResourceWeight, Rules, ScoringStrategy, ShapePoint};
use serde_json::Value;

use super::fields::{int, items, small_int, text, texts};
use super::terms::{node_affinity, spread_constraint};

pub fn rules(case: &Value) -> Rules {
    let mut rules = Rules::default();
    let profile = &case["config"]["profiles"][0];
    for plugin in items(&profile["pluginConfig"]) {
        apply(&mut rules, text(&plugin["name"]), &plugin["args"]);
    }
    for plugin in items(&profile["plugins"]["multiPoint"]["disabled"]) {
        let plugin = Plugin::by_name(text(&plugin["name"])).expect("a plugin");
        rules.switched_off.filters.insert(plugin);
    }
    for plugin in items(&profile["plugins"]["score"]["enabled"]) {
        let weight = int(&plugin["weight"]).try_into().expect("a small number");
        let plugin = Plugin::by_name(text(&plugin["name"])).expect("a plugin that scores");
        rules.weights.insert(plugin, weight);
    }
    rules
}

fn apply(rules: &mut Rules, plugin: &str, args: &Value) {
    match plugin {
        "NodeResourcesFit" => {
            rules.fit = strategy(&args["scoringStrategy"]);
            rules.ignored_resources = texts(&args["ignoredResources"]).collect();
            rules.ignored_resource_groups = texts(&args["ignoredResourceGroups"]).collect();
        }
        "NodeResourcesBalancedAllocation" => {
            let names = items(&args["resources"]).iter().map(|resource| text(&resource["name"]));
            rules.balanced_resources = names.map(Into::into).collect();
        }
        "PodTopologySpread" => {
            let constraints = items(&args["defaultConstraints"]).iter().map(spread_constraint);
            rules.default_spread = DefaultSpread::List(constraints.collect());
        }
        "InterPodAffinity" => {
            rules.hard_pod_affinity_weight = small_int(&args["hardPodAffinityWeight"]);
            rules.ignore_preferred_terms_of_existing_pods =
                args["ignorePreferredTermsOfExistingPods"] == true;
        }
        // Only how long it waits, which is not at all.
        "VolumeBinding" => {}
        "NodeAffinity" => rules.added_affinity = node_affinity(&args["addedAffinity"]),
        other => unreachable!("no case configures {other}"),
    }
}

fn strategy(strategy: &Value) -> ScoringStrategy {
    let weighted = |resource: &Value| ResourceWeight {
        resource: text(&resource["name"]).into(),
        weight: int(&resource["weight"]),
    };
    let resources = items(&strategy["resources"]).iter().map(weighted).collect();
    let point = |point: &Value| ShapePoint {
        utilization: small_int(&point["utilization"]),
        score: small_int(&point["score"]),
    };
    match text(&strategy["type"]) {
        "LeastAllocated" => ScoringStrategy::LeastAllocated(resources),
        "MostAllocated" => ScoringStrategy::MostAllocated(resources),
        "RequestedToCapacityRatio" => {
            let shape = &strategy["requestedToCapacityRatio"]["shape"];
            let shape = items(shape).iter().map(point).collect();
            ScoringStrategy::RequestedToCapacityRatio { resources, shape }
        }
        other => unreachable!("no case has the strategy {other}"),
    }
}
