//! What a Node can reach.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{items, name, text};
use super::Id;

/// The pools, as a Node sees them.
#[derive(Debug, Default)]
pub(super) struct View<'a> {
    /// Devices with the `spec` of their slices.
    pub devices: BTreeMap<Id<'a>, (&'a Value, &'a Value)>,
    /// The slices of each pool that can be used, also those that are out of reach.
    pub published: Vec<Vec<&'a Value>>,
    /// Some pools are incomplete, or contradict themselves.
    pub has_unusable: bool,
}

impl<'a> View<'a> {
    pub fn of(case: &'a Value, node: &Value) -> Self {
        let mut pools: BTreeMap<[&str; 2], Vec<&Value>> = BTreeMap::new();
        for slice in items(&case["slices"]) {
            let spec = &slice["spec"];
            pools
                .entry([text(&spec["driver"]), text(&spec["pool"]["name"])])
                .or_default()
                .push(spec);
        }
        let mut view = Self::default();
        for slices in pools.values() {
            view.add(slices, node);
        }
        view
    }

    fn add(&mut self, all: &[&'a Value], node: &Value) {
        let generation = |spec: &Value| spec["pool"]["generation"].as_i64();
        let is_near = |spec: &Value| spec["sharedCounters"].is_array() || slice_reaches(spec, node);
        let Some(newest) = all.iter().filter(|it| is_near(it)).map(|it| generation(it)).max()
        else {
            return;
        };
        let current: Vec<&Value> =
            all.iter().copied().filter(|it| generation(it) == newest).collect();
        let near: Vec<&Value> = current.iter().copied().filter(|it| is_near(it)).collect();
        let count = near.iter().filter_map(|it| it["pool"]["resourceSliceCount"].as_u64()).max();
        let is_complete = |slices: &[&Value]| u64::try_from(slices.len()).ok() == count;
        let published = if is_complete(&near) {
            near.clone()
        } else if all.iter().any(|it| generation(it) > newest) {
            return;
        } else if is_complete(&current) {
            current
        } else {
            self.has_unusable = true;
            return;
        };
        if contradicts_itself(&near, &published) {
            self.has_unusable = true;
            return;
        }
        for spec in near {
            for device in items(&spec["devices"]) {
                let id = [&spec["driver"], &spec["pool"]["name"], &device["name"]].map(text);
                if spec["perDeviceNodeSelection"] != true || reaches(device, node) {
                    self.devices.insert(id, (spec, device));
                }
            }
        }
        self.published.push(published);
    }
}

fn contradicts_itself(near: &[&Value], published: &[&Value]) -> bool {
    let (mut devices, mut counters) = (BTreeSet::new(), BTreeMap::new());
    for spec in near {
        let is_new = |device: &Value| devices.insert(text(&device["name"]).to_owned());
        if !items(&spec["devices"]).iter().all(is_new) {
            return true;
        }
        for set in items(&spec["sharedCounters"]) {
            if counters.insert(text(&set["name"]), &set["counters"]).is_some() {
                return true;
            }
        }
    }
    let mut drawn = published
        .iter()
        .flat_map(|spec| items(&spec["devices"]))
        .flat_map(|device| items(&device["consumesCounters"]).iter());
    drawn.any(|drawn| {
        let Some(set) = counters.get(text(&drawn["counterSet"])) else { return true };
        drawn["counters"]
            .as_object()
            .is_some_and(|it| it.keys().any(|name| set.get(name).is_none()))
    })
}

fn slice_reaches(spec: &Value, node: &Value) -> bool {
    if spec["perDeviceNodeSelection"] == true {
        return items(&spec["devices"]).iter().any(|device| reaches(device, node));
    }
    reaches(spec, node)
}

/// A slice or a device: both say it in the same words.
fn reaches(spec: &Value, node: &Value) -> bool {
    match spec["nodeName"].as_str() {
        Some(wanted) => wanted == name(node),
        None => spec["allNodes"] == true || selects(&spec["nodeSelector"], node),
    }
}

/// Whether a node selector is true of the Node.
pub(super) fn selects(selector: &Value, node: &Value) -> bool {
    items(&selector["nodeSelectorTerms"]).iter().any(|term| {
        let (expressions, fields) = (items(&term["matchExpressions"]), items(&term["matchFields"]));
        let labels = &node["metadata"]["labels"];
        let is_true = |it: &Value| holds(it, labels.get(text(&it["key"])).map(text));
        let is_true_of_field =
            |it: &Value| it["key"] == "metadata.name" && holds(it, Some(name(node)));
        !(expressions.is_empty() && fields.is_empty())
            && expressions.iter().all(is_true)
            && fields.iter().all(is_true_of_field)
    })
}

fn holds(requirement: &Value, value: Option<&str>) -> bool {
    let is_listed =
        value.is_some_and(|value| items(&requirement["values"]).iter().any(|it| it == value));
    match text(&requirement["operator"]) {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}
