//! The evaluator that expressions are compared with, and the control plane of the end-to-end tests, are the same release.

use std::collections::BTreeMap;

const DIFFERENTIAL: &str = include_str!("../differential/go.mod");
const CONTROL_PLANE: &str = include_str!("../../../e2e/control-plane/go.mod");

/// The version of each module. Replacements of the control plane are the modules of the same release.
fn pinned(go_mod: &str) -> BTreeMap<&str, &str> {
    let lines = go_mod.lines().filter(|line| !line.contains("=>"));
    let lines = lines.filter_map(|line| line.strip_prefix('\t'));
    let lines = lines.map(|line| line.trim_end_matches(" // indirect"));
    lines.filter_map(|line| line.split_once(' ')).collect()
}

#[test]
fn both_go_modules_pin_the_same_versions() {
    let (ours, theirs) = (pinned(DIFFERENTIAL), pinned(CONTROL_PLANE));
    for evaluator in ["k8s.io/dynamic-resource-allocation", "github.com/google/cel-go"] {
        assert!(ours.contains_key(evaluator), "the file was understood: {ours:?}");
    }
    for (module, version) in ours {
        if let Some(theirs) = theirs.get(module) {
            assert_eq!(*theirs, version, "{module}");
        }
    }
}
