//! KubeSchedulerConfigurations: half of the time the default one.

use random_clusters::Random;
use serde_json::{Value, json};

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// The plugins whose weights are varied, with the names they have in the API.
const SCORING_PLUGINS: [&str; 7] = [
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
];

type MakeArgs = fn(&mut Random) -> Value;

pub fn config(random: &mut Random) -> Value {
    if random.chance(50) {
        return Value::Null;
    }
    let plugins: [(&str, usize, MakeArgs); 5] = [
        ("NodeResourcesFit", 60, fit),
        ("NodeResourcesBalancedAllocation", 40, balanced_allocation),
        ("PodTopologySpread", 40, default_spread),
        ("InterPodAffinity", 40, inter_pod_affinity),
        ("NodeAffinity", 30, added_affinity),
    ];
    let mut plugin_config = vec![];
    for (name, percent, args) in plugins {
        if random.chance(percent) {
            let mut args = args(random);
            args["apiVersion"] = json!(API_VERSION);
            args["kind"] = json!(format!("{name}Args"));
            plugin_config.push(json!({"name": name, "args": args}));
        }
    }
    let mut profile = json!({"schedulerName": "default-scheduler", "pluginConfig": plugin_config});
    if random.chance(30) {
        profile["plugins"] = json!({"score": {"enabled": weights(random)}});
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    })
}

/// The same for a case with volumes: kube-scheduler writes what is to be bound, and gives up at once instead of waiting
/// for it. Now and then it does without one of the plugins.
pub fn without_waiting(random: &mut Random, config: Value) -> Value {
    let mut config = if config.is_null() {
        json!({
            "apiVersion": API_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": []}],
        })
    } else {
        config
    };
    let args =
        json!({"apiVersion": API_VERSION, "kind": "VolumeBindingArgs", "bindTimeoutSeconds": 0});
    let profile = &mut config["profiles"][0];
    let plugin_config = profile["pluginConfig"].as_array_mut().expect("a profile lists them");
    plugin_config.push(json!({"name": "VolumeBinding", "args": args}));
    if random.chance(8) {
        let plugin = random.pick(&VOLUME_PLUGINS);
        profile["plugins"]["multiPoint"] = json!({"disabled": [{"name": plugin}]});
    }
    config
}

const VOLUME_PLUGINS: [&str; 5] =
    ["VolumeBinding", "VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"];

fn weights(random: &mut Random) -> Vec<Value> {
    let mut weights = vec![];
    for plugin in SCORING_PLUGINS {
        if random.chance(40) {
            // 0 is read as 1.
            weights.push(json!({"name": plugin, "weight": random.below(6)}));
        }
    }
    weights
}

fn weighted_resources(random: &mut Random) -> Value {
    let mut resources = vec![
        json!({"name": "cpu", "weight": random.between(1, 3)}),
        json!({"name": "memory", "weight": random.between(1, 3)}),
    ];
    if random.chance(50) {
        resources.push(json!({"name": "example.com/gpu", "weight": random.between(1, 5)}));
    }
    if random.chance(20) {
        resources.push(json!({"name": "ephemeral-storage", "weight": 1}));
    }
    json!(resources)
}

fn fit(random: &mut Random) -> Value {
    let strategies = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
    let strategy = random.pick(&strategies);
    let mut scoring = json!({"type": strategy, "resources": weighted_resources(random)});
    if strategy == "RequestedToCapacityRatio" {
        let point =
            |utilization: i32, score: i32| json!({"utilization": utilization, "score": score});
        let shape = random.pick(&[
            json!([point(0, 0), point(100, 10)]),
            json!([point(20, 9), point(50, 3), point(90, 7)]),
            json!([point(10, 0), point(60, 10)]),
        ]);
        scoring["requestedToCapacityRatio"] = json!({"shape": shape});
    }
    let mut args = json!({"scoringStrategy": scoring});
    if random.chance(30) {
        args["ignoredResources"] = json!(["example.com/gpu"]);
    }
    if random.chance(20) {
        args["ignoredResourceGroups"] = json!(["example.com"]);
    }
    args
}

fn balanced_allocation(random: &mut Random) -> Value {
    let names = ["cpu", "memory", "example.com/gpu"];
    let count = if random.chance(60) { 3 } else { 2 };
    let resource = |name: &&str| json!({"name": name, "weight": 1});
    json!({"resources": names.iter().take(count).map(resource).collect::<Vec<_>>()})
}

fn default_spread(random: &mut Random) -> Value {
    json!({
        "defaultingType": "List",
        "defaultConstraints": [{
            "maxSkew": random.between(1, 2),
            "topologyKey": random.pick(&["zone", "kubernetes.io/hostname"]),
            "whenUnsatisfiable": random.pick(&["DoNotSchedule", "ScheduleAnyway"]),
        }],
    })
}

fn inter_pod_affinity(random: &mut Random) -> Value {
    json!({
        "hardPodAffinityWeight": random.below(20),
        "ignorePreferredTermsOfExistingPods": random.chance(30),
    })
}

fn added_affinity(random: &mut Random) -> Value {
    let zones = |zones: &[&str]| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]});
    let affinity = if random.chance(50) {
        let terms = json!({"nodeSelectorTerms": [zones(&["a", "b"])]});
        json!({"requiredDuringSchedulingIgnoredDuringExecution": terms})
    } else {
        let terms = json!([{"weight": 50, "preference": zones(&["b"])}]);
        json!({"preferredDuringSchedulingIgnoredDuringExecution": terms})
    };
    json!({"addedAffinity": affinity})
}
