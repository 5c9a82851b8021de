//! What each claim must have for itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::{Verdict, items, name, text, verdict};
use super::amounts::{amounts, consumed};
use super::reach::selects;
use super::{Judge, Rule, has_admin_access, id, is_shared};

const RESULTS_MAX: usize = 32;

impl<'a> Judge<'a> {
    pub(super) fn claim(&mut self, claim: &'a Value, allocation: &Value) {
        let (spec, results) = (&claim["spec"]["devices"], items(&allocation["devices"]["results"]));
        self.require(results.len() <= RESULTS_MAX, Rule::Shape, || {
            format!("{} devices", results.len())
        });
        let mut met = 0;
        for request in items(&spec["requests"]) {
            let base = text(&request["name"]);
            let of =
                |name: &str| results.iter().filter(|it| it["request"] == name).collect::<Vec<_>>();
            let alternatives = items(&request["firstAvailable"]).iter();
            let alternatives = alternatives.map(|it| (format!("{base}/{}", text(&it["name"])), it));
            let own = (base.to_owned(), &request["exactly"]);
            let asks = alternatives.chain(request.get("exactly").map(|_| own));
            let chosen: Vec<_> = asks.filter(|(name, _)| !of(name).is_empty()).collect();
            self.require(chosen.len() == 1, Rule::Count, || {
                format!("{base}: {} alternatives", chosen.len())
            });
            for (name, ask) in chosen {
                met += of(&name).len();
                self.request(ask, &name, &of(&name));
            }
        }
        self.require(met == results.len(), Rule::Count, || {
            "devices that nobody asked for".to_owned()
        });
        for constraint in items(&spec["constraints"]) {
            self.constraint(constraint, results);
        }
        self.nodes(results, &allocation["nodeSelector"]);
    }

    fn request(&mut self, ask: &Value, request: &str, results: &[&Value]) {
        let ids: BTreeSet<_> = results.iter().map(|it| id(it)).collect();
        self.require(ids.len() == results.len(), Rule::Repeated, || request.to_owned());
        for result in results {
            self.result(ask, result);
        }
        if ask["allocationMode"] == "All" {
            self.require(!self.view.has_unusable, Rule::All, || {
                format!("{request}: a pool is missing")
            });
            let devices = self.view.devices.iter();
            let missing = devices.filter(|(_, (spec, device))| {
                is_selected(self.case, ask, text(&spec["driver"]), device)
                    && amounts(ask, device).is_some()
            });
            let missing: Vec<_> =
                missing.map(|(id, _)| *id).filter(|id| !ids.contains(id)).collect();
            self.require(missing.is_empty(), Rule::All, || format!("{request}: not {missing:?}"));
        } else {
            let count = ask["count"].as_u64();
            let has = u64::try_from(results.len()).ok();
            self.require(has == count, Rule::Count, || format!("{request}: {has:?} of {count:?}"));
        }
    }

    fn result(&mut self, ask: &Value, result: &Value) {
        let shown = || format!("{}: {:?}", text(&result["request"]), id(result));
        let Some((spec, device)) = self.view.devices.get(&id(result)).copied() else {
            return self.require(false, Rule::Reach, shown);
        };
        let is_selected = is_selected(self.case, ask, text(&spec["driver"]), device);
        self.require(is_selected, Rule::Selectors, shown);
        let mut taints = items(&device["taints"]).iter();
        let tolerations = items(&ask["tolerations"]);
        let is_tolerated = |taint: &Value| tolerations.iter().any(|it| tolerates(it, taint));
        let repels =
            |taint: &Value| taint["effect"] == "NoSchedule" || taint["effect"] == "NoExecute";
        self.require(taints.all(|it| !repels(it) || is_tolerated(it)), Rule::Taints, shown);
        let wanted = amounts(ask, device);
        let is_right = match wanted {
            None => false,
            Some(wanted) if is_shared(device) => wanted == consumed(result),
            Some(_) => result["consumedCapacity"].is_null(),
        };
        self.require(is_right, Rule::Amounts, shown);
        let same = |a: &Value, b: &Value| items(a) == items(b);
        let is_copied = same(&ask["tolerations"], &result["tolerations"])
            && same(&device["bindingConditions"], &result["bindingConditions"])
            && same(&device["bindingFailureConditions"], &result["bindingFailureConditions"])
            && (ask["adminAccess"] == true) == has_admin_access(result)
            && is_shared(device) == result["shareID"].is_string();
        self.require(is_copied, Rule::Copied, shown);
    }

