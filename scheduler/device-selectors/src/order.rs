//! Equality and order of values, as cel-go has them.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::budget::Budget;
use crate::number;
use crate::value::{Failure, Map, Outcome, Value};

/// `==`. Semver and Quantity on the left refuse other types; on the right they are just not equal. Quantities also
/// refuse sums of quantities.
pub(crate) fn equal(one: &Value, other: &Value, budget: &mut Budget) -> Result<bool, Failure> {
    budget.spend(1)?;
    Ok(match (one, other) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Failed(why), _) => return Err((**why).clone()),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::List(a), Value::List(b)) => equal_lists(a, b, budget)?,
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b, budget)?,
        (Value::Optional(a), Value::Optional(b)) => equal_optionals(a, b, budget)?,
        (Value::Semver(a), Value::Semver(b)) => a.cmp(b).is_eq(),
        (Value::Quantity(a), Value::Quantity(b)) if !b.is_sum => a == b,
        (Value::Semver(_) | Value::Quantity(_), _) => {
            return Err(Failure::no_such_overload("=="));
        }
        _ => number::compare(one, other) == Some(Ordering::Equal),
    })
}

/// Elements that cannot be compared count as equal.
fn equal_lists(one: &[Value], other: &[Value], budget: &mut Budget) -> Result<bool, Failure> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (a, b) in one.iter().zip(other) {
        if !not_unequal(equal(a, b, budget))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(one: &Map, other: &Map, budget: &mut Budget) -> Result<bool, Failure> {
    if one.entries.len() != other.entries.len() {
        return Ok(false);
    }
    for (key, a) in &one.entries {
        let Some(b) = other.get(&key.value()) else { return Ok(false) };
        if !not_unequal(equal(a, &b, budget))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn not_unequal(equal: Result<bool, Failure>) -> Result<bool, Failure> {
    match equal {
        Err(failure) if failure.fatal => Err(failure),
        equal => Ok(equal != Ok(false)),
    }
}

type Inside = Option<Arc<Outcome>>;

fn equal_optionals(one: &Inside, other: &Inside, budget: &mut Budget) -> Result<bool, Failure> {
    let (Some(a), Some(b)) = (one, other) else { return Ok(one.is_none() && other.is_none()) };
    match (&**a, &**b) {
        (Ok(a), Ok(b)) => equal(a, b, budget),
        (Err(failure), _) | (Ok(Value::Semver(_) | Value::Quantity(_)), Err(failure)) => {
            Err(failure.clone())
        }
        (Ok(_), Err(_)) => Ok(false),
    }
}

/// What can be ordered at all: the first of a list has to be.
pub(crate) fn is_ordered(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
    )
}

pub(crate) fn compare(
    one: &Value,
    other: &Value,
    budget: &mut Budget,
) -> Result<Ordering, Failure> {
    budget.spend(1)?;
    let order = match (one, other) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        _ => number::compare(one, other),
    };
    let is_number = |it: &Value| matches!(it, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    order.ok_or_else(|| {
        if is_number(one) && is_number(other) {
            Failure::new("NaN values cannot be ordered")
        } else {
            Failure::no_such_overload("comparison")
        }
    })
}
