//! Random clusters with devices, and the claims of a Pod that have none yet: a few devices under few names, so that
//! nearly every case lies at the edge between what fits and what does not. Most objects are such as an API server
//! stores.

mod allocated;
pub mod checker;
mod claim;
mod device;
mod expressions;
mod pool;
mod quantity;
mod request;

use serde_json::{Value, json};

use crate::random::Random;

pub use expressions::{Verdict, verdict};
pub use quantity::milli;

const DRIVERS: [&str; 2] = ["a.example.com", "b.example.com"];
const ZONES: [&str; 2] = ["a", "b"];

/// What a case makes use of. Most cases are about few things, because each hides others.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is thrown for itself")]
struct Habits {
    network: bool,
    counters: bool,
    shares: bool,
    taints: bool,
    conditions: bool,
    admin: bool,
    all: bool,
    alternatives: bool,
    constraints: bool,
    capacity: bool,
    configs: bool,
    failing_expressions: bool,
    /// Slices that contradict each other, are missing or out of date.
    odd_pools: bool,
    /// Objects that only a later version knows, or that no API server stores.
    odd_objects: bool,
    /// So many devices that a claim cannot have all of them.
    crowd: bool,
    /// Of devices that claims have already.
    taken_percent: usize,
}

impl Habits {
    fn new(random: &mut Random) -> Self {
        let crowd = random.chance(1);
        let mut has = |percent| random.chance(percent);
        let counters = has(30) && !crowd;
        Self {
            // A pool of several Nodes is where counters are hard.
            network: has(if counters { 80 } else { 35 }),
            counters,
            shares: has(35),
            taints: has(20),
            conditions: has(20),
            admin: has(15),
            all: has(25) || crowd,
            alternatives: has(30),
            constraints: has(30),
            capacity: has(50),
            configs: has(25),
            failing_expressions: has(5),
            odd_pools: has(20),
            odd_objects: has(2),
            crowd,
            taken_percent: random.pick(&[0, 0, 10, 20, 40]),
        }
    }
}

/// The case of a seed: `nodes`, `slices`, `classes`, `claims` without devices, and `allocated` ones with.
pub fn device_case(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let habits = Habits::new(random);
    let nodes = nodes(random);
    let mut slices = pool::slices(random, &habits, &nodes);
    let allocated = allocated::claims(random, &habits, &slices);
    shuffle(random, &mut slices);
    json!({
        "seed": seed,
        "nodes": nodes,
        "slices": slices,
        "classes": claim::classes(random, &habits),
        "claims": claim::claims(random, &habits),
        "allocated": allocated,
    })
}

fn nodes(random: &mut Random) -> Vec<Value> {
    let count = random.between(1, 3);
    (0..count)
        .map(|number| {
            let name = format!("n{number}");
            let mut labels = json!({"kubernetes.io/hostname": name});
            if random.chance(90) {
                labels["zone"] = json!(random.pick(&ZONES));
            }
            json!({"metadata": {"name": name, "labels": labels}})
        })
        .collect()
}

fn shuffle(random: &mut Random, list: &mut [Value]) {
    for place in (1..list.len()).rev() {
        list.swap(place, random.below(place + 1));
    }
}

/// The name of an object.
fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_case() {
        assert_eq!(device_case(7), device_case(7));
        assert_ne!(device_case(7), device_case(8));
    }

    #[test]
    fn everything_is_tried_that_an_allocator_reads() {
        let cases: String = (0..600).map(|seed| device_case(seed).to_string()).collect();
        for text in [
            r#""nodeName":"n0""#,
            r#""nodeSelector":{"#,
            r#""allNodes":true"#,
            r#""perDeviceNodeSelection":true"#,
            r#""generation":2"#,
            r#""sharedCounters":["#,
            r#""consumesCounters":["#,
            r#""allowMultipleAllocations":true"#,
            r#""validValues":["#,
            r#""step":""#,
            r#""taints":["#,
            r#""tolerations":["#,
            r#""bindingConditions":["#,
            r#""bindsToNode":true"#,
            r#""allocationMode":"All""#,
            r#""firstAvailable":["#,
            r#""matchAttribute":""#,
            r#""distinctAttribute":""#,
            r#""requests":["r0/s1""#,
            r#""adminAccess":true"#,
            r#""capacity":{"requests":{"#,
            r#""consumedCapacity":{"#,
            r#""shareID":""#,
            r#""config":[{"opaque""#,
            r#""cel":{"#,
        ] {
            assert!(cases.contains(text), "{text} is never tried");
        }
    }
}
