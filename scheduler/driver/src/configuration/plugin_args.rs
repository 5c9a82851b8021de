//! `pluginConfig` of a profile: the args of each plugin.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::{DefaultSpread, Rules};
use model::{NodeSelectorTerm, WhenUnsatisfiable};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::CORRIDOR_PLUGIN;
use super::corridor::CorridorArgs;
use super::error::ProfileError;
use super::profile::ProfileSettings;
use super::scoring::{BalancedArgs, FitArgs};
use crate::translate;
use crate::wire::{WireNodeAffinity, WireSpreadConstraint};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PluginConfig {
    /// Of the plugin.
    name: String,
    /// Each plugin has other fields: below.
    #[serde(default)]
    args: Value,
}

/// Args of a plugin of kube-scheduler that are honoured.
pub(super) trait PluginArgs: DeserializeOwned + JsonSchema {
    fn apply(self, rules: &mut Rules) -> Result<(), String>;
}

pub(super) struct Configurable {
    pub name: &'static str,
    schema: fn() -> Schema,
    apply: fn(Value, &mut Rules) -> Result<(), String>,
}

const fn configurable<A: PluginArgs>(name: &'static str) -> Configurable {
    let apply = |args, rules: &mut Rules| parse::<A>(args)?.apply(rules);
    Configurable { name, schema: || schema_for!(A), apply }
}

/// Plugins of kube-scheduler whose args are honoured.
pub(super) const CONFIGURABLE: [Configurable; 6] = [
    configurable::<FitArgs>("NodeResourcesFit"),
    configurable::<BalancedArgs>("NodeResourcesBalancedAllocation"),
    configurable::<NodeAffinityArgs>("NodeAffinity"),
    configurable::<SpreadArgs>("PodTopologySpread"),
    configurable::<PodAffinityArgs>("InterPodAffinity"),
    configurable::<VolumeBindingArgs>("VolumeBinding"),
];

/// The args of each plugin that has any, for the reference.
pub(super) fn schemas() -> impl Iterator<Item = (&'static str, Schema)> {
    let ours = (CORRIDOR_PLUGIN, schema_for!(CorridorArgs));
    [ours].into_iter().chain(CONFIGURABLE.into_iter().map(|it| (it.name, (it.schema)())))
}

/// Plugins whose args are accepted, because files for kube-scheduler have them, and do nothing.
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("DefaultPreemption", "every node is considered"),
    ("DynamicResources", "Pods that need it are held"),
];

pub(super) fn read(
    plugins: Vec<PluginConfig>,
    settings: &mut ProfileSettings,
    notes: &mut Vec<String>,
) -> Result<(), ProfileError> {
    let mut names = BTreeSet::new();
    for plugin in plugins {
        if !names.insert(plugin.name.clone()) {
            return Err(ProfileError::Twice(plugin.name));
        }
        let name = plugin.name.as_str();
        if let Some((_, why)) = WITHOUT_EFFECT.iter().find(|(unused, _)| *unused == name) {
            notes.push(format!("args of {name} are not used: {why}"));
            continue;
        }
        plugin.apply(settings)?;
    }
    Ok(())
}

impl PluginConfig {
    fn apply(mut self, settings: &mut ProfileSettings) -> Result<(), ProfileError> {
        let known = CONFIGURABLE.into_iter().find(|it| it.name == self.name);
        if known.is_none() && self.name != CORRIDOR_PLUGIN {
            return Err(ProfileError::Plugin(self.name));
        }
        if self.args.is_null() {
            return Ok(());
        }
        self.take_type()?;
        let Self { name, args } = self;
        let applied = match known {
            Some(plugin) => (plugin.apply)(args, &mut settings.profile.rules),
            None => match parse::<CorridorArgs>(args) {
                Ok(args) => return args.apply(settings),
                Err(why) => Err(why),
            },
        };
        applied.map_err(|why| ProfileError::Args { plugin: name, why })
    }

    /// Args are objects of their own in Kubernetes' eyes; there is one version, and a kind for each
    /// plugin.
    fn take_type(&mut self) -> Result<(), ProfileError> {
        let Some(fields) = self.args.as_object_mut() else { return Ok(()) };
        fields.remove("apiVersion");
        match fields.remove("kind") {
            Some(kind) if kind != format!("{}Args", self.name) => {
                let kind = kind.as_str().map_or_else(|| kind.to_string(), ToOwned::to_owned);
                Err(ProfileError::ArgsKind { plugin: self.name.clone(), kind })
            }
            _ => Ok(()),
        }
    }
}

