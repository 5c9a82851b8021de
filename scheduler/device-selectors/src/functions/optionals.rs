//! Optional values.

use std::sync::Arc;

use super::{Called, Function};
use crate::budget::Budget;
use crate::value::{Failure, Outcome, Value};

pub(super) fn call(function: Function, args: &[Value], _: &mut Budget) -> Called {
    match (function, args) {
        (Function::OptionalNone, []) => Ok(Some(Value::Optional(None))),
        (Function::OptionalOfNonZero, [value]) if is_zero(value) => Ok(Some(Value::Optional(None))),
        (Function::OptionalOf | Function::OptionalOfNonZero, [value]) => {
            Ok(Some(Value::some(value.clone())))
        }
        (Function::HasValue, [Value::Optional(inside)]) => Ok(Some(Value::Bool(inside.is_some()))),
        (Function::Value, [Value::Optional(inside)]) => inside_of(inside.as_ref()).map(Some),
        (Function::OptionalUnwrap | Function::UnwrapOpt, [Value::List(list)]) => unwrap(list),
        _ => Ok(None),
    }
}

fn inside_of(inside: Option<&Arc<Outcome>>) -> Outcome {
    let none = || Err(Failure::new("optional.none() dereference"));
    inside.map_or_else(none, |it| (**it).clone())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Int(it) => *it == 0,
        Value::Uint(it) => *it == 0,
        Value::Double(it) => *it == 0.0,
        Value::String(it) => it.is_empty(),
        Value::Bytes(it) => it.is_empty(),
        Value::List(it) => it.is_empty(),
        Value::Map(it) => it.entries.is_empty(),
        Value::Optional(_)
        | Value::Type(_)
        | Value::Quantity(_)
        | Value::Semver(_)
        | Value::Failed(_) => false,
    }
}

fn unwrap(list: &[Value]) -> Called {
    let mut values = Vec::new();
    for element in list {
        match element {
            Value::Optional(None) => {}
            Value::Optional(Some(inside)) => values.push(Value::carried(inside)),
            other => {
                let text = format!("value of type {} is not optional", other.type_name());
                return Err(Failure::new(text));
            }
        }
    }
    Ok(Some(Value::list(values)))
}
