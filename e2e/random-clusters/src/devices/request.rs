//! What a claim asks for.

use serde_json::{Map, Value, json};

use super::Habits;
use super::device::{TAINT_KEYS, TAINT_VALUES};
use super::expressions::expression;
use crate::random::Random;

/// How many devices may still be asked for: with many, the search does not end.
#[derive(Debug)]
pub(super) struct Budget(pub usize);

impl Budget {
    fn count(&mut self, random: &mut Random) -> usize {
        let wanted = random.pick(&[1, 1, 1, 1, 2, 2, 3, 4]);
        let count = wanted.min(self.0).max(1);
        self.0 = self.0.saturating_sub(count);
        count
    }
}

pub(super) fn request(
    random: &mut Random,
    habits: &Habits,
    budget: &mut Budget,
    number: usize,
) -> Value {
    let name = format!("r{number}");
    if habits.alternatives && random.chance(50) {
        let before = budget.0;
        let mut least = before;
        let count = random.between(1, 3);
        let alternatives: Vec<Value> = (0..count)
            .map(|number| {
                budget.0 = before;
                let mut ask = ask(random, habits, budget);
                least = least.min(budget.0);
                ask["name"] = json!(format!("s{number}"));
                ask
            })
            .collect();
        budget.0 = least;
        return json!({"name": name, "firstAvailable": alternatives});
    }
    let mut ask = ask(random, habits, budget);
    if habits.admin && random.chance(45) {
        ask["adminAccess"] = json!(random.chance(93));
    }
    json!({"name": name, "exactly": ask})
}

fn ask(random: &mut Random, habits: &Habits, budget: &mut Budget) -> Value {
    let class = random.pick(&[
        "all", "all", "all", "all", "all", "all", "all", "of-a", "kind-a", "shared", "plain",
    ]);
    let mut ask = json!({"deviceClassName": class});
    if habits.odd_objects && random.chance(10) {
        ask["deviceClassName"] = json!(random.pick(&["gone", ""]));
    }
    if habits.all && random.chance(45) {
        ask["allocationMode"] = json!("All");
    } else {
        ask["allocationMode"] = json!("ExactCount");
        ask["count"] = json!(budget.count(random));
        if habits.crowd && random.chance(30) {
            ask["count"] = json!(random.between(30, 33));
        }
    }
    if habits.odd_objects && random.chance(5) {
        ask["allocationMode"] = json!("Some");
    }
    if random.chance(25) {
        let selector = |random: &mut Random| {
            let is_odd = habits.odd_objects && random.chance(10);
            let text = expression(random, habits.failing_expressions);
            if is_odd { json!({}) } else { json!({"cel": {"expression": text}}) }
        };
        ask["selectors"] = json!(random.list(1, 2, selector));
    }
    if habits.taints && random.chance(60) {
        ask["tolerations"] = json!(random.list(1, 2, toleration));
    }
    if (habits.shares || habits.capacity) && random.chance(40) {
        ask["capacity"] = json!({"requests": capacity(random)});
    }
    ask
}

fn capacity(random: &mut Random) -> Value {
    let mut requests = Map::new();
    let name = random.pick(&[
        "memory",
        "memory",
        "memory",
        "memory",
        "memory",
        "memory",
        "lanes",
        "a.example.com/memory",
    ]);
    let amount =
        random.pick(&["1", "1", "2", "2", "3", "3", "4", "5", "8", "9", "1500m", "2500m", "2Gi"]);
    requests.insert(name.into(), json!(amount));
    if random.chance(15) {
        requests.insert("lanes".into(), json!(random.pick(&["1", "2", "4"])));
    }
    Value::Object(requests)
}

fn toleration(random: &mut Random) -> Value {
    let is_equal = random.coin();
    let mut toleration = json!({"operator": if is_equal { "Equal" } else { "Exists" }});
    if is_equal || random.chance(70) {
        toleration["key"] = json!(random.pick(&TAINT_KEYS));
    }
    if is_equal && random.chance(85) {
        toleration["value"] = json!(random.pick(&TAINT_VALUES));
    }
    match random.below(10) {
        0..4 => {}
        4..9 => toleration["effect"] = json!("NoSchedule"),
        _ => toleration["effect"] = json!("NoExecute"),
    }
    if toleration["effect"] == "NoExecute" && random.coin() {
        toleration["tolerationSeconds"] = json!(random.below(100));
    }
    toleration
}
