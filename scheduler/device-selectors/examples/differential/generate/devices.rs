//! Random devices.

use model::{Attribute, DeviceCapacity, DeviceType};
use serde_json::{Map, Value, json};

use super::random::Random;
use super::words::{ATTRIBUTES, CAPACITIES, DRIVER, INTS, Kind, QUANTITIES, STRINGS, VERSIONS};

pub fn device(random: &mut Random) -> DeviceType {
    let mut device = DeviceType { driver: DRIVER.into(), ..DeviceType::default() };
    device.allow_multiple_allocations = random.percent(50);
    for (name, kind) in ATTRIBUTES {
        if random.percent(78) {
            // Nothing holds a driver to one type of an attribute.
            let kind = if random.percent(12) { other_kind(random) } else { kind };
            device.attributes.insert(name.into(), attribute(random, kind));
        }
    }
    for name in CAPACITIES {
        if random.percent(78) {
            let text = random.of(&QUANTITIES);
            let capacity = DeviceCapacity { text: text.into(), ..DeviceCapacity::default() };
            device.capacity.insert(name.into(), capacity);
        }
    }
    device
}

fn other_kind(random: &mut Random) -> Kind {
    [Kind::Bool, Kind::Int, Kind::Text, Kind::Version][random.below(4)]
}

fn attribute(random: &mut Random, kind: Kind) -> Attribute {
    match kind {
        Kind::Bool => Attribute::Bool(random.percent(60)),
        Kind::Int => {
            let int = random.of(&INTS);
            Attribute::Int(int.parse().expect("the list has integers"))
        }
        Kind::Text => Attribute::Text(random.of(&STRINGS).into()),
        Kind::Version => Attribute::Version(random.of(&VERSIONS).into()),
    }
}

/// As the Go program reads it.
pub fn as_json(device: &DeviceType) -> Value {
    let attributes = device.attributes.iter().map(|(name, value)| {
        let value = match value {
            Attribute::Bool(it) => json!({ "bool": it }),
            Attribute::Int(it) => json!({ "int": it }),
            Attribute::Text(it) => json!({ "string": it }),
            Attribute::Version(it) => json!({ "version": it }),
        };
        (name.to_string(), value)
    });
    let capacity = device.capacity.iter();
    let capacity = capacity.map(|(name, it)| (name.to_string(), json!(it.text)));
    json!({
        "driver": device.driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": attributes.collect::<Map<_, _>>(),
        "capacity": capacity.collect::<Map<_, _>>(),
    })
}
