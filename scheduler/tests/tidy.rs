//! The house rules that a machine can check. This crate sees the whole tree, so they live here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// Names that say nothing about what is inside.
const BANNED_NAMES: [&str; 5] = ["utils", "util", "common", "helpers", "manager"];

/// Which crate may import which. A crate that is not listed imports nothing of ours.
const MAY_IMPORT: [(&str, &[&str]); 9] = [
    ("benches", &["driver", "e2e", "engine", "model", "rules"]),
    ("engine", &["model", "rules"]),
    // The second one only for its comparison with kube-scheduler.
    ("rules", &["model", "random-clusters"]),
    ("controllers", &["controller-runtime", "crds", "daemons", "own-writes", "sim"]),
    ("own-writes", &["crds"]),
    ("device-selectors", &["model"]),
    ("driver", &["api", "crds", "device-selectors", "engine", "model", "own-writes"]),
    // The second one only for its tests: the scenarios know of no in-memory API.
    ("e2e", &["random-clusters", "sim"]),
    (
        "corridor-scheduler",
        &["api", "controllers", "crds", "daemons", "driver", "e2e", "engine", "model", "sim"],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").into()
}

/// Every Rust file of ours, without what is built or fetched.
fn rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the tree can be read") {
            let path = entry.expect("the tree can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 50, "the tree was not found");
    files.sort();
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[test]
fn files_and_functions_stay_small() {
    let mut complaints = Vec::new();
    for path in rust_files() {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            complaints.push(format!("{}: {} lines", shown(&path), lines.len()));
        }
        for (name, length) in functions(&lines) {
            if length > FUNCTION_LINES_MAX {
                complaints.push(format!("{}: fn {name} has {length} lines", shown(&path)));
            }
        }
    }
    assert!(complaints.is_empty(), "too long:\n{}", complaints.join("\n"));
}

/// Functions with their lengths. rustfmt puts a function's closing brace under its first word.
fn functions(lines: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(rest) = line.split_once("fn ").filter(|(before, _)| is_signature(before)) else {
            continue;
        };
        let name: String =
            rest.1.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let closing = format!("{}}}", " ".repeat(indent));
        let body = &lines[start..];
        if let Some(length) = body.iter().position(|line| *line == closing) {
            found.push((name, length + 1));
        }
    }
    found
}

fn is_signature(before: &str) -> bool {
    before
        .split_whitespace()
        .all(|word| ["async", "const", "pub"].contains(&word) || word.starts_with("pub("))
}

#[test]
fn names_say_what_is_inside() {
    for path in rust_files() {
        let banned = path
            .components()
            .map(|part| part.as_os_str().to_string_lossy().replace(".rs", ""))
            .find(|part| BANNED_NAMES.contains(&part.as_str()));
        assert_eq!(banned, None, "{}: find a name that says what is inside", shown(&path));
    }
}

#[test]
fn every_file_is_part_of_a_crate() {
    let files = rust_files();
    let declared: BTreeSet<String> = files
        .iter()
        .flat_map(|path| {
            let text = fs::read_to_string(path).expect("a source file can be read");
            text.lines().filter_map(declared_module).collect::<Vec<_>>()
        })
        .collect();
    let root_files = ["lib", "main", "mod", "build"];
    for path in files {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        // Cargo finds these by their place.
        let is_target = ["tests", "bin", "examples", "benches"].iter().any(|name| {
            folder == *name && path.parent().is_some_and(|it| !it.join("mod.rs").exists())
        });
        let known = is_target || root_files.contains(&stem.as_str()) || declared.contains(&stem);
        assert!(known, "{} is declared by no `mod` and never compiled", shown(&path));
    }
}

fn declared_module(line: &str) -> Option<String> {
    let rest = line.trim_start();
    let rest =
        rest.strip_prefix("pub ").or_else(|| rest.strip_prefix("pub(crate) ")).unwrap_or(rest);
    rest.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
}

#[test]
fn crates_import_only_whom_they_may() {
    let rules: BTreeMap<&str, &[&str]> = MAY_IMPORT.into_iter().collect();
    let manifests = manifests();
    let ours: BTreeSet<&str> = manifests.keys().map(String::as_str).collect();
    assert!(ours.len() >= 7, "the manifests were not found: {ours:?}");
    for (name, imports) in &manifests {
        let allowed = rules.get(name.as_str()).copied().unwrap_or_default();
        for import in imports.iter().filter(|import| ours.contains(import.as_str())) {
            assert!(allowed.contains(&import.as_str()), "{name} must not import {import}");
        }
    }
}

/// Crate names with everything that stands in their dependency sections.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let folders =
        rust_files().into_iter().filter_map(|path| Some(path.parent()?.parent()?.to_owned()));
    let folders: BTreeSet<PathBuf> = folders.collect();
    let texts = folders.iter().filter_map(|it| fs::read_to_string(it.join("Cargo.toml")).ok());
    texts
        .filter_map(|text| {
            let mut section = "";
            let (mut name, mut imports) = (None, BTreeSet::new());
            for line in text.lines() {
                if line.starts_with('[') {
                    section = line;
                }
                let Some((key, value)) = line.split_once('=') else { continue };
                let key = key.trim().trim_end_matches(".workspace").to_owned();
                if section == "[package]" && key == "name" {
                    name = Some(value.trim().trim_matches('"').to_owned());
                } else if section.contains("dependencies") {
                    imports.insert(key);
                }
            }
            Some((name?, imports))
        })
        .collect()
}

/// cargo wants to see every member of the workspace, also those that it does not build.
#[test]
fn the_image_is_built_from_every_member() {
    let read = |file: &str| fs::read_to_string(root().join(file)).expect("a file can be read");
    let (manifest, image) = (read("Cargo.toml"), read("config/deploy/Containerfile"));
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let members: Vec<&str> = members.map_or("", |it| it.0).split('"').skip(1).step_by(2).collect();
    assert!(members.len() > 8, "the members were not found: {members:?}");
    for member in members {
        let folder = member.split('/').next().unwrap_or(member);
        let copied = format!("COPY {folder} {folder}\n");
        assert!(image.contains(&copied), "config/deploy/Containerfile does not copy {folder}");
    }
}
