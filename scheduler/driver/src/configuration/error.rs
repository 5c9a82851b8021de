use super::{API_VERSION, CORRIDOR_PLUGIN};
use crate::election::SettingsError;

/// Why a `KubeSchedulerConfiguration` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    #[error("apiVersion of KubeSchedulerConfiguration is {0:?}; it must be {API_VERSION}")]
    ApiVersion(String),
    #[error("extenders[0] ({url}): extenders are not supported; remove the list")]
    Extender { url: String },
    #[error(
        "leaderElection.resourceName is kube-scheduler, the default scheduler's own Lease; leave it \
         out, choose another name, or give --replace-default"
    )]
    LeaseOfKubeScheduler,
    #[error("leaderElection.resourceLock is {0:?}; only leases are supported")]
    ResourceLock(String),
    #[error(transparent)]
    LeaderElection(SettingsError),
    #[error("profiles has {0} entries; {max} are supported", max = super::PROFILES_MAX)]
    Profiles(usize),
    #[error(
        "profiles[{index}].schedulerName is default-scheduler, whose Pods kube-scheduler places; choose \
         another name, or give --replace-default where kube-scheduler does not run"
    )]
    DefaultScheduler { index: usize },
    #[error("profiles[{index}].schedulerName {name:?} is taken by a profile before")]
    SchedulerNameTwice { index: usize, name: String },
    #[error("profiles[{index}] ({name}): {why}")]
    Profile { index: usize, name: String, why: ProfileError },
    #[error(
        "profiles[{index}] ({name}): {setting} of the plugin Corridor differs from that of a profile \
         before; Pods of all profiles stand in one line, so say it once"
    )]
    SharedSetting { index: usize, name: String, setting: &'static str },
}

/// Why a profile cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("plugins.{point}: {plugin:?} cannot be disabled")]
    Disabled { point: &'static str, plugin: &'static str },
    #[error("plugins.{point}: {plugin:?} is no plugin of this scheduler")]
    UnknownPlugin { point: &'static str, plugin: String },
    #[error("plugins.{point}: {plugin:?} takes no part there")]
    NotThere { point: &'static str, plugin: String },
    #[error(
        "plugins: {plugin:?} takes part in {first} and {second} together; switch it off at both, or at \
         neither (multiPoint does both)"
    )]
    Half { plugin: &'static str, first: &'static str, second: &'static str },
    #[error("plugins.{point}: {plugin:?} is enabled twice")]
    EnabledTwice { point: &'static str, plugin: String },
    #[error("plugins.{point}: weight of {plugin:?} is {weight}; it must not be negative")]
    Weight { point: &'static str, plugin: String, weight: i32 },
    #[error(
        "pluginConfig: {0:?} cannot be configured; the plugins with settings are {CORRIDOR_PLUGIN}, \
         {names}",
        names = super::plugin_args::CONFIGURABLE.map(|it| it.name).join(", ")
    )]
    Plugin(String),
    #[error("pluginConfig: args of {plugin} are of kind {kind:?}, not {plugin}Args")]
    ArgsKind { plugin: String, kind: String },
    #[error("pluginConfig: {0} is configured twice")]
    Twice(String),
    #[error("pluginConfig: args of {plugin}: {why}")]
    Args { plugin: String, why: String },
    #[error("quotas: {field} of namespace {namespace:?} is {value}; it must be a number above 0")]
    Quota { namespace: String, field: &'static str, value: String },
    #[error("quotas: namespace {0:?} has two entries; write one")]
    QuotaTwice(String),
}
