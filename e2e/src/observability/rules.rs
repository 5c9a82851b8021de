//! The rule files of `config/prometheus/`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::control_plane::CONFIG_DIR;
use crate::error::{Doing as _, Error, Result};

#[derive(Debug, Clone)]
pub struct Rule {
    /// What it records, or the name of its alert.
    pub name: String,
    pub is_alert: bool,
    /// What its series are found by: the name, with the labels that the rule sets.
    pub selector: String,
    pub expression: String,
    /// Its annotation `runbook_url`, of an alert.
    pub runbook: String,
}

/// Every file with rules.
pub fn rule_files() -> Result<Vec<PathBuf>> {
    yaml_files(&Path::new(CONFIG_DIR).join("prometheus"))
}

/// Every file with tests of rules.
pub fn rule_tests() -> Result<Vec<PathBuf>> {
    yaml_files(&Path::new(CONFIG_DIR).join("prometheus/tests"))
}

/// Every rule, in the order of files.
pub fn rules() -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for path in rule_files()? {
        let document = read_yaml(&path)?;
        let groups = document["groups"].as_array().cloned().unwrap_or_default();
        let listed =
            groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten());
        for rule in listed {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (alert, record) = (text(&rule["alert"]), text(&rule["record"]));
            let labels = rule["labels"].as_object().into_iter().flatten();
            let labels: Vec<_> = labels.map(|(name, value)| format!("{name}={value}")).collect();
            rules.push(Rule {
                is_alert: !alert.is_empty(),
                selector: format!("{record}{{{}}}", labels.join(", ")),
                name: if alert.is_empty() { record } else { alert },
                expression: text(&rule["expr"]),
                runbook: text(&rule["annotations"]["runbook_url"]),
            });
        }
    }
    Ok(rules)
}

/// A YAML file as a value.
pub fn read_yaml(path: &Path) -> Result<Value> {
    let doing = || format!("reading {}", path.display());
    let text = fs::read_to_string(path).doing(doing())?;
    serde_saphyr::from_str(&text).map_err(|problem| Error::malformed(doing(), problem))
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let doing = || format!("reading {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).doing(doing())? {
        let path = entry.doing(doing())?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::malformed(doing(), "there is no YAML in it"));
    }
    Ok(files)
}
