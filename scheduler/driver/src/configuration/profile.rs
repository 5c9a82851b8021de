//! `profiles`: several schedulers by name, in one process.

use engine::{Bypass, EngineConfig, Profile as EngineProfile, Quota};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error::{ConfigurationError, ProfileError};
use super::plugin_args::{self, PluginConfig};
use super::plugins::Plugins;
use super::{DEFAULT_SCHEDULER, SAMPLING};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Profile {
    /// The Pods that it serves: those with this `schedulerName`.
    scheduler_name: Option<String>,
    /// Not used: every node is considered.
    #[schemars(with = "Option<u32>")]
    percentage_of_nodes_to_score: Option<IgnoredAny>,
    /// Plugins switched on and off, and the weights of scores.
    plugins: Plugins,
    /// The args of plugins.
    plugin_config: Vec<PluginConfig>,
}

/// What a profile says: some of it for its own Pods, some for the lines that it shares with the others.
#[derive(Debug, Default)]
pub(super) struct ProfileSettings {
    pub profile: EngineProfile,
    pub bypass: Option<Bypass>,
    pub quotas: Option<Vec<Quota>>,
}

/// One profile by our own name.
pub(super) fn defaults() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.profiles.insert(crds::SCHEDULER_NAME, EngineProfile::default());
    config
}

/// None at all is one by our own name.
pub(super) fn read(
    profiles: Vec<Profile>,
    replace_default: bool,
    notes: &mut Vec<String>,
) -> Result<EngineConfig, ConfigurationError> {
    if profiles.is_empty() {
        return Ok(defaults());
    }
    let (mut config, mut bypass, mut quotas) = (EngineConfig::default(), None, None);
    for (index, profile) in profiles.into_iter().enumerate() {
        let name = profile.name();
        if name == DEFAULT_SCHEDULER && !replace_default {
            return Err(ConfigurationError::DefaultScheduler { index });
        }
        let settings = profile.read(notes).map_err(|why| ConfigurationError::Profile {
            index,
            name: name.clone(),
            why,
        })?;
        if config.profiles.insert(&name, settings.profile).is_some() {
            return Err(ConfigurationError::SchedulerNameTwice { index, name });
        }
        let differs =
            |setting| ConfigurationError::SharedSetting { index, name: name.clone(), setting };
        share(&mut bypass, settings.bypass).map_err(|()| differs("bypass"))?;
        share(&mut quotas, settings.quotas).map_err(|()| differs("quotas"))?;
    }
    config.bypass = bypass.unwrap_or_default();
    config.quotas = quotas.unwrap_or_default();
    Ok(config)
}

/// Keeps what was said first; the same may be said again.
fn share<T: PartialEq>(kept: &mut Option<T>, said: Option<T>) -> Result<(), ()> {
    match (&kept, &said) {
        (Some(kept), Some(said)) if kept != said => Err(()),
        (None, Some(_)) => {
            *kept = said;
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Profile {
    fn name(&self) -> String {
        let name = self.scheduler_name.clone().filter(|name| !name.is_empty());
        name.unwrap_or_else(|| crds::SCHEDULER_NAME.to_owned())
    }

    fn read(self, notes: &mut Vec<String>) -> Result<ProfileSettings, ProfileError> {
        if self.percentage_of_nodes_to_score.is_some() {
            notes.push(SAMPLING.to_owned());
        }
        let mut settings = ProfileSettings::default();
        plugin_args::read(self.plugin_config, &mut settings, notes)?;
        self.plugins.apply(&mut settings.profile.rules)?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn profiles(list: Value, replace_default: bool) -> Result<EngineConfig, String> {
        let list = serde_json::from_value(list).map_err(|error| error.to_string())?;
        read(list, replace_default, &mut Vec::new()).map_err(|error| error.to_string())
    }

    fn ours(name: &str, args: &Value) -> Value {
        json!({"schedulerName": name, "pluginConfig": [{"name": "Corridor", "args": args}]})
    }

    #[test]
    fn each_profile_has_its_own_rules() {
        let score =
            |weight| json!({"score": {"enabled": [{"name": "ImageLocality", "weight": weight}]}});
        let config = profiles(
            json!([{"plugins": score(3)}, {"schedulerName": "batch", "plugins": score(9)}]),
            false,
        )
        .unwrap();
        let weight = |name| config.profiles.of(name).rules.weight_of(engine::Plugin::ImageLocality);
        assert_eq!((weight("corridor-scheduler"), weight("batch")), (3, 9));
        assert_eq!(config.profiles.names().count(), 2);
        assert_eq!(profiles(json!([]), false).unwrap(), defaults());
    }

    #[test]
    fn what_lines_share_is_said_once_or_the_same() {
        let bypass = |times: u32| json!({"bypass": {"times": times}});
        let both = profiles(json!([ours("a", &bypass(3)), ours("b", &bypass(3))]), false).unwrap();
        assert_eq!(both.bypass.times_max, 3);
        let one = profiles(json!([ours("a", &json!({})), ours("b", &bypass(5))]), false).unwrap();
        assert_eq!(one.bypass.times_max, 5);
        let error = profiles(json!([ours("a", &bypass(3)), ours("b", &bypass(4))]), false);
        assert!(error.unwrap_err().contains("profiles[1] (b): bypass"));
        let quota = |pods: u32| json!({"quotas": [{"namespace": "x", "pods": pods}]});
        let error = profiles(json!([ours("a", &quota(3)), ours("b", &quota(4))]), false);
        assert!(error.unwrap_err().contains("profiles[1] (b): quotas"));
    }

    #[test]
    fn the_default_schedulers_pods_are_taken_only_on_request() {
        let list = json!([{"schedulerName": DEFAULT_SCHEDULER}]);
        let error = profiles(list.clone(), false).unwrap_err();
        assert!(error.contains("--replace-default"), "{error}");
        let config = profiles(list, true).unwrap();
        assert!(config.profiles.names().eq([&DEFAULT_SCHEDULER.into()]));
    }
}
