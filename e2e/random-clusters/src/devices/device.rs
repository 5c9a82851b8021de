//! Devices, as slices list them.

use serde_json::{Map, Value, json};

use super::Habits;
use super::pool::{CounterSets, node_selector};
use crate::random::Random;

/// What the pool of a device has.
pub(super) struct Surroundings<'a> {
    pub driver: &'a str,
    pub counters: &'a CounterSets,
    /// Each device says from where it can be used.
    pub is_per_device: bool,
}

pub(super) fn device(
    random: &mut Random,
    habits: &Habits,
    name: &str,
    around: &Surroundings,
) -> Value {
    let mut device = json!({"name": name, "attributes": attributes(random, habits, around.driver)});
    let is_shared = habits.shares && random.chance(70);
    if is_shared {
        device["allowMultipleAllocations"] = json!(true);
    }
    if is_shared && random.chance(85) || habits.capacity && random.chance(70) {
        device["capacity"] = capacity(random, around.driver, is_shared);
    }
    if habits.counters && random.chance(80) {
        device["consumesCounters"] = draws(random, around.counters);
    }
    if habits.taints && random.chance(30) {
        device["taints"] = json!(random.list(1, 2, taint));
    }
    if habits.conditions && random.chance(30) {
        device["bindingConditions"] = json!(["ready.example.com"]);
        device["bindingFailureConditions"] = json!(["failed.example.com"]);
    }
    if habits.conditions && random.chance(30) {
        device["bindsToNode"] = json!(true);
    }
    if around.is_per_device {
        match random.below(10) {
            0..4 => device["nodeName"] = json!(format!("n{}", random.below(3))),
            4..6 => device["allNodes"] = json!(true),
            _ => device["nodeSelector"] = node_selector(random, habits),
        }
    }
    device
}

fn attributes(random: &mut Random, habits: &Habits, driver: &str) -> Value {
    let mut attributes = Map::new();
    let mut put = |random: &mut Random, percent: usize, name: &str, value: Value| {
        if random.chance(percent) {
            let is_qualified = name.contains('/') || random.chance(20);
            let full = format!("{driver}/{name}");
            attributes.insert(
                if is_qualified && !name.contains('/') { full } else { name.into() },
                value,
            );
        }
    };
    let kind = json!({"string": random.pick(&["a", "a", "b"])});
    put(random, 93, "kind", kind);
    let index = json!({"int": random.below(4)});
    put(random, 80, "index", index);
    let ready = json!({"bool": random.coin()});
    put(random, 70, "ready", ready);
    let version = json!({"version": random.pick(&["1.2.3", "1.10.0"])});
    put(random, 60, "version", version);
    let root = match random.below(30) {
        0 => json!({"int": 0}),
        1 if habits.failing_expressions => json!({"version": "1.0.0"}),
        _ => json!({"string": random.pick(&["r0", "r0", "r1"])}),
    };
    put(random, 90, "topo.example.com/root", root);
    Value::Object(attributes)
}

fn capacity(random: &mut Random, driver: &str, is_shared: bool) -> Value {
    let mut all = Map::new();
    let name = if random.chance(15) { format!("{driver}/memory") } else { "memory".to_owned() };
    let value = random.pick(&[4, 8, 8, 10, 16]);
    all.insert(name, one_capacity(random, value, is_shared));
    if random.chance(30) {
        let value = random.pick(&[2, 4, 6]);
        all.insert("lanes".into(), one_capacity(random, value, is_shared));
    }
    Value::Object(all)
}

/// The policies are such as an API server takes: the default is a value that is valid.
fn one_capacity(random: &mut Random, value: usize, is_shared: bool) -> Value {
    let unit = if random.chance(10) { "Gi" } else { "" };
    let amount = |of: usize| format!("{of}{unit}");
    let mut capacity = json!({"value": amount(value)});
    if !is_shared {
        return capacity;
    }
    match random.below(10) {
        0..3 => {}
        3 => capacity["requestPolicy"] = json!({"default": amount(random.between(1, value))}),
        4..6 => {
            let values: Vec<usize> =
                [1, 2, 3, 4, 6, 8, 12].into_iter().filter(|_| random.chance(50)).collect();
            if !values.is_empty() {
                let listed: Vec<_> = values.iter().map(|it| amount(*it)).collect();
                let default = random.pick(&listed);
                capacity["requestPolicy"] = json!({"default": default, "validValues": listed});
            }
        }
        _ => {
            let (min, step) = (random.between(1, 3), random.between(1, 3));
            let steps_max = random.between(1, 4);
            let mut range = json!({"min": amount(min)});
            let has_step = random.chance(70);
            let default = min + if has_step { step } else { 1 } * random.below(steps_max + 1);
            if has_step {
                range["step"] = json!(amount(step));
            }
            if random.chance(70) {
                let max = min + if has_step { step } else { 1 } * steps_max;
                range["max"] = json!(amount(max));
            }
            capacity["requestPolicy"] = json!({"default": amount(default), "validRange": range});
        }
    }
    capacity
}

fn draws(random: &mut Random, sets: &CounterSets) -> Value {
    let mut all = vec![];
    let first = random.below(sets.len());
    for (place, (set, counters)) in sets.iter().enumerate() {
        if place != first && random.chance(60) {
            continue;
        }
        let mut drawn = Map::new();
        let first = random.below(counters.len());
        for (place, (counter, total)) in counters.iter().enumerate() {
            if place == first || random.chance(60) {
                let amount = random.between(1, (*total / 2).max(1));
                drawn.insert(counter.clone(), json!({"value": amount.to_string()}));
            }
        }
        all.push(json!({"counterSet": set, "counters": drawn}));
    }
    json!(all)
}

pub(super) const TAINT_KEYS: [&str; 2] = ["bad.example.com", "old.example.com"];
pub(super) const TAINT_VALUES: [&str; 2] = ["x", "y"];

fn taint(random: &mut Random) -> Value {
    let mut taint = json!({
        "key": random.pick(&TAINT_KEYS),
        "effect": random.pick(&["NoSchedule", "NoSchedule", "NoExecute", "None", "LaterEffect"]),
    });
    if random.chance(70) {
        taint["value"] = json!(random.pick(&TAINT_VALUES));
    }
    taint
}
