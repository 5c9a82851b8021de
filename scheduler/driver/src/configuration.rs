//! `KubeSchedulerConfiguration`: the file that people already have for kube-scheduler, as far as it
//! concerns this scheduler. What cannot be honoured is refused by name, never dropped in silence.

use std::time::Duration;

use engine::{Bypass, EngineConfig, Quota};
use model::{Amount, FailurePolicy};
use serde::Deserialize;
use serde::de::IgnoredAny;

pub const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// The plugin whose `pluginConfig` holds our own settings.
const CORRIDOR_PLUGIN: &str = "Corridor";

/// The document of kind `KubeSchedulerConfiguration`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KubeSchedulerConfiguration {
    api_version: String,
    profiles: Vec<Profile>,
    leader_election: Option<LeaderElection>,
    extenders: Vec<Extender>,
    // Known to kube-scheduler, without a meaning here: see `unused`.
    parallelism: Option<IgnoredAny>,
    percentage_of_nodes_to_score: Option<IgnoredAny>,
    client_connection: Option<IgnoredAny>,
    pod_initial_backoff_seconds: Option<IgnoredAny>,
    pod_max_backoff_seconds: Option<IgnoredAny>,
    enable_profiling: Option<IgnoredAny>,
    enable_contention_profiling: Option<IgnoredAny>,
    delay_cache_until_active: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Profile {
    scheduler_name: Option<String>,
    percentage_of_nodes_to_score: Option<IgnoredAny>,
    plugins: Option<IgnoredAny>,
    plugin_config: Vec<PluginConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PluginConfig {
    name: String,
    /// Read only where the plugin is ours: others have other fields.
    #[serde(default)]
    args: serde_json::Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaderElection {
    resource_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Extender {
    url_prefix: String,
}

/// Settings of ours, for one profile.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct CorridorArgs {
    /// An object of its own in Kubernetes' eyes; there is one version.
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    kind: Option<String>,
    failure_policy: Option<Policy>,
    bypass: Option<BypassArgs>,
    quotas: Vec<QuotaArgs>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Policy {
    Queue,
    FailFast,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct BypassArgs {
    times: Option<u32>,
    seconds: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuotaArgs {
    namespace: String,
    #[serde(default)]
    gbps: Option<f64>,
    #[serde(default)]
    gbs: Option<f64>,
    #[serde(default)]
    pods: Option<usize>,
}

/// What the engine is told, and what people should know about the rest of their file.
#[derive(Clone, Debug, Default)]
pub struct SchedulerConfiguration {
    pub engine: EngineConfig,
    pub notes: Vec<String>,
}

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
    #[error("profiles has {0} entries; one profile is supported")]
    Profiles(usize),
    #[error(
        "profiles[0].schedulerName is {0:?}; this scheduler serves {name} and leaves the Pods of \
         others alone",
        name = crds::SCHEDULER_NAME
    )]
    SchedulerName(String),
    #[error("profiles[0].plugins: choosing plugins is not supported yet; remove the section")]
    Plugins,
    #[error(
        "profiles[0].pluginConfig: {0:?} cannot be configured; the only plugin with settings is \
         {CORRIDOR_PLUGIN}"
    )]
    Plugin(String),
    #[error(
        "profiles[0].pluginConfig: args of {CORRIDOR_PLUGIN} are of kind {0:?}, not CorridorArgs"
    )]
    ArgsKind(String),
    #[error("profiles[0].pluginConfig: {CORRIDOR_PLUGIN} is configured twice")]
    Twice,
    #[error("profiles[0].pluginConfig: args of {CORRIDOR_PLUGIN}: {0}")]
    Args(String),
    #[error("quotas: {field} of namespace {namespace:?} is {value}; it must be a number above 0")]
    Quota { namespace: String, field: &'static str, value: String },
    #[error("quotas: namespace {0:?} has two entries; write one")]
    QuotaTwice(String),
}

impl KubeSchedulerConfiguration {
    pub const KIND: &'static str = "KubeSchedulerConfiguration";

