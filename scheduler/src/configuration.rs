//! `--config FILE`: a stream of YAML documents, each read by the half of the process it is for.

use std::path::PathBuf;

use controllers::{CorridorConfiguration, Settings};
use driver::{KubeSchedulerConfiguration, SchedulerConfiguration};
use serde::Deserialize;

/// Everything a file can say, checked.
#[derive(Debug, Default)]
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

impl Configuration {
    /// What all the files say together. Without a file: the defaults.
    pub fn load(paths: &[PathBuf]) -> Result<Self, ConfigurationError> {
        let mut documents = Vec::new();
        for path in paths {
            let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
            let read = read.and_then(|text| read_documents(&text));
            let why = |why: String| ConfigurationError { path: path.clone(), why };
            documents.extend(read.map_err(why)?);
        }
        // What only shows when all are read is told of the last: mostly there is but one.
        let path = paths.last().cloned().unwrap_or_default();
        Self::join(documents).map_err(|why| ConfigurationError { path, why })
    }

    #[cfg(test)]
    fn parse(text: &str) -> Result<Self, String> {
        read_documents(text).and_then(Self::join)
    }

    fn join(documents: Vec<Document>) -> Result<Self, String> {
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
        let scheduler = scheduler.map(KubeSchedulerConfiguration::read).transpose();
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
        assert_eq!(read.scheduler.engine.failure_policy, model::FailurePolicy::FailFast);
        assert_eq!(read.settings.ber_dwell.as_secs(), 30);
        assert_eq!(read.corridor.backends.corrd_url.as_deref(), Some("https://corrd:7080"));
        Configuration::parse("").unwrap();
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
