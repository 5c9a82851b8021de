//! The kube-scheduler that the plain rules are compared with, and the control plane of the end-to-end
//! tests, are the same release built from the same modules.

use std::collections::BTreeMap;

const DIFFERENTIAL: &str = include_str!("../differential/go.mod");
const CONTROL_PLANE: &str = include_str!("../../../e2e/control-plane/go.mod");

/// What a go.mod says about each module: its version, and what it is replaced by.
fn pinned(go_mod: &str) -> BTreeMap<&str, &str> {
    let lines = go_mod.lines().filter_map(|line| line.strip_prefix('\t'));
    let lines = lines.map(|line| line.trim_end_matches(" // indirect"));
    lines.filter_map(|line| line.split_once(' ')).collect()
}

#[test]
fn both_go_modules_pin_the_same_versions() {
    let (ours, theirs) = (pinned(DIFFERENTIAL), pinned(CONTROL_PLANE));
    assert!(ours.contains_key("k8s.io/kubernetes"), "the file was understood: {ours:?}");
    for (module, version) in ours {
        assert_eq!(theirs.get(module), Some(&version), "{module}");
    }
}
