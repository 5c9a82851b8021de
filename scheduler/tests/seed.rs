//! `docs/seed-000.md` goes through the specification: what it names is there, and each row is backed by
//! something.

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/seed-000.md";
/// Fewer rows than this, and the tables were not found.
const ROWS_MIN: usize = 120;
const HEADER: [&str; 6] = ["Line", "Requirement", "State", "Where", "Tests", "Note"];
const STATES: [&str; 3] = [WORKS, "in part", "differs on purpose"];
const WORKS: &str = "works";
/// Where things of ours are.
const PLACES: [&str; 7] =
    ["config/", "docs/", "e2e/", "scheduler/", "controllers/", "crds/", "benches/"];
/// A name with a slash and one of these ends is a path, also in a place that does not exist.
const ENDS: [&str; 5] = [".rs", ".yaml", ".json", ".md", ".toml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").into()
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).expect("the page can be read")
}

/// What stands between backticks, with the number of its line.
fn spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines.flat_map(|(number, line)| {
        line.split('`').skip(1).step_by(2).map(move |span| (number, span))
    })
}

fn is_path(span: &str) -> bool {
    let has_end = ENDS.iter().any(|end| span.ends_with(end));
    let is_ours = PLACES.iter().any(|place| span.starts_with(place));
    !span.contains(' ') && (is_ours || span.contains('/') && has_end)
}

/// Rust files of a folder and of those in it, or the file itself.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("the tree can be read");
            open.extend(entries.map(|entry| entry.expect("the tree can be read").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn has_function(text: &str, name: &str) -> bool {
    let is_part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut named = text.split("fn ").skip(1).filter_map(|rest| rest.strip_prefix(name));
    !name.is_empty() && named.any(|rest| !rest.starts_with(is_part_of_a_name))
}

/// What is wrong with `path` or `path::name`, if it is one of these.
fn staleness(span: &str) -> Option<&'static str> {
    let (path, name) = match span.split_once("::") {
        Some((path, name)) => (path, Some(name)),
        None => (span, None),
    };
    if !is_path(path) {
        return None;
    }
    let path = root().join(path.trim_end_matches('/'));
    if !path.exists() {
        return Some("is not there");
    }
    let name = name?;
    let mut texts = rust_files(&path).into_iter().filter_map(|file| fs::read_to_string(file).ok());
    let is_found = texts.any(|text| has_function(&text, name));
    (!is_found).then_some("has no such function")
}

/// A row of a table of requirements: its line in the page, and its cells.
fn rows(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut rows = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let inner = line.strip_prefix('|').and_then(|rest| rest.trim_end().strip_suffix('|'));
        let Some(inner) = inner else {
            is_inside = false;
            continue;
        };
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        if cells == HEADER {
            is_inside = true;
        } else if is_inside && !inner.starts_with("---") {
            rows.push((number, cells));
        }
    }
    rows
}

fn complaint(cells: &[&str]) -> Option<&'static str> {
    let [line, requirement, state, places, tests, note] = cells else {
        return Some("has not as many cells as its table");
    };
    let names_test = spans(tests).any(|(_, span)| span.contains("::"));
    if line.parse::<usize>().is_err() || requirement.is_empty() {
        Some("does not say which requirement it is about")
    } else if !STATES.contains(state) {
        Some("is in no known state")
    } else if !spans(places).any(|(_, span)| is_path(span) || root().join(span).is_file()) {
        Some("does not say where it is")
    } else if !names_test && note.is_empty() {
        Some("has neither a test nor a reason")
    } else if *state != WORKS && note.is_empty() {
        Some("does not say what is missing or why it differs")
    } else {
        None
    }
}

#[test]
fn files_and_tests_that_are_named_exist() {
    let text = page();
    let named = spans(&text).filter(|(_, span)| is_path(span.split("::").next().unwrap_or(span)));
    assert!(named.count() > ROWS_MIN, "the names were not found");
    let stale: Vec<String> = spans(&text)
        .filter_map(|(number, span)| {
            staleness(span).map(|why| format!("{PAGE}:{number}: {span} {why}"))
        })
        .collect();
    assert!(stale.is_empty(), "stale:\n{}", stale.join("\n"));
}

#[test]
fn each_requirement_has_a_test_or_a_reason() {
    let text = page();
    let rows = rows(&text);
    assert!(rows.len() >= ROWS_MIN, "only {} rows were found", rows.len());
    let complaints: Vec<String> = rows
        .iter()
        .filter_map(|(number, cells)| {
            complaint(cells).map(|why| format!("{PAGE}:{number}: {} {why}", cells.join(" | ")))
        })
        .collect();
    assert!(complaints.is_empty(), "rows:\n{}", complaints.join("\n"));
}

#[test]
fn what_is_stale_or_empty_is_found() {
    for (span, why) in [
        ("scheduler/tests/seed.rs", None),
        ("scheduler/tests/seed.rs::what_is_stale_or_empty_is_found", None),
        ("scheduler/tests/::what_is_stale_or_empty_is_found", None),
        ("corridoros.io/corridorRef", None),
        ("file::function", None),
        ("scheduler/tests/gone.rs", Some("is not there")),
        ("schedular/tests/seed.rs", Some("is not there")),
        ("scheduler/tests/seed.rs::what_is_stale", Some("has no such function")),
    ] {
        assert_eq!(staleness(span), why, "{span}");
    }
    let (place, test) = ("`docs/seed-000.md`", "`scheduler/tests/seed.rs::page`");
    let told = |cells: [&str; 6]| complaint(&cells);
    assert_eq!(told(["1", "x", "works", place, test, ""]), None);
    assert_eq!(told(["1", "x", "works", place, "", "why"]), None);
    let bare = told(["1", "x", "works", place, "", ""]);
    assert_eq!(bare, Some("has neither a test nor a reason"));
    for cells in [
        ["", "x", "works", place, test, ""],
        ["1", "x", "soon", place, test, ""],
        ["1", "x", "works", "", test, ""],
        ["1", "x", "in part", place, test, ""],
    ] {
        assert!(told(cells).is_some(), "{cells:?}");
    }
}
