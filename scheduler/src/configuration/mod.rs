//! What operators set: YAML documents from files or a ConfigMap, each read by the half of the process it is
//! for.

mod change;
mod config_map;
mod live;

use std::path::PathBuf;

use controllers::{CorridorConfiguration, Settings};
use driver::{KubeSchedulerConfiguration, SchedulerConfiguration};
use engine::{CacheLimit, EventQueue};
use serde::Deserialize;

pub use self::config_map::ConfigMapName;
pub use self::live::{Listeners, Live, LiveError, Reloads};

/// Everything that can be said, checked.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    pub scheduler: SchedulerConfiguration,
    pub corridor: CorridorConfiguration,
    pub settings: Settings,
}

/// Documents tell what they are by their kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
enum Document {
    KubeSchedulerConfiguration(KubeSchedulerConfiguration),
    CorridorConfiguration(CorridorConfiguration),
}

#[derive(Debug, thiserror::Error)]
#[error("--config {path}: {why}")]
pub struct ConfigurationError {
    path: PathBuf,
    why: String,
}

/// What the command line says, whatever the documents do.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub cluster_name: &'a str,
    pub seed: u64,
    pub events: EventQueue,
    pub cache: CacheLimit,
}

impl Configuration {
    #[must_use]
    pub fn of(mut self, known: Known<'_>) -> Self {
        known.cluster_name.clone_into(&mut self.settings.cluster_name);
        self.scheduler.engine.seed = known.seed;
        self.scheduler.engine.events = known.events;
        self.scheduler.engine.cache = known.cache;
        self
    }

    /// What all the files say together. Without a file: the defaults.
    pub fn load(paths: &[PathBuf], replace_default: bool) -> Result<Self, ConfigurationError> {
        let mut documents = Vec::new();
        for path in paths {
            let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
            let read = read.and_then(|text| read_documents(&text));
            let why = |why: String| ConfigurationError { path: path.clone(), why };
            documents.extend(read.map_err(why)?);
        }
        // An error that only shows when all are read names the last file: mostly there is but one.
        let path = paths.last().cloned().unwrap_or_default();
        Self::join(documents, replace_default).map_err(|why| ConfigurationError { path, why })
    }

    #[cfg(test)]
    fn parse(text: &str) -> Result<Self, String> {
        read_documents(text).and_then(|documents| Self::join(documents, false))
    }

    fn join(documents: Vec<Document>, replace_default: bool) -> Result<Self, String> {
        let (mut scheduler, mut corridor) = (None, None);
        for document in documents {
            let is_second = match document {
                Document::KubeSchedulerConfiguration(it) => scheduler.replace(it).is_some(),
                Document::CorridorConfiguration(it) => corridor.replace(it).is_some(),
            };
            if is_second {
                return Err("two documents are of one kind; join them".to_owned());
            }
        }
        let scheduler = scheduler.map(|it| it.read(replace_default)).transpose();
        let settings = corridor.as_ref().map(CorridorConfiguration::settings).transpose();
        Ok(Self {
            scheduler: scheduler.map_err(|error| error.to_string())?.unwrap_or_default(),
            settings: settings.map_err(|error| error.to_string())?.unwrap_or_default(),
            corridor: corridor.unwrap_or_default(),
        })
    }
}

fn read_documents(text: &str) -> Result<Vec<Document>, String> {
    serde_saphyr::from_multiple(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = r"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: corridor-scheduler
    pluginConfig:
      - name: Corridor
        args:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: CorridorArgs
          failurePolicy: FailFast
---
apiVersion: corridoros.io/v1alpha1
kind: CorridorConfiguration
ber:
  dwellSeconds: 30
backends:
  corrdUrl: https://corrd:7080
";

    #[test]
    fn both_documents_are_read_from_one_stream() {
        let read = Configuration::parse(BOTH).unwrap();
        let profile = read.scheduler.engine.profiles.of(crds::SCHEDULER_NAME);
        assert_eq!(profile.failure_policy, model::FailurePolicy::FailFast);
        assert_eq!(read.settings.ber_dwell.as_secs(), 30);
        assert_eq!(read.corridor.backends.corrd_url.as_deref(), Some("https://corrd:7080"));
        Configuration::parse("").unwrap();
    }

    /// As people write it for kube-scheduler: a second scheduler that scores nothing.
    const NO_SCORING: &str = r"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
  - schedulerName: no-scoring-scheduler
    plugins:
      preScore:
        disabled:
        - name: '*'
      score:
        disabled:
        - name: '*'
";

    #[test]
    fn a_file_for_kube_scheduler_is_read_as_it_is_or_refused_by_what_is_missing() {
        let error = Configuration::parse(NO_SCORING).unwrap_err();
        assert!(error.contains("default-scheduler") && error.contains("--replace-default"));
        let documents = read_documents(NO_SCORING).unwrap();
        let read = Configuration::join(documents, true).unwrap();
        let profiles = read.scheduler.engine.profiles;
        let rules = |name| profiles.of(name).rules.clone();
        assert_eq!(rules("no-scoring-scheduler").switched_off.scores.len(), 9);
        assert_eq!(rules("default-scheduler"), engine::Rules::default());
        let custom = NO_SCORING.replace("'*'", "MyCustomPlugin").replace("disabled", "enabled");
        let error = Configuration::join(read_documents(&custom).unwrap(), true).unwrap_err();
        assert!(error.contains("\"MyCustomPlugin\" is no plugin"), "{error}");
    }

    #[test]
    fn a_bad_file_is_refused_with_its_field_or_kind() {
        let twice = format!("{BOTH}\n---\n{BOTH}");
        let cases = [
            ("kind: Pod\napiVersion: v1\n", "CorridorConfiguration"),
            ("kind: CorridorConfiguration\nberr: {}\n", "berr"),
            ("kind: CorridorConfiguration\n", "corridoros.io/v1alpha1"),
            ("kind: [", "line"),
            (twice.as_str(), "one kind"),
        ];
        for (text, expected) in cases {
            let error = Configuration::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