    /// Everything the file asks for, or the first thing in it that cannot be honoured.
    pub fn read(mut self) -> Result<SchedulerConfiguration, ConfigurationError> {
        if self.api_version != API_VERSION {
            return Err(ConfigurationError::ApiVersion(self.api_version));
        }
        if let Some(extender) = self.extenders.first() {
            return Err(ConfigurationError::Extender { url: extender.url_prefix.clone() });
        }
        let lease = self.leader_election.as_ref().and_then(|it| it.resource_name.as_deref());
        if lease == Some("kube-scheduler") {
            return Err(ConfigurationError::LeaseOfKubeScheduler);
        }
        if self.profiles.len() > 1 {
            return Err(ConfigurationError::Profiles(self.profiles.len()));
        }
        let mut notes = self.unused();
        let profile = self.profiles.pop().unwrap_or_default();
        if profile.percentage_of_nodes_to_score.is_some() {
            notes.push(SAMPLING.to_owned());
        }
        Ok(SchedulerConfiguration { engine: profile.read()?, notes })
    }

    /// Fields that are accepted, because files for kube-scheduler have them, and do nothing.
    fn unused(&self) -> Vec<String> {
        let unused = |field: &str, why: &str| format!("{field} is not used: {why}");
        let fields = [
            (self.parallelism.is_some(), unused("parallelism", "decisions are made one by one")),
            (self.percentage_of_nodes_to_score.is_some(), SAMPLING.to_owned()),
            (
                self.client_connection.is_some(),
                unused("clientConnection", "see --kubeconfig; requests are not limited by rate"),
            ),
            (
                self.leader_election.is_some(),
                unused("leaderElection", "one replica runs, with --leader-elect=false"),
            ),
            (
                self.pod_initial_backoff_seconds.is_some()
                    || self.pod_max_backoff_seconds.is_some(),
                unused("podInitialBackoffSeconds / podMaxBackoffSeconds", "1 s and 10 s are fixed"),
            ),
            (
                self.enable_profiling.is_some() || self.enable_contention_profiling.is_some(),
                unused("enableProfiling", "there is no profiling endpoint"),
            ),
            (
                self.delay_cache_until_active.is_some(),
                unused("delayCacheUntilActive", "followers keep their caches warm"),
            ),
        ];
        fields.into_iter().filter(|(is_set, _)| *is_set).map(|(_, note)| note).collect()
    }
}

const SAMPLING: &str = "percentageOfNodesToScore is not used: every node is considered";

impl Profile {
    fn read(self) -> Result<EngineConfig, ConfigurationError> {
        match self.scheduler_name {
            Some(name) if name != crds::SCHEDULER_NAME => {
                return Err(ConfigurationError::SchedulerName(name));
            }
            _ => {}
        }
        if self.plugins.is_some() {
            return Err(ConfigurationError::Plugins);
        }
        let mut plugins = self.plugin_config.into_iter();
        let Some(plugin) = plugins.next() else { return Ok(EngineConfig::default()) };
        if let Some(other) =
            std::iter::once(&plugin).chain(plugins.as_slice()).find(|it| it.name != CORRIDOR_PLUGIN)
        {
            return Err(ConfigurationError::Plugin(other.name.clone()));
        }
        if plugins.next().is_some() {
            return Err(ConfigurationError::Twice);
        }
        if plugin.args.is_null() {
            return Ok(EngineConfig::default());
        }
        let args: CorridorArgs = serde_json::from_value(plugin.args)
            .map_err(|error| ConfigurationError::Args(error.to_string()))?;
        args.read()
    }
}

impl CorridorArgs {
    fn read(self) -> Result<EngineConfig, ConfigurationError> {
        if let Some(kind) = self.kind.filter(|kind| kind != "CorridorArgs") {
            return Err(ConfigurationError::ArgsKind(kind));
        }
        let mut config = EngineConfig::default();
        if let Some(policy) = self.failure_policy {
            config.failure_policy = match policy {
                Policy::Queue => FailurePolicy::Queue,
                Policy::FailFast => FailurePolicy::FailFast,
            };
        }
        let bypass = self.bypass.unwrap_or_default();
        let Bypass { times_max, span_max } = config.bypass;
        config.bypass = Bypass {
            times_max: bypass.times.unwrap_or(times_max),
            span_max: bypass.seconds.map_or(span_max, |it| Duration::from_secs(it.into())),
        };
        for quota in self.quotas {
            let quota = quota.read()?;
            if config.quotas.iter().any(|it| it.namespace == quota.namespace) {
                return Err(ConfigurationError::QuotaTwice(quota.namespace.to_string()));
            }
            config.quotas.push(quota);
        }
        Ok(config)
    }
}

