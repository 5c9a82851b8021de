//! `KubeSchedulerConfiguration`: the file that people already have for kube-scheduler, as far as it
//! concerns this scheduler. What cannot be honoured is refused by name, never dropped in silence.

mod corridor;
mod error;
mod leader_election;
mod plugin_args;
mod plugins;
mod profile;
mod reference;
mod scoring;

use engine::EngineConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use leader_election::LeaderElection;
use profile::Profile;

pub use error::{ConfigurationError, ProfileError};
pub use reference::{Described, described};

use crate::election::ElectionSettings;

pub const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// The name by which kube-scheduler serves Pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The plugin whose `pluginConfig` holds our own settings.
const CORRIDOR_PLUGIN: &str = "Corridor";

/// Each has rules of its own, and waiting Pods are judged by each: more is a mistake.
const PROFILES_MAX: usize = 16;

/// The document of kind `KubeSchedulerConfiguration`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KubeSchedulerConfiguration {
    /// `kubescheduler.config.k8s.io/v1`.
    api_version: String,
    /// Schedulers by name, in one process: up to 16. None: one by our own name.
    profiles: Vec<Profile>,
    /// Which replica decides: docs/replicas.md.
    leader_election: LeaderElection,
    /// Refused.
    extenders: Vec<Extender>,
    // Known to kube-scheduler, without a meaning here: see `unused`.
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    parallelism: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    percentage_of_nodes_to_score: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    client_connection: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    pod_initial_backoff_seconds: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    pod_max_backoff_seconds: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    enable_profiling: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    enable_contention_profiling: Option<IgnoredAny>,
    /// Not used.
    #[schemars(with = "Option<serde_json::Value>")]
    delay_cache_until_active: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Extender {
    /// It is named when it is refused.
    url_prefix: String,
}

/// The settings of the engine and the election, and notes about the rest of the file.
#[derive(Clone, Debug)]
pub struct SchedulerConfiguration {
    pub engine: EngineConfig,
    pub election: ElectionSettings,
    /// Whether the file wants an election; none if it does not say.
    pub leader_elect: Option<bool>,
    pub notes: Vec<String>,
}

/// What holds when no file says anything.
impl Default for SchedulerConfiguration {
    fn default() -> Self {
        Self {
            engine: profile::defaults(),
            election: ElectionSettings::default(),
            leader_elect: None,
            notes: Vec::new(),
        }
    }
}

impl KubeSchedulerConfiguration {
    pub const KIND: &'static str = "KubeSchedulerConfiguration";

    /// Everything the file asks for, or the first thing in it that cannot be honoured. With
    /// `replace_default` it may take over what kube-scheduler serves.
    pub fn read(
        mut self,
        replace_default: bool,
    ) -> Result<SchedulerConfiguration, ConfigurationError> {
        if self.api_version != API_VERSION {
            return Err(ConfigurationError::ApiVersion(self.api_version));
        }
        if let Some(extender) = self.extenders.first() {
            return Err(ConfigurationError::Extender { url: extender.url_prefix.clone() });
        }
        if self.profiles.len() > PROFILES_MAX {
            return Err(ConfigurationError::Profiles(self.profiles.len()));
        }
        let mut notes = self.unused();
        let leader_elect = self.leader_election.leader_elect;
        let election =
            std::mem::take(&mut self.leader_election).read(replace_default, &mut notes)?;
        let engine = profile::read(self.profiles, replace_default, &mut notes)?;
        notes.dedup();
        Ok(SchedulerConfiguration { engine, election, leader_elect, notes })
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Bypass;
    use model::{Amount, FailurePolicy};

    pub(super) fn read(fields: &str) -> Result<SchedulerConfiguration, String> {
        let json = format!(r#"{{"apiVersion":"{API_VERSION}",{fields}}}"#);
        let parsed: KubeSchedulerConfiguration =
            serde_json::from_str(&json).map_err(|error| error.to_string())?;
        parsed.read(false).map_err(|error| error.to_string())
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
        assert_eq!(
            config.profiles.of(crds::SCHEDULER_NAME).failure_policy,
            FailurePolicy::FailFast
        );
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
        assert_eq!(config.notes.len(), 2, "{:?}", config.notes);
        assert_eq!(config.leader_elect, Some(true));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        let cases = [
            (r#""extenders":[{"urlPrefix":"http://x"}]"#, "http://x"),
            (r#""leaderElection":{"resourceName":"kube-scheduler"}"#, "own Lease"),
            (r#""profiles":[{"schedulerName":"default-scheduler"}]"#, "default-scheduler"),
            (r#""profiles":[{},{}]"#, "\"corridor-scheduler\" is taken"),
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
        assert!(wrong.read(false).unwrap_err().to_string().contains(API_VERSION));
    }
}
