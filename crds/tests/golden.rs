//! `config/crd/` holds exactly what the types say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test is what they report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const REMEDY: &str = "run `cargo run -p crds --bin crdgen` and commit config/crd";

#[test]
fn committed_definitions_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/crd");
    let manifests = crds::manifest::all().unwrap();

    let wanted: BTreeSet<String> = manifests.iter().map(|file| file.file_name.clone()).collect();
    let found: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("config/crd cannot be read ({error}): {REMEDY}"))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let missing: Vec<_> = wanted.difference(&found).collect();
    let extra: Vec<_> = found.difference(&wanted).collect();
    assert!(missing.is_empty(), "config/crd lacks {missing:?}: {REMEDY}");
    assert!(extra.is_empty(), "config/crd has {extra:?}, which no type defines: {REMEDY}");

    for file in &manifests {
        let committed = fs::read_to_string(folder.join(&file.file_name)).unwrap();
        if let Some(difference) = first_difference(&committed, &file.yaml) {
            panic!("config/crd/{} is out of date: {REMEDY}\n{difference}", file.file_name);
        }
    }
}

#[test]
fn yaml_reads_back_as_the_same_definition() {
    for (file, crd) in crds::manifest::all().unwrap().iter().zip(crds::all()) {
        let read: CustomResourceDefinition = serde_saphyr::from_str(&file.yaml).unwrap();
        assert_eq!(read, crd, "{}", file.file_name);
    }
}

fn first_difference(committed: &str, wanted: &str) -> Option<String> {
    if committed == wanted {
        return None;
    }
    let (mut committed, mut wanted) = (committed.lines(), wanted.lines());
    for line in 1.. {
        match (committed.next(), wanted.next()) {
            (None, None) => break,
            (left, right) if left == right => {}
            (left, right) => {
                let [left, right] = [left, right].map(|text| text.unwrap_or("<end of file>"));
                return Some(format!("line {line}\n  committed: {left}\n  generated: {right}"));
            }
        }
    }
    Some("they differ in their line ends only".into())
}

#[test]
fn the_first_difference_is_shown() {
    assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
    let shown = first_difference("a\nb\n", "a\nc\n").unwrap();
    assert!(shown.contains("line 2") && shown.contains("committed: b"), "{shown}");
    let shown = first_difference("a\n", "a\nc\n").unwrap();
    assert!(shown.contains("committed: <end of file>"), "{shown}");
    assert!(first_difference("a", "a\n").is_some());
}
