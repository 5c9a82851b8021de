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
         out or choose another name"
    )]
    LeaseOfKubeScheduler,
    #[error("leaderElection.resourceLock is {0:?}; only leases are supported")]
    ResourceLock(String),
    #[error(transparent)]
    LeaderElection(SettingsError),
    #[error("profiles has {0} entries; one profile is supported")]
    Profiles(usize),
    #[error(
        "profiles[0].schedulerName is {0:?}; this scheduler serves {name} and leaves the Pods of \
         others alone",
        name = crds::SCHEDULER_NAME
    )]
    SchedulerName(String),
    #[error("profiles[0].plugins.{point}: {plugin:?} cannot be disabled")]
    Disabled { point: &'static str, plugin: String },
    #[error("profiles[0].plugins.{point}: {plugin:?} is no plugin of this scheduler")]
    UnknownPlugin { point: &'static str, plugin: String },
    #[error(
        "profiles[0].plugins.{point}: {plugin:?} cannot be chosen there; every plugin runs, and in \
         kube-scheduler's order"
    )]
    Point { point: &'static str, plugin: String },
    #[error("profiles[0].plugins.{point}: {plugin:?} is enabled twice")]
    EnabledTwice { point: &'static str, plugin: String },
    #[error(
        "profiles[0].plugins.{point}: weight of {plugin:?} is {weight}; it must not be negative"
    )]
    Weight { point: &'static str, plugin: String, weight: i32 },
    #[error(
        "profiles[0].pluginConfig: {0:?} cannot be configured; the plugins with settings are \
         {CORRIDOR_PLUGIN}, {names}",
        names = super::plugin_args::CONFIGURABLE.join(", ")
    )]
    Plugin(String),
    #[error("profiles[0].pluginConfig: args of {plugin} are of kind {kind:?}, not {plugin}Args")]
    ArgsKind { plugin: String, kind: String },
    #[error("profiles[0].pluginConfig: {0} is configured twice")]
    Twice(String),
    #[error("profiles[0].pluginConfig: args of {plugin}: {why}")]
    Args { plugin: String, why: String },
    #[error("quotas: {field} of namespace {namespace:?} is {value}; it must be a number above 0")]
    Quota { namespace: String, field: &'static str, value: String },
    #[error("quotas: namespace {0:?} has two entries; write one")]
    QuotaTwice(String),
}
