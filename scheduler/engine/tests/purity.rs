//! The engine must not be able to reach a clock, a thread, tokio or kube: what it does not depend
//! on, it cannot call. (Clippy bans the parts of std; see clippy.toml.)

use std::collections::BTreeSet;
use std::process::Command;

/// Everything the engine, the plain rules and the model are made of. A new name here is a decision, not a detail:
/// it must be plain data structures, without I/O.
const ALLOWED: [&str; 11] = [
    "engine",
    "model",
    "rules",
    "priority-queue",
    "indexmap",
    "equivalent",
    "hashbrown",
    "foldhash",
    "serde",
    "serde_core",
    "smallvec",
];

#[test]
fn the_engine_depends_on_data_structures_only() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "engine", "--edges", "normal,no-proc-macro"])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there, since it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let found: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(found.contains("model"), "the tree was not read: {tree}");
    let unexpected: Vec<&&str> = found.iter().filter(|name| !ALLOWED.contains(name)).collect();
    assert!(unexpected.is_empty(), "the engine now depends on {unexpected:?}");
}
