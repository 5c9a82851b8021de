//! How much a request takes of each capacity of a device.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{CapacityPolicy, CapacityValues, DeviceCapacity, DeviceType, Quantity, SubRequest};

/// By names of capacities: every one that the device has.
pub(super) type Amounts = BTreeMap<Arc<str>, Quantity>;

/// What the request takes of the device. `None`: no device of this type can serve it, not even an unused one.
///
/// Of a device that cannot be shared, the request takes all; the amounts are what it must have at least.
pub(super) fn amounts(request: &SubRequest, device: &DeviceType) -> Option<Amounts> {
    // Names are compared as they are written: `id` and `driver/id` differ.
    let has_all = request.capacity.keys().all(|name| device.capacity.contains_key(name));
    let mut amounts = Amounts::new();
    for (name, capacity) in &device.capacity {
        let amount = amount(request.capacity.get(name).copied(), capacity);
        if !is_valid(amount, capacity) || amount > capacity.value {
            return None;
        }
        amounts.insert(name.clone(), amount);
    }
    has_all.then_some(amounts)
}

fn amount(asked: Option<Quantity>, capacity: &DeviceCapacity) -> Quantity {
    let policy = capacity.policy.as_ref();
    let Some(asked) = asked else {
        let default = policy.and_then(|policy| policy.default);
        return default.unwrap_or(capacity.value);
    };
    match policy.map(|policy| &policy.values) {
        Some(CapacityValues::Range { min: Some(min), step, .. }) => match step {
            _ if asked < *min => *min,
            Some(step) => asked.rounded_up_to_step(*min, *step),
            None => asked,
        },
        Some(CapacityValues::Listed(values)) => {
            values.iter().copied().find(|value| *value >= asked).unwrap_or(asked)
        }
        _ => asked,
    }
}

fn is_valid(amount: Quantity, capacity: &DeviceCapacity) -> bool {
    let Some(CapacityPolicy { default, values }) = &capacity.policy else { return true };
    if *default == Some(amount) {
        return true;
    }
    match values {
        CapacityValues::Any => true,
        CapacityValues::Listed(values) => values.is_empty() || values.contains(&amount),
        CapacityValues::Range { min, max, step } => {
            let is_step = step.is_none_or(|step| {
                let from = min.unwrap_or_default();
                amount.rounded_up_to_step(from, step) == amount.rounded_up()
            });
            max.is_none_or(|max| amount <= max) && is_step
        }
    }
}
