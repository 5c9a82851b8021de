//! Fields, indices and `has()`.

use std::sync::Arc;

use super::Evaluation;
use crate::node::{Path, Step};
use crate::number;
use crate::value::{Failure, Map, Origin, Outcome, Value};

impl<'a> Evaluation<'a> {
    pub(super) fn path(&mut self, path: &'a Path) -> Outcome {
        match self.resolve(path)? {
            Value::Optional(inside) if path.tests => Ok(Value::Bool(inside.is_some())),
            value => Ok(value),
        }
    }

    /// With a test left as what it found, if a step is optional.
    pub(super) fn resolve(&mut self, path: &'a Path) -> Outcome {
        let mut value = self.eval(&path.base)?;
        let mut optional = false;
        if let Value::Optional(inside) = &value {
            let Some(inside) = inside else { return Ok(value) };
            value = as_native((**inside).clone()?)?;
            optional = true;
        }
        for (at, step) in path.steps.iter().enumerate() {
            value = value.read()?;
            optional |= step.optional;
            let tested = path.tests && at + 1 == path.steps.len();
            value = match self.step(&value, step, optional || tested)? {
                Some(value) => value,
                None if optional => return Ok(Value::Optional(None)),
                None => return Ok(Value::Bool(false)),
            };
        }
        Ok(match (optional, path.tests) {
            (true, _) => Value::some(value),
            (false, true) => Value::Bool(true),
            (false, false) => value.read()?,
        })
    }

    /// `None` if nothing is there and that is no failure.
    fn step(
        &mut self,
        value: &Value,
        step: &'a Step,
        may_be_absent: bool,
    ) -> Result<Option<Value>, Failure> {
        let key = self.eval(&step.key)?;
        let is_key = matches!(
            key,
            Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_)
        );
        if !is_key {
            return Err(Failure::new(format!("invalid qualifier type: {}", key.type_name())));
        }
        let found = match value {
            Value::Map(map) => map.get(&key).map(Value::read).transpose()?,
            Value::List(list) => list.get(index(&key)?).cloned(),
            _ => None,
        };
        match found {
            None if !may_be_absent && matches!(value, Value::List(_)) => {
                Err(Failure::new(format!("index out of bounds: {}", shown(&key))))
            }
            None if !may_be_absent => Err(Failure::new(format!("no such key: {}", shown(&key)))),
            found => Ok(found),
        }
    }
}

/// Negative indices, and those that no integer can be, are out of every bound.
fn index(key: &Value) -> Result<usize, Failure> {
    let invalid = || Failure::new(format!("unsupported index type: {}", key.type_name()));
    let index = match key {
        Value::Int(it) => usize::try_from(*it).ok(),
        Value::Uint(it) => {
            i64::try_from(*it).map_err(|_| invalid())?;
            usize::try_from(*it).ok()
        }
        Value::Double(it) => usize::try_from(number::exact_int(*it).ok_or_else(invalid)?).ok(),
        _ => return Err(invalid()),
    };
    Ok(index.unwrap_or(usize::MAX))
}

fn shown(key: &Value) -> String {
    match key {
        Value::String(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => it.to_string(),
        Value::Double(it) => it.to_string(),
        Value::Bool(it) => it.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// What cel-go makes of an optional value that passes through a variable or a conditional: its inside is turned into a
/// plain value of Go and back, which not all values survive.
pub(super) fn as_attribute(value: Value) -> Value {
    match value {
        Value::Optional(Some(inside)) => {
            let inside = (*inside).clone().and_then(as_native);
            Value::Optional(Some(Arc::new(inside)))
        }
        other => other,
    }
}

fn as_native(value: Value) -> Outcome {
    match value {
        Value::Quantity(_) | Value::Semver(_) => {
            let name = value.type_name();
            Err(Failure::new(format!("unsupported conversion to ref.Val: {name}")))
        }
        Value::Type(name) => Ok(Value::string(name)),
        Value::Optional(None) => Ok(Value::Null),
        Value::Optional(Some(inside)) => as_native((*inside).clone()?),
        Value::Map(map) if map.origin == Origin::Domains => {
            let entries = map.entries.clone();
            Ok(Value::Map(Arc::new(Map { entries, origin: Origin::Device })))
        }
        other => Ok(other),
    }
}
