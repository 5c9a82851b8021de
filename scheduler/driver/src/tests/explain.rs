//! Explanations as people read them, one file for each cause in `golden/explain`.
//!
//! To accept new answers: `UPDATE_GOLDEN=1 cargo test -p driver explain`, then read the difference.

use std::fs;
use std::path::{Path, PathBuf};

use model::ObjectKey;
use serde_json::{Value, json};

use super::World;
use crate::answers::explanation;
use crate::kinds::storage_class::WireStorageClass;
use crate::kinds::{WireClaim, WireVolumeObject};

/// Fewer causes than this, and some are missing.
const CASES_MIN: usize = 20;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/explain");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    files.sort();
    files
}

fn answer(case: &Value) -> Value {
    let given = &case["given"];
    let list = |name: &str| given[name].as_array().cloned().unwrap_or_default();
    let mut world = World::new();
    if given["silent"] != true {
        world.backends_speak();
    }
    for node in list("nodes") {
        world.node(&node).unwrap();
    }
    for corridor in list("corridors") {
        world.corridor(&corridor).unwrap();
    }
    for bundle in list("bundles") {
        world.bundle(&bundle).unwrap();
    }
    for class in list("storageClasses") {
        world.see::<WireStorageClass>(&class).unwrap();
    }
    for volume in list("persistentVolumes") {
        world.see::<WireVolumeObject>(&volume).unwrap();
    }
    for claim in list("persistentVolumeClaims") {
        world.see::<WireClaim>(&claim).unwrap();
    }
    for pod in list("pods") {
        world.pod(&pod).unwrap();
        world.bind_all();
    }
    let (namespace, name) = case["ask"].as_str().unwrap().split_once('/').unwrap();
    let explained = world.engine.explain(&ObjectKey::new(namespace, name)).unwrap();
    serde_json::to_value(explanation(&explained)).unwrap()
}

#[test]
fn every_cause_is_explained_as_agreed() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let cases = cases();
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    for path in cases {
        let mut case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let answer = answer(&case);
        if update {
            case["explain"] = answer;
            fs::write(&path, format!("{case:#}\n")).unwrap();
            continue;
        }
        assert_eq!(case["explain"], answer, "{}:\n{answer:#}", path.display());
    }
}

/// The message alone must answer "why": it says what is missing, not only that something is.
#[test]
fn the_first_line_alone_says_why() {
    for path in cases() {
        let case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let message = case["explain"]["message"].as_str().unwrap();
        let why = case["why"].as_str().unwrap();
        assert!(message.contains(why), "{}: {message:?} does not say {why:?}", path.display());
        assert!(!message.contains('\n') && message.len() > 10, "{message:?}");
        assert_ne!(case["explain"]["dominant"], json!(null), "{}", path.display());
        assert_ne!(case["explain"]["wakesOn"], json!([]), "{}", path.display());
    }
}
