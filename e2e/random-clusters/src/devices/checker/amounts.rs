//! How much a share must consume.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{items, milli, text};

/// In thousandths, by names: of every capacity of the device. `None`: the device can never serve this.
pub(super) fn amounts<'a>(ask: &Value, device: &'a Value) -> Option<BTreeMap<&'a str, i128>> {
    let asked = &ask["capacity"]["requests"];
    let mut amounts = BTreeMap::new();
    for (name, capacity) in device["capacity"].as_object().into_iter().flatten() {
        let asked = asked.get(name).and_then(Value::as_str).and_then(milli);
        amounts.insert(name.as_str(), amount(asked, capacity)?);
    }
    let mut names = asked.as_object().into_iter().flat_map(|it| it.keys());
    names.all(|name| amounts.contains_key(name.as_str())).then_some(amounts)
}

fn amount(asked: Option<i128>, capacity: &Value) -> Option<i128> {
    let (value, policy) = (milli(text(&capacity["value"]))?, &capacity["requestPolicy"]);
    let of = |value: &Value| value.as_str().and_then(milli);
    let Some(asked) = asked else {
        let amount = of(&policy["default"]).unwrap_or(value);
        return (amount <= value).then_some(amount);
    };
    let range = &policy["validRange"];
    let listed: Vec<i128> = items(&policy["validValues"]).iter().filter_map(of).collect();
    let smallest = match (of(&range["min"]), of(&range["step"])) {
        _ if !listed.is_empty() => listed.into_iter().filter(|it| *it >= asked).min()?,
        (Some(min), Some(step)) => {
            let steps = (0..).map(|steps| min + steps * step).take_while(|it| *it <= value);
            steps.filter(|it| *it >= asked).min()?
        }
        (Some(min), None) => min.max(asked),
        _ => asked,
    };
    let most = of(&range["max"]).unwrap_or(value).min(value);
    (smallest <= most).then_some(smallest)
}

/// What a result says that it consumes.
pub(super) fn consumed(result: &Value) -> BTreeMap<&str, i128> {
    let consumed = result["consumedCapacity"].as_object().into_iter().flatten();
    consumed.filter_map(|(name, amount)| Some((name.as_str(), milli(text(amount))?))).collect()
}
