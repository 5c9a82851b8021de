//! DeviceClasses, and ResourceClaims that have no devices.

use serde_json::{Value, json};

use super::Habits;
use super::expressions::expression;
use super::request::{Budget, request};
use crate::random::Random;

/// Of these, one is named that most of the devices have.
const ATTRIBUTES: [&str; 10] = [
    "topo.example.com/root",
    "topo.example.com/root",
    "topo.example.com/root",
    "a.example.com/index",
    "a.example.com/index",
    "a.example.com/kind",
    "a.example.com/ready",
    "a.example.com/version",
    "b.example.com/kind",
    "topo.example.com/missing",
];

pub(super) fn classes(random: &mut Random, habits: &Habits) -> Vec<Value> {
    let fixed = [
        ("all", None),
        ("of-a", Some(r#"device.driver == "a.example.com""#)),
        ("shared", Some("device.allowMultipleAllocations")),
        ("plain", Some("!device.allowMultipleAllocations")),
        ("kind-a", Some(expression(random, habits.failing_expressions))),
    ];
    let mut classes = vec![];
    for (name, expression) in fixed {
        let selectors: Vec<Value> =
            expression.iter().map(|it| json!({"cel": {"expression": it}})).collect();
        let mut class = json!({"metadata": {"name": name}, "spec": {"selectors": selectors}});
        if habits.configs && random.coin() {
            class["spec"]["config"] = json!(random.list(1, 2, config));
        }
        classes.push(class);
    }
    classes
}

fn config(random: &mut Random) -> Value {
    let parameters = json!({"level": random.below(100)});
    json!({"opaque": {"driver": "a.example.com", "parameters": parameters}})
}

pub(super) fn claims(random: &mut Random, habits: &Habits) -> Vec<Value> {
    let count = random.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4]);
    let mut budget = Budget(random.pick(&[1, 2, 2, 3, 3, 4, 5, 6]));
    let mut claims = vec![];
    for number in 0..count {
        if number > 0 && budget.0 == 0 {
            break;
        }
        claims.push(claim(random, habits, &mut budget, number));
    }
    claims
}

fn claim(random: &mut Random, habits: &Habits, budget: &mut Budget, number: usize) -> Value {
    let mut requests = vec![];
    let count = random.pick(&[1, 1, 1, 2, 2, 3]);
    for number in 0..count {
        // One has been asked for already: a claim without requests is no claim.
        if number > 0 && budget.0 == 0 {
            break;
        }
        requests.push(request(random, habits, budget, number));
    }
    let mut devices = json!({"requests": requests});
    if habits.constraints && random.chance(80) {
        let constraint = |random: &mut Random| constraint(random, habits, &requests);
        devices["constraints"] = json!(random.list(1, 2, constraint));
    }
    if habits.configs && random.chance(70) {
        let config = |random: &mut Random| {
            let mut config = config(random);
            config["requests"] = json!(named(random, &requests));
            config
        };
        devices["config"] = json!(random.list(1, 2, config));
    }
    let name = format!("c{number}");
    json!({
        "metadata": {"namespace": "team-a", "name": name, "uid": format!("uid-{name}")},
        "spec": {"devices": devices},
    })
}

fn constraint(random: &mut Random, habits: &Habits, requests: &[Value]) -> Value {
    let field = random.pick(&["matchAttribute", "matchAttribute", "distinctAttribute"]);
    let mut constraint = json!({"requests": named(random, requests)});
    if !habits.odd_objects || random.chance(90) {
        constraint[field] = json!(random.pick(&ATTRIBUTES));
    }
    constraint
}

/// Some of the requests or of their alternatives. None: all.
fn named(random: &mut Random, requests: &[Value]) -> Vec<String> {
    let mut names = vec![];
    if random.chance(45) {
        return names;
    }
    for request in requests {
        let name = request["name"].as_str().unwrap_or_default();
        if random.chance(35) {
            continue;
        }
        match request["firstAvailable"].as_array() {
            Some(alternatives) if random.coin() => {
                let alternative = random.pick(alternatives);
                let alternative = alternative["name"].as_str().unwrap_or_default();
                names.push(format!("{name}/{alternative}"));
            }
            _ => names.push(name.to_owned()),
        }
    }
    names
}
