//! The same case in the words of the model. Cases are ours, so what is malformed is a mistake of the generator, and
//! ends the program.

mod claim;
mod slice;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    DeviceToleration, DeviceType, Labels, Node, Quantity, RawNodeTerm, RawRequirement,
    ResourceClaim, Resources, SelectedNodes, SelectorVerdict,
};
use random_clusters::devices::{Verdict, verdict};
use rules::{DeviceClasses, DevicePools, Selectors, TakenDevices};
use serde_json::Value;

/// What the allocator reads.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub pools: DevicePools,
    pub classes: DeviceClasses,
    pub taken: TakenDevices,
    pub claims: Vec<ResourceClaim>,
    pub verdicts: Verdicts,
}

impl Cluster {
    pub fn of(case: &Value) -> Self {
        let mut pools = DevicePools::default();
        let mut verdicts = Verdicts::default();
        let expressions = expressions(case);
        for slice in items(&case["slices"]) {
            let translated = slice::slice(slice);
            for (device, written) in translated.devices.iter().zip(items(&slice["spec"]["devices"]))
            {
                verdicts.add(&expressions, &device.device_type, written);
            }
            pools.set(translated.into());
        }
        let mut taken = TakenDevices::default();
        for claim in items(&case["allocated"]) {
            let allocation = claim::allocation(&claim["status"]["allocation"]);
            taken.set(&word(&claim["metadata"]["uid"]), Some(&allocation));
        }
        let classes = items(&case["classes"]).iter().map(claim::class);
        Self {
            nodes: items(&case["nodes"]).iter().map(node).collect(),
            pools,
            classes: classes.map(|it| (it.name.clone(), it.into())).collect(),
            taken,
            claims: items(&case["claims"]).iter().map(claim::claim).collect(),
            verdicts,
        }
    }
}

/// What the expressions of a case say of its devices.
#[derive(Default)]
pub struct Verdicts(BTreeMap<Arc<DeviceType>, BTreeMap<Arc<str>, SelectorVerdict>>);

impl Verdicts {
    fn add(&mut self, expressions: &[&str], device_type: &Arc<DeviceType>, written: &Value) {
        let of_type = self.0.entry(device_type.clone()).or_default();
        for expression in expressions {
            let said = match verdict(expression, &device_type.driver, written) {
                Some(Verdict::Matches) => SelectorVerdict::Matches,
                Some(Verdict::DoesNotMatch) => SelectorVerdict::DoesNotMatch,
                Some(Verdict::RuntimeError) => SelectorVerdict::Fails("CEL runtime error: ".into()),
                Some(Verdict::CompileError) => SelectorVerdict::Fails("CEL compile error: ".into()),
                None => unreachable!("no case has the expression {expression}"),
            };
            let before = of_type.insert((*expression).into(), said.clone());
            assert!(before.is_none_or(|it| it == said), "two devices of one type");
        }
    }
}

impl Selectors for Verdicts {
    fn verdict(&self, expression: &Arc<str>, device: &Arc<DeviceType>) -> SelectorVerdict {
        self.0[device][expression].clone()
    }
}

/// All that selectors of the case say.
fn expressions(case: &Value) -> Vec<&str> {
    let classes = items(&case["classes"]).iter().map(|it| &it["spec"]);
    let requests =
        items(&case["claims"]).iter().flat_map(|it| items(&it["spec"]["devices"]["requests"]));
    let asks = requests.flat_map(|it| items(&it["firstAvailable"]).iter().chain([&it["exactly"]]));
    let selectors = classes.chain(asks).flat_map(|it| items(&it["selectors"]));
    selectors.filter_map(|it| it["cel"]["expression"].as_str()).collect()
}

fn node(node: &Value) -> Node {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: Labels = labels.map(|(key, value)| (key.as_str().into(), word(value))).collect();
    Node {
        name: text(&node["metadata"]["name"]).into(),
        labels,
        taints: Vec::new(),
        unschedulable: false,
        allocatable: Resources::default(),
        pods_max: 110,
    }
}

fn selected_nodes(selector: &Value) -> Arc<SelectedNodes> {
    let requirement = |it: &Value| RawRequirement {
        key: text(&it["key"]).to_owned(),
        operator: text(&it["operator"]).to_owned(),
        values: items(&it["values"]).iter().map(|it| text(it).to_owned()).collect(),
    };
    let requirements = |list: &Value| items(list).iter().map(requirement).collect();
    let terms = items(&selector["nodeSelectorTerms"]).iter().map(|term| RawNodeTerm {
        expressions: requirements(&term["matchExpressions"]),
        fields: requirements(&term["matchFields"]),
    });
    SelectedNodes::parse(terms.collect()).into()
}

fn tolerations(list: &Value) -> Vec<DeviceToleration> {
    let toleration = |it: &Value| DeviceToleration {
        key: word(&it["key"]),
        exists: it["operator"] == "Exists",
        value: word(&it["value"]),
        effect: it["effect"].as_str().map(slice::effect),
        toleration_seconds: it["tolerationSeconds"].as_i64(),
    };
    items(list).iter().map(toleration).collect()
}

fn quantities(map: &Value) -> BTreeMap<Arc<str>, Quantity> {
    let all = map.as_object().into_iter().flatten();
    all.map(|(name, amount)| (name.as_str().into(), quantity(amount))).collect()
}

fn quantity(amount: &Value) -> Quantity {
    text(amount).parse().expect("a quantity")
}

fn words(list: &Value) -> Vec<Arc<str>> {
    items(list).iter().map(word).collect()
}

fn word(value: &Value) -> Arc<str> {
    text(value).into()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
