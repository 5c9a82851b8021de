//! `plugins` of a profile: the weights of scores. Which plugins run, and in which order, is fixed:
//! taking one away, or adding one that does not exist, is refused by name.

use std::collections::BTreeSet;

use engine::Weights;
use serde::Deserialize;

use super::{CORRIDOR_PLUGIN, ConfigurationError};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Plugins {
    multi_point: PluginSet,
    score: PluginSet,
    pre_enqueue: PluginSet,
    queue_sort: PluginSet,
    pre_filter: PluginSet,
    filter: PluginSet,
    post_filter: PluginSet,
    pre_score: PluginSet,
    reserve: PluginSet,
    permit: PluginSet,
    pre_bind: PluginSet,
    bind: PluginSet,
    post_bind: PluginSet,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PluginSet {
    enabled: Vec<Plugin>,
    disabled: Vec<Plugin>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Plugin {
    name: String,
    weight: i32,
}

/// Always on, and without a weight. `Corridor` is ours.
const WITHOUT_SCORE: [&str; 9] = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "NodePorts",
    "DefaultPreemption",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    CORRIDOR_PLUGIN,
];

/// Part of kube-scheduler's default profile. Pods that need them are held here.
const NOT_IMPLEMENTED: [&str; 5] =
    ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources"];

impl Plugins {
    /// Sets the weights that the file names. Those of `score` go before those of `multiPoint`.
    pub fn weigh(&self, weights: &mut Weights) -> Result<(), ConfigurationError> {
        for (point, set) in self.other_points() {
            if let Some(plugin) = set.enabled.first().or(set.disabled.first()) {
                return Err(ConfigurationError::Point { point, plugin: plugin.name.clone() });
            }
        }
        for (point, set) in [("multiPoint", &self.multi_point), ("score", &self.score)] {
            set.refuse_disabled(point)?;
            set.refuse_repeated(point)?;
            for plugin in &set.enabled {
                plugin.weigh(point, weights)?;
            }
        }
        Ok(())
    }

    /// Plugins that are enabled and have nothing to do here.
    pub fn unused(&self) -> Vec<String> {
        let enabled = self.multi_point.enabled.iter().chain(&self.score.enabled);
        let unused = enabled.filter(|plugin| NOT_IMPLEMENTED.contains(&plugin.name.as_str()));
        let note =
            |plugin: &Plugin| format!("{} is not used: Pods that need it are held", plugin.name);
        unused.map(note).collect()
    }

    fn other_points(&self) -> [(&'static str, &PluginSet); 11] {
        [
            ("preEnqueue", &self.pre_enqueue),
            ("queueSort", &self.queue_sort),
            ("preFilter", &self.pre_filter),
            ("filter", &self.filter),
            ("postFilter", &self.post_filter),
            ("preScore", &self.pre_score),
            ("reserve", &self.reserve),
            ("permit", &self.permit),
            ("preBind", &self.pre_bind),
            ("bind", &self.bind),
            ("postBind", &self.post_bind),
        ]
    }
}

impl PluginSet {
    /// A score that is disabled and enabled again only has another weight.
    fn refuse_disabled(&self, point: &'static str) -> Result<(), ConfigurationError> {
        let returns = |disabled: &&Plugin| {
            point == "score" && self.enabled.iter().any(|enabled| enabled.name == disabled.name)
        };
        match self.disabled.iter().find(|plugin| !returns(plugin)) {
            Some(plugin) => {
                Err(ConfigurationError::Disabled { point, plugin: plugin.name.clone() })
            }
            None => Ok(()),
        }
    }

    fn refuse_repeated(&self, point: &'static str) -> Result<(), ConfigurationError> {
        let mut names = BTreeSet::new();
        match self.enabled.iter().find(|plugin| !names.insert(&plugin.name)) {
            Some(plugin) => {
                Err(ConfigurationError::EnabledTwice { point, plugin: plugin.name.clone() })
            }
            None => Ok(()),
        }
    }
}

impl Plugin {
    fn weigh(&self, point: &'static str, weights: &mut Weights) -> Result<(), ConfigurationError> {
        let name = || self.name.clone();
        let Some(weight) = weight_of(weights, &self.name) else {
            let is_known = NOT_IMPLEMENTED.contains(&self.name.as_str())
                || point == "multiPoint" && WITHOUT_SCORE.contains(&self.name.as_str());
            let unknown = ConfigurationError::UnknownPlugin { point, plugin: name() };
            return if is_known { Ok(()) } else { Err(unknown) };
        };
        let refused = ConfigurationError::Weight { point, plugin: name(), weight: self.weight };
        *weight = self.weight.try_into().map_err(|_| refused)?;
        Ok(())
    }
}

fn weight_of<'a>(weights: &'a mut Weights, plugin: &str) -> Option<&'a mut u32> {
    Some(match plugin {
        "TaintToleration" => &mut weights.taint_toleration,
        "NodeAffinity" => &mut weights.node_affinity,
        "NodeResourcesFit" => &mut weights.node_resources_fit,
        "PodTopologySpread" => &mut weights.pod_topology_spread,
        "InterPodAffinity" => &mut weights.inter_pod_affinity,
        "NodeResourcesBalancedAllocation" => &mut weights.balanced_allocation,
        "ImageLocality" => &mut weights.image_locality,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(plugins: &str) -> Result<Weights, String> {
        let plugins: Plugins = serde_json::from_str(plugins).map_err(|error| error.to_string())?;
        let mut weights = Weights::default();
        plugins.weigh(&mut weights).map_err(|error| error.to_string())?;
        Ok(weights)
    }

    #[test]
    fn weights_of_scores_go_before_those_of_all_points() {
        let set = weights(
            r#"{"multiPoint":{"enabled":[{"name":"NodeAffinity","weight":5},{"name":"NodePorts"},
                {"name":"ImageLocality","weight":7},{"name":"VolumeBinding"}]},
                "score":{"enabled":[{"name":"NodeAffinity","weight":9},{"name":"TaintToleration"}],
                "disabled":[{"name":"NodeAffinity"}]}}"#,
        )
        .unwrap();
        let expected = Weights {
            node_affinity: 9,
            image_locality: 7,
            // Left out is 0, which counts as 1.
            taint_toleration: 0,
            ..Weights::default()
        };
        assert_eq!(set, expected);
        assert_eq!(weights("{}").unwrap(), Weights::default());
    }

    #[test]
    fn what_cannot_be_chosen_is_refused_by_name() {
        let cases = [
            (r#"{"score":{"disabled":[{"name":"ImageLocality"}]}}"#, "\"ImageLocality\" cannot be"),
            (r#"{"multiPoint":{"disabled":[{"name":"*"}]}}"#, "multiPoint: \"*\" cannot be"),
            (r#"{"multiPoint":{"enabled":[{"name":"Mine"}]}}"#, "\"Mine\" is no plugin"),
            (r#"{"score":{"enabled":[{"name":"NodePorts"}]}}"#, "\"NodePorts\" is no plugin"),
            (r#"{"filter":{"enabled":[{"name":"NodePorts"}]}}"#, "filter: \"NodePorts\""),
            (r#"{"postFilter":{"disabled":[{"name":"*"}]}}"#, "postFilter: \"*\""),
            (r#"{"score":{"enabled":[{"name":"NodeAffinity","weight":-1}]}}"#, "is -1"),
            (
                r#"{"score":{"enabled":[{"name":"NodeAffinity"},{"name":"NodeAffinity"}]}}"#,
                "enabled twice",
            ),
            (r#"{"socre":{}}"#, "socre"),
        ];
        for (plugins, expected) in cases {
            let error = weights(plugins).unwrap_err();
            assert!(error.contains(expected), "{plugins}: {error}");
        }
    }
}
