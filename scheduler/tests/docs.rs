//! The documentation leads somewhere: links between its pages, and what they say is in the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").into()
}

fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let folders = ["", "docs", "docs/decisions", "docs/runbooks", "benches"]
        .map(|folder| root().join(folder));
    for folder in folders {
        for entry in fs::read_dir(&folder).expect("the tree can be read") {
            let path = entry.expect("the tree can be read").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    assert!(pages.len() > 20, "the pages were not found");
    pages
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).expect("a page can be read")
}

/// What follows `](` up to the closing parenthesis.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// Headings as links name them: small letters, dashes for spaces, no other signs.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept =
                words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn links_lead_to_pages_and_headings_that_exist() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = page.parent().expect("a page lies in a folder");
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            let leads = match anchor {
                "" => target.exists(),
                anchor => target.is_file() && anchors(&read(&target)).contains(anchor),
            };
            if !leads {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

/// A page that names a file of ours in `code` should name one that is there; `x` is one to come.
#[test]
fn files_that_pages_name_exist() {
    const PLACES: [&str; 7] =
        ["config/", "docs/", "e2e/", "scheduler/", "controllers/", "crds/", "benches/"];
    let mut missing = Vec::new();
    for page in pages() {
        let text = read(&page);
        for named in text.split('`').skip(1).step_by(2) {
            let is_path = PLACES.iter().any(|place| named.starts_with(place))
                && !named.contains([' ', '*', '<', '{', '$', '\n', '|', ':']);
            let is_to_come = named.ends_with("/x.rs");
            if is_path && !is_to_come && !root().join(named.trim_end_matches('/')).exists() {
                missing.push(format!("{}: {named}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "files that are not there:\n{}", missing.join("\n"));
}
