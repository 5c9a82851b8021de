//! The admission policies name annotations and finalizers in their expressions: the same as the code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test is what they report")]

use std::collections::BTreeSet;
use std::fs;

use crds::annotations::{
    CORRIDOR_REF, KEPT_BY_CONTROLLERS, LEADER, MEMORY_BUNDLE_REF, OVERRIDE, RESULTS,
};

/// Without its comments, which may have apostrophes.
fn policy(name: &str) -> String {
    let path = format!("{}/../config/admission/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"));
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    text.lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n")
}

/// What stands between single quotes and begins with our prefix: keys in expressions, and nothing else.
fn keys(text: &str) -> BTreeSet<&str> {
    text.split('\'').skip(1).step_by(2).filter(|it| it.starts_with("corridoros.io/")).collect()
}

fn expected<'a>(lists: &[&[&'a str]]) -> BTreeSet<&'a str> {
    lists.iter().flat_map(|list| list.iter().copied()).collect()
}

#[test]
fn result_annotations_are_those_that_a_binding_writes() {
    let text = policy("result-annotations");
    assert_eq!(keys(&text), expected(&[&RESULTS, &[OVERRIDE]]));
}

#[test]
fn metadata_is_what_the_controllers_keep() {
    let text = policy("object-metadata");
    let lists: [&[&str]; 3] = [&KEPT_BY_CONTROLLERS, &crds::FINALIZERS, &[OVERRIDE]];
    assert_eq!(keys(&text), expected(&lists));
}

#[test]
fn placed_pods_are_known_by_their_references() {
    let text = policy("placed-pods");
    assert_eq!(keys(&text), expected(&[&[CORRIDOR_REF, MEMORY_BUNDLE_REF, OVERRIDE]]));
}

#[test]
fn pods_of_other_schedulers_are_known_by_their_references() {
    let text = policy("foreign-scheduler");
    assert_eq!(keys(&text), expected(&[&[CORRIDOR_REF, MEMORY_BUNDLE_REF]]));
    assert!(text.contains(&format!("'{}'", crds::SCHEDULER_NAME)));
}

#[test]
fn the_fence_and_the_status_policy_know_the_rest() {
    assert_eq!(keys(&policy("leader-fence")), expected(&[&[LEADER, OVERRIDE]]));
    let status = policy("object-status");
    assert_eq!(keys(&status), expected(&[&[OVERRIDE]]));
    for crd in crds::all() {
        let resource = format!("{}/status", crd.spec.names.plural);
        assert!(status.contains(&resource), "{resource} is not guarded");
        assert!(policy("object-metadata").contains(&crd.spec.names.plural));
    }
}
