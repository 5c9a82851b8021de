//! Lists taken as sets.

use super::{Called, Function, lists};
use crate::budget::Budget;
use crate::value::{Failure, Value};

/// What an attribute can have at most, once attributes can be lists.
const INCLUDES_MAX: usize = 48;

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    if let (Function::Includes, [this, wanted]) = (function, args) {
        return includes(this, wanted, budget);
    }
    let [Value::List(one), Value::List(other)] = args else { return Ok(None) };
    let answer = match function {
        Function::SetContains => contains_all(one, other, budget)?,
        Function::SetEquivalent => {
            contains_all(one, other, budget)? && contains_all(other, one, budget)?
        }
        Function::SetIntersects => intersects(one, other, budget)?,
        _ => return Ok(None),
    };
    Ok(Some(Value::Bool(answer)))
}

/// Of a list, or of a value that stands for a list of one.
fn includes(this: &Value, wanted: &Value, budget: &mut Budget) -> Called {
    let list = match this {
        Value::List(list) => &**list,
        other => std::slice::from_ref(other),
    };
    for (at, element) in list.iter().enumerate() {
        if at >= INCLUDES_MAX {
            return Err(Failure::new(format!(
                "'includes' function cannot be applied to lists longer than {INCLUDES_MAX} values"
            )));
        }
        if lists::is_equal(element, wanted, budget)? {
            return Ok(Some(Value::Bool(true)));
        }
    }
    Ok(Some(Value::Bool(false)))
}

/// `in`: the wanted value decides whether it can be compared.
pub(crate) fn contains(
    list: &[Value],
    wanted: &Value,
    budget: &mut Budget,
) -> Result<bool, Failure> {
    for element in list {
        if lists::is_equal(wanted, element, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all(list: &[Value], all: &[Value], budget: &mut Budget) -> Result<bool, Failure> {
    for wanted in all {
        if !contains(list, wanted, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(one: &[Value], other: &[Value], budget: &mut Budget) -> Result<bool, Failure> {
    for wanted in one {
        if contains(other, wanted, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}