impl QuotaArgs {
    fn read(self) -> Result<Quota, ConfigurationError> {
        let amount = |field, value: Option<f64>| match value {
            None => Ok(None),
            Some(value) => match Amount::from_measured(value) {
                amount if amount.is_zero() => Err(ConfigurationError::Quota {
                    namespace: self.namespace.clone(),
                    field,
                    value: value.to_string(),
                }),
                amount => Ok(Some(amount)),
            },
        };
        let (corridor, bundle) = (amount("gbps", self.gbps)?, amount("gbs", self.gbs)?);
        Ok(Quota { namespace: self.namespace.as_str().into(), corridor, bundle, pods: self.pods })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &str) -> Result<SchedulerConfiguration, String> {
        let json = format!(r#"{{"apiVersion":"{API_VERSION}",{fields}}}"#);
        let parsed: KubeSchedulerConfiguration =
            serde_json::from_str(&json).map_err(|error| error.to_string())?;
        parsed.read().map_err(|error| error.to_string())
    }

    #[test]
    fn our_settings_are_those_of_the_plugin_corridor() {
        let config = read(
            r#""profiles":[{"pluginConfig":[{"name":"Corridor","args":{"kind":"CorridorArgs",
            "failurePolicy":"FailFast","bypass":{"times":3},
            "quotas":[{"namespace":"team-a","gbps":40.5,"pods":7}]}}]}]"#,
        )
        .unwrap()
        .engine;
        assert_eq!(config.failure_policy, FailurePolicy::FailFast);
        assert_eq!(config.bypass.times_max, 3);
        assert_eq!(config.bypass.span_max, Bypass::default().span_max, "left out: the default");
        let [quota] = config.quotas.as_slice() else { panic!("{:?}", config.quotas) };
        assert_eq!(quota.corridor, Some(Amount::from_milli(40_500)));
        assert_eq!((quota.bundle, quota.pods), (None, Some(7)));
    }

    #[test]
    fn a_plain_file_of_kube_scheduler_is_read_and_what_has_no_meaning_is_told() {
        let config = read(
            r#""parallelism":16,"percentageOfNodesToScore":50,
            "leaderElection":{"leaderElect":true},"profiles":[{"schedulerName":"corridor-scheduler"}]"#,
        )
        .unwrap();
        assert_eq!(config.notes.len(), 3, "{:?}", config.notes);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        let cases = [
            (r#""extenders":[{"urlPrefix":"http://x"}]"#, "http://x"),
            (r#""leaderElection":{"resourceName":"kube-scheduler"}"#, "own Lease"),
            (r#""profiles":[{"schedulerName":"default-scheduler"}]"#, "default-scheduler"),
            (r#""profiles":[{},{}]"#, "2 entries"),
            (r#""profiles":[{"plugins":{}}]"#, "choosing plugins"),
            (r#""profiles":[{"pluginConfig":[{"name":"NoSuch"}]}]"#, "NoSuch"),
            (r#""noSuchField":1"#, "noSuchField"),
            (
                r#""profiles":[{"pluginConfig":[{"name":"Corridor","args":{"failurePolicy":"Maybe"}}]}]"#,
                "Maybe",
            ),
            (
                r#""profiles":[{"pluginConfig":[{"name":"Corridor","args":
                {"quotas":[{"namespace":"a","gbps":-1}]}}]}]"#,
                "gbps of namespace \"a\" is -1",
            ),
        ];
        for (fields, expected) in cases {
            let error = read(fields).unwrap_err();
            assert!(error.contains(expected), "{fields}: {error}");
        }
        let wrong: KubeSchedulerConfiguration = serde_json::from_str("{}").unwrap();
        assert!(wrong.read().unwrap_err().to_string().contains(API_VERSION));
    }
}