    fn constraint(&mut self, constraint: &Value, results: &[Value]) {
        let named = items(&constraint["requests"]);
        let is_meant = |result: &&Value| {
            let request = text(&result["request"]);
            let base = request.split('/').next().unwrap_or_default();
            named.is_empty() || named.iter().any(|it| it == request || it == base)
        };
        for (field, rule) in [
            ("matchAttribute", Rule::MatchAttribute),
            ("distinctAttribute", Rule::DistinctAttribute),
        ] {
            let Some(attribute) = constraint[field].as_str() else { continue };
            let values: Vec<_> =
                results.iter().filter(is_meant).map(|it| self.attribute(it, attribute)).collect();
            let is_right = |place: usize| {
                let others = values.iter().take(place);
                let equal = others.filter(|it| **it == values[place]).count();
                !values[place].is_null()
                    && equal == if rule == Rule::MatchAttribute { place } else { 0 }
            };
            self.require((0..values.len()).all(is_right), rule, || {
                format!("{attribute}: {values:?}")
            });
        }
    }

    fn attribute(&self, result: &Value, attribute: &str) -> Value {
        let device = self.view.devices.get(&id(result)).map(|(_, device)| device);
        let own_prefix = format!("{}/", text(&result["driver"]));
        let get = |name: &str| device.and_then(|it| it["attributes"].get(name)).cloned();
        let short = || attribute.strip_prefix(&own_prefix).and_then(get);
        get(attribute).or_else(short).unwrap_or_default()
    }

    fn nodes(&mut self, results: &[Value], selector: &Value) {
        let places: Vec<_> = results
            .iter()
            .filter_map(|result| self.view.devices.get(&id(result)))
            .map(|(spec, device)| {
                let is_per_device = spec["perDeviceNodeSelection"] == true;
                (if is_per_device { *device } else { *spec }, device["bindsToNode"] == true)
            })
            .collect();
        let is_local = places.iter().any(|(place, binds)| *binds || place["nodeName"].is_string());
        let only = json!({"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [name(self.node)]},
        ]}]});
        let terms = |selector: &Value| items(&selector["nodeSelectorTerms"]).to_vec();
        let of_devices = places.iter().flat_map(|(place, _)| terms(&place["nodeSelector"]));
        let wanted: BTreeSet<String> = of_devices.flat_map(|it| requirements(&it)).collect();
        let terms = terms(selector);
        let has: BTreeSet<String> = terms.iter().flat_map(requirements).collect();
        let is_true = || terms.len() == 1 && selects(selector, self.node);
        let is_right = if is_local {
            *selector == only
        } else {
            has == wanted
                && (selector.is_null() == wanted.is_empty())
                && (selector.is_null() || is_true())
        };
        self.require(is_right, Rule::Nodes, || selector.to_string());
    }
}

/// Of a term, each in its words.
fn requirements(term: &Value) -> Vec<String> {
    let of = |field: &'static str| items(&term[field]).iter().map(move |it| format!("{field}{it}"));
    of("matchExpressions").chain(of("matchFields")).collect()
}

fn is_selected(case: &Value, ask: &Value, driver: &str, device: &Value) -> bool {
    let classes = items(&case["classes"]);
    let class = classes.iter().find(|it| name(it) == text(&ask["deviceClassName"]));
    let Some(class) = class else { return false };
    let mut all = items(&class["spec"]["selectors"]).iter().chain(items(&ask["selectors"]));
    all.all(|it| verdict(text(&it["cel"]["expression"]), driver, device) == Some(Verdict::Matches))
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let is_any_or = |field: &str| toleration[field].is_null() || toleration[field] == taint[field];
    let is_value =
        toleration["operator"] == "Exists" || text(&toleration["value"]) == text(&taint["value"]);
    is_any_or("effect") && is_any_or("key") && is_value
}
