//! ResourceClaims that have devices already.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::quantity::milli;
use super::{Habits, items, text};
use crate::random::Random;

/// Driver, pool, counter set and counter.
type CounterKey = [String; 4];

/// What is left of the counters of all pools.
struct Left(BTreeMap<CounterKey, i128>);

pub(super) fn claims(random: &mut Random, habits: &Habits, slices: &[Value]) -> Vec<Value> {
    let mut left = Left::of(slices);
    let mut results = vec![];
    for slice in slices {
        for device in items(&slice["spec"]["devices"]) {
            if !random.chance(habits.taken_percent) {
                continue;
            }
            // Rarely, more is given out than there was.
            if left.draw(&slice["spec"], device) || random.chance(35) {
                results.extend(uses(random, habits, &slice["spec"], device));
            }
        }
    }
    if random.chance(3) {
        let gone = json!({
            "request": "r", "driver": "a.example.com", "pool": "n0", "device": "gone",
        });
        results.push(gone);
    }
    let each = results.into_iter().enumerate();
    each.map(|(number, result)| {
        let name = format!("allocated-{number}");
        json!({
            "metadata": {"namespace": "team-b", "name": name, "uid": format!("uid-{name}")},
            "spec": {"devices": {}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        })
    })
    .collect()
}

/// Who has the device.
fn uses(random: &mut Random, habits: &Habits, spec: &Value, device: &Value) -> Vec<Value> {
    let mut result = json!({
        "request": "r",
        "driver": spec["driver"],
        "pool": spec["pool"]["name"],
        "device": device["name"],
    });
    if habits.admin && random.chance(30) {
        result["adminAccess"] = json!(true);
        return vec![result];
    }
    let has_changed = random.chance(1);
    if (device["allowMultipleAllocations"] == true) == has_changed {
        return vec![result];
    }
    let shares = random.pick(&[1, 1, 2]);
    (0..shares)
        .map(|share| {
            let mut result = result.clone();
            result["shareID"] = json!(format!("00000000-0000-0000-0000-00000000000{share}"));
            let consumed = consumed(random, device);
            if !consumed.is_empty() {
                result["consumedCapacity"] = Value::Object(consumed);
            }
            result
        })
        .collect()
}

fn consumed(random: &mut Random, device: &Value) -> Map<String, Value> {
    let mut consumed = Map::new();
    for (name, capacity) in device["capacity"].as_object().into_iter().flatten() {
        let policy = &capacity["requestPolicy"];
        let listed = items(&policy["validValues"]);
        let amount = match text(&policy["default"]) {
            _ if !listed.is_empty() => text(&listed[random.below(listed.len())]).to_owned(),
            "" => part(random, text(&capacity["value"])),
            default => default.to_owned(),
        };
        consumed.insert(name.clone(), json!(amount));
    }
    consumed
}

/// Up to the half of it, and rarely the whole.
fn part(random: &mut Random, value: &str) -> String {
    if random.chance(8) {
        return value.to_owned();
    }
    let digits = value.trim_end_matches("Gi");
    let whole: usize = digits.parse().unwrap_or(1);
    format!("{}{}", random.between(1, (whole / 2).max(1)), &value[digits.len()..])
}

impl Left {
    fn of(slices: &[Value]) -> Self {
        let mut left = BTreeMap::new();
        for slice in slices {
            for set in items(&slice["spec"]["sharedCounters"]) {
                for (name, counter) in set["counters"].as_object().into_iter().flatten() {
                    let key = key(&slice["spec"], &set["name"], name);
                    left.insert(key, milli(text(&counter["value"])).unwrap_or(0));
                }
            }
        }
        Self(left)
    }

    /// Whether there was so much.
    fn draw(&mut self, spec: &Value, device: &Value) -> bool {
        let mut was_enough = true;
        for drawn in items(&device["consumesCounters"]) {
            for (name, counter) in drawn["counters"].as_object().into_iter().flatten() {
                let amount = milli(text(&counter["value"])).unwrap_or(0);
                let left = self.0.entry(key(spec, &drawn["counterSet"], name)).or_default();
                if *left < amount {
                    was_enough = false;
                } else {
                    *left -= amount;
                }
            }
        }
        was_enough
    }
}

fn key(spec: &Value, set: &Value, counter: &str) -> CounterKey {
    [text(&spec["driver"]), text(&spec["pool"]["name"]), text(set), counter].map(str::to_owned)
}
