//! The variable `device`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Attribute, DeviceType};

use crate::quantity::Quantity;
use crate::semver::Semver;
use crate::value::{Failure, Key, Map, Origin, Outcome, Value};

/// A name without a domain belongs to the driver.
fn split<'a>(name: &'a str, driver: &'a str) -> (&'a str, &'a str) {
    name.split_once('/').unwrap_or((driver, name))
}

type Domains = BTreeMap<Key, BTreeMap<Key, Value>>;

fn insert(domains: &mut Domains, name: &str, driver: &str, value: Value) {
    let (domain, id) = split(name, driver);
    let domain = domains.entry(Key::String(domain.into())).or_default();
    domain.insert(Key::String(id.into()), value);
}

/// A look-up of an unknown domain finds an empty map.
fn map_of_domains(domains: Domains) -> Value {
    let inner = |entries| Value::Map(Arc::new(Map { entries, origin: Origin::Device }));
    let entries = domains.into_iter().map(|(domain, entries)| (domain, inner(entries)));
    Value::Map(Arc::new(Map { entries: entries.collect(), origin: Origin::Domains }))
}

/// All that an expression can see. A device has at most 32 attributes and capacities.
pub(crate) fn value_of(device: &DeviceType) -> Outcome {
    let driver = &*device.driver;
    let mut attributes = Domains::new();
    for (name, attribute) in &device.attributes {
        let value = attribute_value(attribute).map_err(|why| failed(name, &why))?;
        insert(&mut attributes, name, driver, value);
    }
    let mut capacity = Domains::new();
    for (name, declared) in &device.capacity {
        let quantity = Quantity::parse(&declared.text).map_err(|why| failed(name, why))?;
        insert(&mut capacity, name, driver, Value::Quantity(Arc::new(quantity)));
    }
    let fields = [
        ("driver", Value::String(device.driver.clone())),
        ("allowMultipleAllocations", Value::Bool(device.allow_multiple_allocations)),
        ("attributes", map_of_domains(attributes)),
        ("capacity", map_of_domains(capacity)),
    ];
    let entries = fields.into_iter().map(|(name, value)| (Key::String(name.into()), value));
    Ok(Value::Map(Arc::new(Map { entries: entries.collect(), origin: Origin::Device })))
}

fn attribute_value(attribute: &Attribute) -> Result<Value, String> {
    Ok(match attribute {
        Attribute::Bool(it) => Value::Bool(*it),
        Attribute::Int(it) => Value::Int(*it),
        Attribute::Text(it) => Value::String(it.clone()),
        Attribute::Version(it) => {
            let version = Semver::parse(it);
            let version = version.map_err(|why| format!("parse semantic version: {why}"))?;
            Value::Semver(Arc::new(version))
        }
    })
}

fn failed(name: &str, why: &str) -> Failure {
    Failure::fatal(format!("attribute {name}: {why}"))
}