fn parse<T: DeserializeOwned>(args: Value) -> Result<T, String> {
    serde_json::from_value(args).map_err(|error| error.to_string())
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct NodeAffinityArgs {
    /// As `nodeAffinity` of a Pod; it holds for every Pod beside its own.
    #[schemars(with = "Value")]
    added_affinity: WireNodeAffinity,
}

impl PluginArgs for NodeAffinityArgs {
    fn apply(self, rules: &mut Rules) -> Result<(), String> {
        let added = translate::node_affinity(&self.added_affinity);
        if let Some(required) = &added.required {
            if required.terms.is_empty() {
                return Err("addedAffinity: nodeSelectorTerms must have a term".to_owned());
            }
            if let Some(why) = required.terms.iter().find_map(NodeSelectorTerm::error) {
                return Err(format!("addedAffinity: {why}"));
            }
        }
        if let Some(why) = added.preference_error() {
            return Err(format!("addedAffinity: {why}"));
        }
        rules.added_affinity = added;
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct SpreadArgs {
    /// `System`, or `List` for the constraints below.
    defaulting_type: String,
    /// As `topologySpreadConstraints` of a Pod, without a selector, for Pods that have none.
    #[schemars(with = "Vec<Value>")]
    default_constraints: Vec<WireSpreadConstraint>,
}

impl PluginArgs for SpreadArgs {
    fn apply(self, rules: &mut Rules) -> Result<(), String> {
        rules.default_spread = match self.defaulting_type.as_str() {
            "" | "System" if self.default_constraints.is_empty() => DefaultSpread::System,
            "" | "System" => {
                return Err("defaultConstraints need defaultingType: List".to_owned());
            }
            "List" => self.list().map_err(|why| format!("defaultConstraints: {why}"))?,
            other => {
                return Err(format!("defaultingType is {other:?}; it must be System or List"));
            }
        };
        Ok(())
    }
}

impl SpreadArgs {
    fn list(&self) -> Result<DefaultSpread, String> {
        let mut constraints = Vec::new();
        let mut seen: BTreeSet<(&str, WhenUnsatisfiable)> = BTreeSet::new();
        for wire in &self.default_constraints {
            let constraint = translate::spread_constraint(wire)
                .map_err(|field| format!("{field} has an unknown value"))?;
            if wire.label_selector.is_some() {
                return Err("labelSelector is deduced for each Pod; leave it out".to_owned());
            }
            if wire.max_skew <= 0 || wire.topology_key.is_empty() {
                return Err("maxSkew must be above 0, and topologyKey a label".to_owned());
            }
            if !seen.insert((&wire.topology_key, constraint.when_unsatisfiable)) {
                return Err(format!("{:?} is named twice", wire.topology_key));
            }
            constraints.push(constraint);
        }
        Ok(DefaultSpread::List(constraints))
    }
}

/// kube-scheduler accepts weights from 0 to this.
const HARD_WEIGHT_MAX: i32 = 100;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PodAffinityArgs {
    /// What a required term of a Pod on a node weighs in the score of others: 0 to 100.
    hard_pod_affinity_weight: Option<i32>,
    /// Whether preferences of Pods on nodes count for nothing.
    ignore_preferred_terms_of_existing_pods: bool,
}

impl PluginArgs for PodAffinityArgs {
    fn apply(self, rules: &mut Rules) -> Result<(), String> {
        if let Some(weight) = self.hard_pod_affinity_weight {
            if !(0..=HARD_WEIGHT_MAX).contains(&weight) {
                return Err(format!(
                    "hardPodAffinityWeight is {weight}; it must be 0 to {HARD_WEIGHT_MAX}"
                ));
            }
            rules.hard_pod_affinity_weight = weight;
        }
        rules.ignore_preferred_terms_of_existing_pods =
            self.ignore_preferred_terms_of_existing_pods;
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct VolumeBindingArgs {
    /// How long a placed Pod waits for its claims to be bound: 600 unless it is said otherwise.
    bind_timeout_seconds: Option<i64>,
    /// For a score that kube-scheduler has switched off.
    #[schemars(skip)]
    shape: Option<Value>,
}

impl PluginArgs for VolumeBindingArgs {
    fn apply(self, rules: &mut Rules) -> Result<(), String> {
        if self.shape.is_some() {
            let why = "unexpected field `shape`, remove it or turn on the feature gate \
                       StorageCapacityScoring, which this scheduler does not have";
            return Err(why.to_owned());
        }
        if let Some(seconds) = self.bind_timeout_seconds {
            let seconds = u64::try_from(seconds)
                .map_err(|_| "invalid BindTimeoutSeconds, should not be a negative value")?;
            rules.volume_bind_timeout = Duration::from_secs(seconds);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(plugins: Value) -> Result<Rules, String> {
        let plugins = serde_json::from_value(plugins).map_err(|error| error.to_string())?;
        let mut settings = ProfileSettings::default();
        read(plugins, &mut settings, &mut Vec::new()).map_err(|error| error.to_string())?;
        Ok(settings.profile.rules)
    }

    fn one(name: &str, args: &Value) -> Result<Rules, String> {
        rules(json!([{"name": name, "args": args}]))
    }

    #[test]
    fn every_plugin_may_be_named_without_args() {
        let named: Vec<Value> = CONFIGURABLE.iter().map(|it| json!({"name": it.name})).collect();
        assert_eq!(rules(json!(named)).unwrap(), Rules::default());
        for Configurable { name, .. } in CONFIGURABLE {
            let typed = json!({
                "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": format!("{name}Args"),
            });
            assert_eq!(one(name, &typed).unwrap(), Rules::default(), "{name}");
        }
    }

    #[test]
    fn affinity_can_be_added_to_every_pod() {
        let term = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        let required = |terms: Value| {
            let required = json!({"nodeSelectorTerms": terms});
            json!({"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
        };
        let added = one("NodeAffinity", &required(json!([term]))).unwrap().added_affinity;
        assert_eq!(added.required.unwrap().terms.len(), 1);
        assert!(
            one("NodeAffinity", &required(json!([]))).unwrap_err().contains("must have a term")
        );
        let bad = json!([{"matchExpressions": [{"key": "a", "operator": "Near"}]}]);
        assert!(one("NodeAffinity", &required(bad)).unwrap_err().contains("Near"));
        let preferred = json!([{"weight": 1, "preference": {"matchFields": [{"key": "x"}]}}]);
        let preferred = json!({
            "addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
        });
        assert!(one("NodeAffinity", &preferred).unwrap_err().contains("addedAffinity"));
    }

    #[test]
    fn default_constraints_are_listed_or_the_systems() {
        let constraint = |key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"});
        let list = |constraints: Value| {
            let args = json!({"defaultingType": "List", "defaultConstraints": constraints});
            one("PodTopologySpread", &args).map(|rules| rules.default_spread)
        };
        assert_eq!(list(json!([])).unwrap(), DefaultSpread::List(Vec::new()));
        let DefaultSpread::List(listed) = list(json!([constraint("zone")])).unwrap() else {
            panic!("a list was given")
        };
        assert_eq!(&*listed[0].topology_key, "zone");
        let system = json!({"defaultConstraints": [constraint("zone")]});
        assert!(one("PodTopologySpread", &system).unwrap_err().contains("defaultingType: List"));
        let other = json!({"defaultingType": "Own"});
        assert!(one("PodTopologySpread", &other).unwrap_err().contains("\"Own\""));
        let mut selecting = constraint("zone");
        selecting["labelSelector"] = json!({});
        let cases = [
            (json!([constraint("zone"), constraint("zone")]), "named twice"),
            (json!([constraint("")]), "topologyKey"),
            (json!([{"maxSkew": 1, "topologyKey": "zone"}]), "whenUnsatisfiable"),
            (json!([selecting]), "labelSelector"),
        ];
        for (constraints, expected) in cases {
            assert!(list(constraints).unwrap_err().contains(expected), "{expected}");
        }
    }

    #[test]
    fn the_weight_of_required_affinity_has_a_range() {
        let args = json!({"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": true});
        let rules = one("InterPodAffinity", &args).unwrap();
        assert_eq!(rules.hard_pod_affinity_weight, 0);
        assert!(rules.ignore_preferred_terms_of_existing_pods);
        let left_out = one("InterPodAffinity", &json!({})).unwrap();
        assert_eq!(left_out.hard_pod_affinity_weight, 1);
        for weight in [-1, 101] {
            assert!(one("InterPodAffinity", &json!({"hardPodAffinityWeight": weight})).is_err());
        }
    }

    #[test]
    fn volumes_may_take_as_long_as_the_profile_says() {
        let timeout =
            |args: Value| one("VolumeBinding", &args).unwrap().volume_bind_timeout.as_secs();
        assert_eq!(timeout(json!({"bindTimeoutSeconds": 30})), 30);
        assert_eq!(timeout(json!({"bindTimeoutSeconds": 0})), 0);
        assert_eq!(timeout(json!({})), 600);
        let refused = |args: Value| one("VolumeBinding", &args).unwrap_err();
        assert!(refused(json!({"bindTimeoutSeconds": -1})).contains("negative"));
        assert!(refused(json!({"shape": []})).contains("StorageCapacityScoring"));
    }

    #[test]
    fn other_plugins_kinds_and_repetitions_are_refused_by_name() {
        let fit = json!({"name": "NodeResourcesFit"});
        let cases = [
            (json!([{"name": "NodePorts", "args": {}}]), "\"NodePorts\" cannot be"),
            (json!([fit, fit]), "NodeResourcesFit is configured twice"),
            (json!([{"name": "Corridor", "args": {"kind": "OtherArgs"}}]), "\"OtherArgs\""),
            (json!([{"name": "InterPodAffinity", "args": {"kind": 7}}]), "kind \"7\""),
            (json!([{"name": "InterPodAffinity", "args": {"weight": 7}}]), "weight"),
            (json!([{"name": "NodeAffinity", "args": 5}]), "args of NodeAffinity"),
        ];
        for (plugins, expected) in cases {
            let error = rules(plugins).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
