//! Rules by Prometheus's own tool, and whether each alert leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use e2e::binaries::PrometheusPrograms;
use e2e::control_plane::CONFIG_DIR;
use e2e::observability::prometheus_server::promtool;
use e2e::observability::rules::{rule_files, rule_tests, rules};

/// As far as the path in the repository.
const RUNBOOK_PREFIX: &str = "{{ $externalLabels.corridor_runbooks }}";

#[test]
fn promtool_finds_the_rules_right_and_their_tests_pass() {
    let programs = PrometheusPrograms::locate().unwrap();
    for path in rule_files().unwrap() {
        let told = promtool(&programs, &["check", "rules", &path.to_string_lossy()]).unwrap();
        assert!(told.contains("SUCCESS"), "{told}");
    }
    for path in rule_tests().unwrap() {
        let told = promtool(&programs, &["test", "rules", &path.to_string_lossy()]).unwrap();
        assert!(told.contains("SUCCESS"), "{told}");
    }
}

#[test]
fn every_alert_is_tested_and_has_a_runbook() {
    let tests: String =
        rule_tests().unwrap().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let root = Path::new(CONFIG_DIR).parent().unwrap();
    let index = fs::read_to_string(root.join("docs/runbooks/README.md")).unwrap();
    let mut linked = BTreeSet::new();
    let rules = rules().unwrap();
    for alert in rules.iter().filter(|rule| rule.is_alert) {
        let name = &alert.name;
        let forms = [format!("alertname: {name}\n"), format!("alertname=\"{name}\"")];
        assert!(forms.iter().any(|form| tests.contains(form)), "{name} has no test");
        let page = alert.runbook.strip_prefix(RUNBOOK_PREFIX).unwrap_or_default();
        assert!(root.join(page).is_file(), "{name}: there is no page {page:?}");
        let file = page.rsplit('/').next().unwrap();
        assert!(index.contains(&format!("| `{name}` | [{file}]({file}) |")), "{name}: {file}");
        linked.insert(file.to_owned());
    }
    for entry in fs::read_dir(root.join("docs/runbooks")).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(file == "README.md" || linked.contains(&file), "no alert leads to {file}");
    }
}
