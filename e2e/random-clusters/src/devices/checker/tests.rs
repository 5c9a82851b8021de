//! An allocation that may be, and everything that may not be done to it.

use serde_json::{Value, json};

use super::{Rule, complaints};

/// Two claims on the Node `n0`: two plain devices that draw from counters, then a share.
fn case() -> Value {
    let part = |name: &str, root: &str| {
        json!({
            "name": name,
            "attributes": {"root": {"string": root}, "kind": {"string": "a"}},
            "consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "4"}}}],
        })
    };
    let pool =
        |name: &str, count: u8| json!({"name": name, "generation": 1, "resourceSliceCount": count});
    let slice = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let parts = [part("x", "r0"), part("y", "r1"), part("z", "r1")];
    let tainted = json!({
        "name": "tainted", "attributes": {"root": {"string": "r2"}, "kind": {"string": "a"}},
        "taints": [{"key": "bad.example.com", "effect": "NoSchedule"}],
    });
    let range = json!({"default": "2", "validRange": {"min": "2", "max": "6", "step": "2"}});
    let shared = json!({
        "name": "m", "allowMultipleAllocations": true, "bindingConditions": ["ok"],
        "capacity": {"memory": {"value": "10", "requestPolicy": range}},
    });
    json!({
        "nodes": [node()],
        "slices": [
            slice("s0", json!({
                "driver": "a.example.com", "nodeName": "n0", "pool": pool("p", 2),
                "devices": [parts[0], parts[1], parts[2], tainted],
            })),
            slice("s1", json!({
                "driver": "a.example.com", "nodeName": "n0", "pool": pool("p", 2),
                "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "8"}}}],
            })),
            slice("s2", json!({
                "driver": "b.example.com", "allNodes": true, "pool": pool("net", 1), "devices": [shared],
            })),
            slice("s3", json!({
                "driver": "a.example.com", "nodeName": "n1", "pool": pool("far", 1),
                "devices": [{"name": "x", "attributes": {"root": {"string": "r1"}}}],
            })),
        ],
        "classes": [
            {"metadata": {"name": "all"}, "spec": {}},
            {"metadata": {"name": "of-a"}, "spec": {"selectors": [
                {"cel": {"expression": r#"device.driver == "a.example.com""#}},
            ]}},
        ],
        "claims": [
            {"spec": {"devices": {
                "requests": [{"name": "r", "exactly": {
                    "deviceClassName": "of-a", "allocationMode": "ExactCount", "count": 2,
                }}],
                "constraints": [{"distinctAttribute": "a.example.com/root"}, {"matchAttribute": "a.example.com/kind"}],
            }}},
            {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [
                {"name": "s0", "deviceClassName": "all", "allocationMode": "ExactCount", "count": 9},
                {"name": "s1", "deviceClassName": "all", "allocationMode": "ExactCount", "count": 1,
                 "capacity": {"requests": {"memory": "3"}}, "tolerations": [{"operator": "Exists"}]},
            ]}]}}},
        ],
        "allocated": [{"status": {"allocation": {"devices": {"results": [{
            "driver": "b.example.com", "pool": "net", "device": "m", "shareID": "1",
            "consumedCapacity": {"memory": "6"},
        }]}}}}],
    })
}

fn node() -> Value {
    json!({"metadata": {"name": "n0", "labels": {"zone": "a"}}})
}

fn allocations() -> Vec<Value> {
    let plain = |device: &str| json!({"request": "r", "driver": "a.example.com", "pool": "p", "device": device});
    let only = json!({"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n0"]},
    ]}]});
    let share = json!({
        "request": "r/s1", "driver": "b.example.com", "pool": "net", "device": "m", "shareID": "",
        "consumedCapacity": {"memory": "4"}, "bindingConditions": ["ok"],
        "tolerations": [{"operator": "Exists"}],
    });
    vec![
        json!({"devices": {"results": [plain("x"), plain("y")]}, "nodeSelector": only}),
        json!({"devices": {"results": [share]}}),
    ]
}

/// What is broken after a change.
fn broken(change: impl FnOnce(&mut Value, &mut Vec<Value>)) -> Vec<Rule> {
    let (mut case, mut allocations) = (case(), allocations());
    change(&mut case, &mut allocations);
    complaints(&case, &node(), &allocations).iter().map(|it| it.rule).collect()
}

#[track_caller]
fn refused(rule: Rule, change: impl FnOnce(&mut Value, &mut Vec<Value>)) {
    let broken = broken(change);
    assert!(broken.contains(&rule), "{rule:?} is not among {broken:?}");
}

/// The first device of the first claim, and the share.
fn first(allocations: &mut [Value]) -> &mut Value {
    &mut allocations[0]["devices"]["results"][0]
}

fn share(allocations: &mut [Value]) -> &mut Value {
    &mut allocations[1]["devices"]["results"][0]
}

#[test]
fn what_may_be_is_accepted() {
    assert_eq!(broken(|_, _| ()), []);
}

