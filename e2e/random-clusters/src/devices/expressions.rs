//! Expressions of selectors, each with what it says of a device: who reads a case needs no CEL.

use serde_json::Value;

use super::quantity::milli;
use crate::random::Random;

/// What an expression says of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Matches,
    DoesNotMatch,
    /// It fails for this device.
    RuntimeError,
    CompileError,
}

/// A device and its driver.
struct Seen<'a> {
    driver: &'a str,
    device: &'a Value,
}

impl<'a> Seen<'a> {
    /// Of the attributes or the capacity: what has no domain is in that of the driver.
    fn get(&self, map: &str, domain: &str, id: &str) -> Option<&'a Value> {
        let map = &self.device[map];
        let qualified = map.get(format!("{domain}/{id}"));
        qualified.or_else(|| map.get(id).filter(|_| domain == self.driver))
    }

    fn attribute(&self, domain: &str, id: &str) -> Option<&'a Value> {
        self.get("attributes", domain, id)
    }

    fn is_kind(&self, domain: &str, kind: &str) -> Option<bool> {
        self.attribute(domain, "kind").map(|it| it["string"] == kind)
    }

    fn is_root(&self, root: &str) -> Option<bool> {
        let value = self.attribute("topo.example.com", "root")?;
        // A version is compared with nothing but versions.
        value["version"].is_null().then(|| value["string"] == root)
    }

    fn has_memory(&self, at_least: i128) -> Option<bool> {
        let memory = self.get("capacity", "a.example.com", "memory")?;
        let value = milli(memory["value"].as_str().unwrap_or_default())?;
        Some(value >= at_least)
    }
}

/// `None`: it fails.
type Says = fn(&Seen) -> Option<bool>;

const GUARDED_KIND: &str = r#"has(device.attributes["a.example.com"].kind) && device.attributes["a.example.com"].kind == "a""#;
const COMPILE_ERROR: &str = r"device.attributes[";
const UNGUARDED_KIND: &str = r#"device.attributes["a.example.com"].kind == "b""#;

/// Those that never fail come first.
const SHAPES: [(&str, Says); 13] = [
    ("true", |_| Some(true)),
    (r#"device.driver == "a.example.com""#, |seen| Some(seen.driver == "a.example.com")),
    (r#"device.driver in ["b.example.com", "c.example.com"]"#, |seen| {
        Some(seen.driver == "b.example.com")
    }),
    ("device.allowMultipleAllocations", |seen| {
        Some(seen.device["allowMultipleAllocations"] == true)
    }),
    ("!device.allowMultipleAllocations", |seen| {
        Some(seen.device["allowMultipleAllocations"] != true)
    }),
    (GUARDED_KIND, |seen| Some(seen.is_kind("a.example.com", "a").unwrap_or(false))),
    (
        r#"has(device.attributes["topo.example.com"].root) && device.attributes["topo.example.com"].root == "r0""#,
        |seen| match seen.attribute("topo.example.com", "root") {
            Some(_) => seen.is_root("r0"),
            None => Some(false),
        },
    ),
    (
        r#"has(device.attributes["a.example.com"].index) && device.attributes["a.example.com"].index < 2"#,
        |seen| {
            let index = seen.attribute("a.example.com", "index");
            Some(index.and_then(|it| it["int"].as_i64()).is_some_and(|it| it < 2))
        },
    ),
    (
        r#"has(device.attributes["a.example.com"].ready) && device.attributes["a.example.com"].ready"#,
        |seen| Some(seen.attribute("a.example.com", "ready").is_some_and(|it| it["bool"] == true)),
    ),
    (
        r#"has(device.capacity["a.example.com"].memory) && device.capacity["a.example.com"].memory.compareTo(quantity("8")) >= 0"#,
        |seen| Some(seen.has_memory(8000).unwrap_or(false)),
    ),
    (
        r#"device.attributes["a.example.com"].?version.orValue(semver("0.0.1")).isGreaterThan(semver("1.5.0"))"#,
        |seen| {
            Some(
                seen.attribute("a.example.com", "version")
                    .is_some_and(|it| it["version"] == "1.10.0"),
            )
        },
    ),
    ("false", |_| Some(false)),
    (UNGUARDED_KIND, |seen| seen.is_kind("a.example.com", "b")),
];
/// Of the shapes, those that are easily met.
const EASY: usize = 9;
/// Those that never fail.
const SAFE: usize = 12;

/// What the expression says of a device of the driver. Only expressions of these cases are known.
pub fn verdict(expression: &str, driver: &str, device: &Value) -> Option<Verdict> {
    if expression == COMPILE_ERROR {
        return Some(Verdict::CompileError);
    }
    let (_, says) = SHAPES.iter().find(|(text, _)| *text == expression)?;
    Some(match says(&Seen { driver, device }) {
        Some(true) => Verdict::Matches,
        Some(false) => Verdict::DoesNotMatch,
        None => Verdict::RuntimeError,
    })
}

/// `may_fail`: also one that may end the whole attempt.
pub(super) fn expression(random: &mut Random, may_fail: bool) -> &'static str {
    let shape = match random.below(100) {
        0..6 if may_fail => return UNGUARDED_KIND,
        6..8 if may_fail => return COMPILE_ERROR,
        0..90 => random.below(EASY),
        _ => random.below(SAFE),
    };
    SHAPES[shape].0
}
