//! How Nodes are scored by their resources: args of NodeResourcesFit and
//! NodeResourcesBalancedAllocation.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{ResourceWeight, Rules, ScoringStrategy, ShapePoint};
use schemars::JsonSchema;
use serde::Deserialize;

use super::plugin_args::PluginArgs;

/// kube-scheduler accepts resource weights from 1 to this, …
const RESOURCE_WEIGHT_MAX: i64 = 100;
/// … and curves inside this frame.
const UTILIZATION_MAX: i32 = 100;
const SHAPE_SCORE_MAX: i32 = 10;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct FitArgs {
    /// Extended resources that are not looked at.
    ignored_resources: Vec<String>,
    /// The same by what stands before the slash of their names.
    ignored_resource_groups: Vec<String>,
    /// What makes a node a good one.
    scoring_strategy: Option<StrategyArgs>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct StrategyArgs {
    #[serde(rename = "type")]
    /// `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.
    strategy_type: String,
    /// Left out: cpu and memory, with equal weights.
    resources: Vec<ResourceArgs>,
    /// Of `RequestedToCapacityRatio`.
    requested_to_capacity_ratio: Option<RatioArgs>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RatioArgs {
    /// A curve, by rising utilization.
    shape: Vec<PointArgs>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct PointArgs {
    /// 0 to 100.
    utilization: i32,
    /// 0 to 10.
    score: i32,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ResourceArgs {
    /// For instance cpu.
    name: String,
    /// 1 to 100. Left out, or 0: 1.
    weight: i64,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BalancedArgs {
    /// Left out: cpu and memory.
    resources: Vec<ResourceArgs>,
}

/// What is scored when no resources are named.
fn cpu_and_memory() -> Vec<ResourceWeight> {
    ["cpu", "memory"].map(|name| ResourceWeight { resource: name.into(), weight: 1 }).into()
}

impl PluginArgs for FitArgs {
    fn apply(self, rules: &mut Rules) -> Result<(), String> {
        let names = |names: Vec<String>| -> BTreeSet<Arc<str>> {
            names.into_iter().map(Into::into).collect()
        };
        if let Some(group) = self.ignored_resource_groups.iter().find(|it| it.contains('/')) {
            return Err(format!("ignoredResourceGroups: {group:?} must not contain a slash"));
        }
        rules.ignored_resources = names(self.ignored_resources);
        rules.ignored_resource_groups = names(self.ignored_resource_groups);
        if let Some(strategy) = self.scoring_strategy {
            rules.fit = strategy.read().map_err(|why| format!("scoringStrategy.{why}"))?;
        }
        Ok(())
    }
}

impl StrategyArgs {
    fn read(self) -> Result<ScoringStrategy, String> {
        let resources = match self.resources.as_slice() {
            [] => cpu_and_memory(),
            resources => resources.iter().map(ResourceArgs::read).collect::<Result<_, _>>()?,
        };
        match self.strategy_type.as_str() {
            "LeastAllocated" => Ok(ScoringStrategy::LeastAllocated(resources)),
            "MostAllocated" => Ok(ScoringStrategy::MostAllocated(resources)),
            "RequestedToCapacityRatio" => {
                let shape = self.requested_to_capacity_ratio.unwrap_or_default().read()?;
                Ok(ScoringStrategy::RequestedToCapacityRatio { resources, shape })
            }
            other => Err(format!(
                "type is {other:?}; it must be LeastAllocated, MostAllocated or \
                 RequestedToCapacityRatio"
            )),
        }
    }
}

impl ResourceArgs {
    fn read(&self) -> Result<ResourceWeight, String> {
        let weight = if self.weight == 0 { 1 } else { self.weight };
        if !(1..=RESOURCE_WEIGHT_MAX).contains(&weight) {
            return Err(format!(
                "resources: weight of {:?} is {weight}; it must be 1 to {RESOURCE_WEIGHT_MAX}",
                self.name
            ));
        }
        Ok(ResourceWeight { resource: self.name.as_str().into(), weight })
    }
}

impl RatioArgs {
    /// One point at least, within the frame, and from left to right.
    fn read(self) -> Result<Vec<ShapePoint>, String> {
        const FIELD: &str = "requestedToCapacityRatio.shape";
        let inside = |point: &PointArgs| {
            (0..=UTILIZATION_MAX).contains(&point.utilization)
                && (0..=SHAPE_SCORE_MAX).contains(&point.score)
        };
        if self.shape.is_empty() {
            return Err(format!("{FIELD} must have a point"));
        }
        if !self.shape.iter().all(inside) {
            return Err(format!(
                "{FIELD}: utilization is 0 to {UTILIZATION_MAX}, score 0 to {SHAPE_SCORE_MAX}"
            ));
        }
        if !self.shape.is_sorted_by(|left, right| left.utilization < right.utilization) {
            return Err(format!("{FIELD}: utilization must increase from point to point"));
        }
        let point = |it: &PointArgs| ShapePoint { utilization: it.utilization, score: it.score };
        Ok(self.shape.iter().map(point).collect())
    }
}

impl PluginArgs for BalancedArgs {
    fn apply(self, rules: &mut Rules) -> Result<(), String> {
        let mut names: Vec<Arc<str>> = Vec::new();
        for resource in self.resources {
            if !matches!(resource.weight, 0 | 1) {
                return Err(format!("resources: weight of {:?} must be 1", resource.name));
            }
            if names.iter().any(|name| **name == *resource.name) {
                return Err(format!("resources: {:?} is named twice", resource.name));
            }
            names.push(resource.name.into());
        }
        if !names.is_empty() {
            rules.balanced_resources = names;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(args: &str) -> Result<Rules, String> {
        let args: FitArgs = serde_json::from_str(args).map_err(|error| error.to_string())?;
        let mut rules = Rules::default();
        args.apply(&mut rules).map(|()| rules)
    }

    fn weight(resource: &str, weight: i64) -> ResourceWeight {
        ResourceWeight { resource: resource.into(), weight }
    }

    #[test]
    fn left_out_it_is_kube_schedulers_default() {
        assert_eq!(fit("{}").unwrap(), Rules::default());
        let most = fit(r#"{"scoringStrategy":{"type":"MostAllocated"}}"#).unwrap();
        assert_eq!(most.fit, ScoringStrategy::MostAllocated(cpu_and_memory()));
    }

    #[test]
    fn resources_have_weights_and_curves_points() {
        let rules =
            fit(r#"{"ignoredResources":["example.com/a"],"ignoredResourceGroups":["example.org"],
            "scoringStrategy":{"type":"RequestedToCapacityRatio",
                "resources":[{"name":"cpu","weight":3},{"name":"example.com/g"}],
                "requestedToCapacityRatio":{"shape":[{"utilization":0,"score":10},
                    {"utilization":100,"score":0}]}}}"#)
            .unwrap();
        assert!(rules.ignored_resources.contains("example.com/a"));
        assert!(rules.ignored_resource_groups.contains("example.org"));
        let shape =
            [(0, 10), (100, 0)].map(|(utilization, score)| ShapePoint { utilization, score });
        let resources = vec![weight("cpu", 3), weight("example.com/g", 1)];
        let expected = ScoringStrategy::RequestedToCapacityRatio { resources, shape: shape.into() };
        assert_eq!(rules.fit, expected);
    }

    #[test]
    fn what_kube_scheduler_refuses_is_refused() {
        let strategy = |fields: &str| format!(r#"{{"scoringStrategy":{{{fields}}}}}"#);
        let ratio = |shape: &str| {
            let kind = r#""type":"RequestedToCapacityRatio""#;
            strategy(&format!(r#"{kind},"requestedToCapacityRatio":{{"shape":[{shape}]}}"#))
        };
        let cases = [
            (strategy(""), "type is \"\""),
            (strategy(r#""type":"Random""#), "Random"),
            (strategy(r#""type":"RequestedToCapacityRatio""#), "must have a point"),
            (ratio(""), "must have a point"),
            (ratio(r#"{"utilization":101,"score":1}"#), "0 to 100"),
            (ratio(r#"{"utilization":1,"score":11}"#), "0 to 10"),
            (ratio(r#"{"utilization":5},{"utilization":5}"#), "increase"),
            (
                strategy(r#""type":"LeastAllocated","resources":[{"name":"cpu","weight":101}]"#),
                "1 to 100",
            ),
            (strategy(r#""type":"LeastAllocated","resources":[{"weight":-1}]"#), "is -1"),
            (r#"{"ignoredResourceGroups":["a/b"]}"#.to_owned(), "slash"),
            (r#"{"ignored":[]}"#.to_owned(), "ignored"),
        ];
        for (args, expected) in cases {
            let error = fit(&args).unwrap_err();
            assert!(error.contains(expected), "{args}: {error}");
        }
    }

    #[test]
    fn balance_has_names_and_no_weights() {
        let balanced = |args: &str| {
            let args: BalancedArgs = serde_json::from_str(args).unwrap();
            let mut rules = Rules::default();
            args.apply(&mut rules).map(|()| rules.balanced_resources)
        };
        let named = balanced(r#"{"resources":[{"name":"cpu","weight":1},{"name":"g"}]}"#);
        assert_eq!(named.unwrap(), ["cpu".into(), "g".into()]);
        assert_eq!(balanced("{}").unwrap(), Rules::default().balanced_resources);
        assert!(balanced(r#"{"resources":[{"name":"cpu","weight":2}]}"#).is_err());
        assert!(balanced(r#"{"resources":[{"name":"cpu"},{"name":"cpu"}]}"#).is_err());
    }
}