#[test]
fn claims_and_requests_must_have_what_they_ask_for() {
    refused(Rule::Shape, |_, it| drop(it.pop()));
    refused(Rule::Shape, |_, it| {
        let one = first(it).clone();
        it[0]["devices"]["results"] = (0..33).map(|_| one.clone()).collect();
    });
    refused(Rule::Count, |_, it| it[0]["devices"]["results"] = json!([]));
    refused(Rule::Count, |_, it| first(it)["request"] = json!("other"));
    refused(Rule::Count, |_, it| share(it)["request"] = json!("r/s0"));
    refused(Rule::Count, |_, it| {
        let mut another = share(it).clone();
        another["request"] = json!("r/s0");
        it[1]["devices"]["results"].as_array_mut().unwrap().push(another);
    });
    refused(Rule::All, |case, _| {
        case["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] =
            json!("All");
    });
}

#[test]
fn devices_must_be_within_reach_selected_and_tolerated() {
    refused(Rule::Reach, |_, it| first(it)["device"] = json!("gone"));
    refused(Rule::Reach, |_, it| first(it)["pool"] = json!("far"));
    refused(Rule::Reach, |case, _| {
        case["slices"][0]["spec"]["pool"]["resourceSliceCount"] = json!(3);
    });
    refused(Rule::Reach, |case, _| {
        let devices = case["slices"][0]["spec"]["devices"].as_array_mut().unwrap();
        devices.push(devices[2].clone());
    });
    refused(Rule::Reach, |case, _| {
        case["slices"][1]["spec"]["sharedCounters"][0]["name"] = json!("other");
    });
    refused(Rule::Reach, |case, _| {
        let spec = &mut case["slices"][2]["spec"];
        spec["allNodes"] = json!(false);
        spec["nodeName"] = json!("n1");
    });
    refused(Rule::Reach, |case, _| {
        let mut newer = case["slices"][2].clone();
        newer["spec"]["pool"]["generation"] = json!(2);
        newer["spec"]["devices"] = json!([]);
        case["slices"].as_array_mut().unwrap().push(newer);
    });
    refused(Rule::Selectors, |case, _| {
        case["classes"][1]["spec"]["selectors"][0]["cel"]["expression"] = json!("false");
    });
    refused(Rule::Taints, |_, it| first(it)["device"] = json!("tainted"));
    refused(Rule::MatchAttribute, |case, _| {
        case["slices"][0]["spec"]["devices"][1]["attributes"]["kind"]["string"] = json!("b");
    });
    refused(Rule::MatchAttribute, |case, _| {
        case["slices"][0]["spec"]["devices"][1]["attributes"] = json!({"root": {"string": "r1"}});
    });
    refused(Rule::DistinctAttribute, |_, it| first(it)["device"] = json!("z"));
}

#[test]
fn devices_must_not_be_given_out_twice() {
    refused(Rule::Repeated, |_, it| first(it)["device"] = json!("y"));
    let taken = |case: &mut Value, id: [&str; 3]| {
        let result = json!({"driver": id[0], "pool": id[1], "device": id[2]});
        let claim = json!({"status": {"allocation": {"devices": {"results": [result]}}}});
        case["allocated"].as_array_mut().unwrap().push(claim);
    };
    refused(Rule::InUse, |case, _| taken(case, ["a.example.com", "p", "x"]));
    refused(Rule::InUse, |case, _| taken(case, ["b.example.com", "net", "m"]));
    refused(Rule::Counters, |case, _| taken(case, ["a.example.com", "p", "z"]));
    refused(Rule::InUse, |case, it| {
        let devices = it[0]["devices"].clone();
        let claim = case["claims"][0].clone();
        case["claims"].as_array_mut().unwrap().push(claim);
        it.push(json!({"devices": devices, "nodeSelector": it[0]["nodeSelector"]}));
    });
    // What has admin access takes nothing.
    assert_eq!(
        broken(|case, _| {
            taken(case, ["a.example.com", "p", "x"]);
            case["allocated"][1]["status"]["allocation"]["devices"]["results"][0]["adminAccess"] =
                json!(true);
        }),
        []
    );
}

#[test]
fn shares_must_be_such_as_the_policy_has_them_and_fit_in() {
    for wrong in ["3", "2", "6"] {
        refused(Rule::Amounts, |_, it| share(it)["consumedCapacity"]["memory"] = json!(wrong));
    }
    refused(Rule::Amounts, |_, it| share(it)["consumedCapacity"]["other"] = json!("1"));
    refused(Rule::Amounts, |_, it| first(it)["consumedCapacity"] = json!({"memory": "1"}));
    refused(Rule::Amounts, |case, _| {
        let ask = &mut case["claims"][1]["spec"]["devices"]["requests"][0]["firstAvailable"][1];
        ask["capacity"]["requests"] = json!({"b.example.com/memory": "3"});
    });
    refused(Rule::Capacity, |case, _| {
        let taken = &mut case["allocated"][0]["status"]["allocation"]["devices"]["results"][0];
        taken["consumedCapacity"]["memory"] = json!("7");
    });
}

#[test]
fn counters_must_not_be_overdrawn() {
    refused(Rule::Counters, |case, _| {
        let drawn = &mut case["slices"][0]["spec"]["devices"][0]["consumesCounters"][0];
        drawn["counters"]["memory"]["value"] = json!("5");
    });
}

#[test]
fn the_rest_of_an_allocation_must_follow_from_its_devices() {
    refused(Rule::Nodes, |_, it| it[0]["nodeSelector"] = Value::Null);
    refused(Rule::Nodes, |_, it| {
        it[0]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] = json!(["n1"]);
    });
    refused(Rule::Nodes, |_, it| it[1]["nodeSelector"] = it[0]["nodeSelector"].clone());
    refused(Rule::Nodes, |case, _| {
        case["slices"][2]["spec"]["devices"][0]["bindsToNode"] = json!(true);
    });
    for field in ["tolerations", "bindingConditions", "shareID"] {
        refused(Rule::Copied, |_, it| share(it)[field] = Value::Null);
    }
    refused(Rule::Copied, |_, it| first(it)["adminAccess"] = json!(true));
    refused(Rule::Copied, |_, it| first(it)["shareID"] = json!(""));
}
