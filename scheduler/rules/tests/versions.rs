//! The kube-scheduler that the plain rules are compared with, and the control plane of the end-to-end
//! tests, are the same release built from the same modules.

use std::collections::BTreeMap;

const DIFFERENTIAL: &str = include_str!("../differential/go.mod");
const DEVICE_ALLOCATOR: &str = include_str!("../device-allocator/go.mod");
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

/// Its go.mod names fewer modules, and those of Kubernetes without a replacement.
#[test]
fn the_allocator_of_devices_is_of_the_same_release() {
    let (ours, theirs) = (pinned(DEVICE_ALLOCATOR), pinned(CONTROL_PLANE));
    assert!(ours.contains_key("k8s.io/dynamic-resource-allocation"), "it was understood: {ours:?}");
    for (module, version) in ours {
        let theirs = theirs.get(module).unwrap_or_else(|| panic!("{module} is not pinned there"));
        assert_eq!(theirs.split(' ').next_back(), Some(version), "{module}");
    }
}
