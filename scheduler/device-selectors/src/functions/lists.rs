//! Lists.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Called, Function, int, list};
use crate::arithmetic;
use crate::budget::Budget;
use crate::node::Operator;
use crate::order;
use crate::value::{Failure, Value};

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    match (function, args) {
        (Function::Range, [Value::Int(length)]) => {
            budget.spend(usize::try_from(*length).unwrap_or(0))?;
            list((0..*length).map(Value::Int).collect(), budget)
        }
        (_, [Value::List(this)]) => {
            budget.spend(this.len())?;
            alone(function, this, budget)
        }
        (Function::IndexOf, [Value::List(this), wanted]) => {
            Ok(Some(position(this.iter().enumerate(), wanted, budget)?))
        }
        (Function::LastIndexOf, [Value::List(this), wanted]) => {
            Ok(Some(position(this.iter().enumerate().rev(), wanted, budget)?))
        }
        (Function::Slice, [Value::List(this), Value::Int(start), Value::Int(end)]) => {
            slice(this, *start, *end, budget)
        }
        (Function::Flatten, [Value::List(this), Value::Int(depth)]) => {
            if *depth < 0 {
                return Err(Failure::new("level must be non-negative"));
            }
            flattened(this, *depth, budget)
        }
        (Function::SortByKeys, [Value::List(this), Value::List(keys)]) => {
            sorted(this, keys, budget)
        }
        _ => Ok(None),
    }
}

fn alone(function: Function, this: &Arc<[Value]>, budget: &mut Budget) -> Called {
    match function {
        Function::IsSorted => is_sorted(this, budget),
        Function::Sum => sum(this, budget),
        Function::Min => best(this, Ordering::Greater, "min", budget),
        Function::Max => best(this, Ordering::Less, "max", budget),
        Function::First => Ok(Some(optional(this.first()))),
        Function::Last => Ok(Some(optional(this.last()))),
        Function::Flatten => flattened(this, 1, budget),
        Function::Sort => sorted(this, this, budget),
        Function::Reverse => list(this.iter().rev().cloned().collect(), budget),
        Function::Distinct => distinct(this, budget),
        _ => Ok(None),
    }
}

fn optional(value: Option<&Value>) -> Value {
    value.map_or(Value::Optional(None), |it| Value::some(it.clone()))
}

fn position<'a>(
    elements: impl Iterator<Item = (usize, &'a Value)>,
    wanted: &Value,
    budget: &mut Budget,
) -> Result<Value, Failure> {
    for (at, element) in elements {
        if is_equal(element, wanted, budget)? {
            return Ok(int(at));
        }
    }
    Ok(Value::Int(-1))
}

/// What cannot be compared is not equal.
pub(super) fn is_equal(one: &Value, other: &Value, budget: &mut Budget) -> Result<bool, Failure> {
    match order::equal(one, other, budget) {
        Err(failure) if failure.fatal => Err(failure),
        equal => Ok(equal.unwrap_or(false)),
    }
}

/// Lists whose elements are not all of one type: no overload takes them.
fn same_type(this: &[Value]) -> bool {
    let first = this.first().map(Value::type_name);
    this.iter().all(|it| Some(it.type_name()) == first && order::is_ordered(it))
}

/// What comes after the first two in the wrong order does not count.
fn is_sorted(this: &[Value], budget: &mut Budget) -> Called {
    for (at, element) in this.iter().enumerate() {
        if !order::is_ordered(element) {
            return Ok(None);
        }
        let before = at.checked_sub(1).and_then(|at| this.get(at)).unwrap_or(element);
        if try_compare(before, element, budget)? == Some(Ordering::Greater) {
            return Ok(Some(Value::Bool(false)));
        }
    }
    Ok(Some(Value::Bool(true)))
}

/// `None` if the two cannot be compared, which does not count.
fn try_compare(
    one: &Value,
    other: &Value,
    budget: &mut Budget,
) -> Result<Option<Ordering>, Failure> {
    match order::compare(one, other, budget) {
        Err(failure) if failure.fatal => Err(failure),
        order => Ok(order.ok()),
    }
}

fn best(this: &[Value], worse: Ordering, name: &str, budget: &mut Budget) -> Called {
    if !this.iter().all(order::is_ordered) {
        return Ok(None);
    }
    let mut best = this.first().ok_or_else(|| empty(name))?;
    for other in this {
        if try_compare(best, other, budget)? == Some(worse) {
            best = other;
        }
    }
    Ok(Some(best.clone()))
}

fn empty(name: &str) -> Failure {
    Failure::new(format!("{name} called on empty list"))
}

fn sum(this: &[Value], budget: &mut Budget) -> Called {
    let mut sum = match this.first() {
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(_) => return Ok(None),
    };
    for element in this {
        sum = arithmetic::calculate(Operator::Add, &sum, element, budget)?;
    }
    Ok(Some(sum))
}

fn slice(this: &[Value], start: i64, end: i64, budget: &mut Budget) -> Called {
    let refused = |why: &str| Failure::new(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(refused("negative indexes not supported"));
    };
    if from > to {
        return Err(refused("start index must be less than or equal to end index"));
    }
    let part = this.get(from..to);
    let part = part.ok_or_else(|| refused(&format!("list is length {}", this.len())))?;
    list(part.to_vec(), budget)
}

fn flattened(this: &[Value], depth: i64, budget: &mut Budget) -> Called {
    let mut flat = Vec::new();
    flatten_into(&mut flat, this, depth, budget)?;
    list(flat, budget)
}

fn flatten_into(
    flat: &mut Vec<Value>,
    this: &[Value],
    depth: i64,
    budget: &mut Budget,
) -> Result<(), Failure> {
    budget.spend(this.len())?;
    for element in this {
        match element {
            Value::List(inner) if depth > 0 => flatten_into(flat, inner, depth - 1, budget)?,
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}

fn sorted(this: &Arc<[Value]>, keys: &[Value], budget: &mut Budget) -> Called {
    if this.len() != keys.len() {
        return Err(Failure::new("sortBy() expected as many keys as elements"));
    }
    let Some(first) = keys.first() else { return Ok(Some(Value::List(this.clone()))) };
    if !order::is_ordered(first) {
        return Err(Failure::new("list elements must be comparable"));
    }
    if !same_type(keys) && keys.len() > 1 {
        return Err(Failure::new("list elements must have the same type"));
    }
    budget.spend(keys.len().saturating_mul(keys.len().ilog2() as usize + 1))?;
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(this.iter()).collect();
    let mut unlimited = Budget::default();
    pairs.sort_by(|(one, _), (other, _)| {
        order::compare(one, other, &mut unlimited).unwrap_or(Ordering::Equal)
    });
    list(pairs.into_iter().map(|(_, value)| value.clone()).collect(), budget)
}

fn distinct(this: &[Value], budget: &mut Budget) -> Called {
    let mut found: Vec<Value> = Vec::new();
    for element in this {
        let mut seen = false;
        for other in &found {
            seen = seen || is_equal(element, other, budget)?;
        }
        if !seen {
            found.push(element.clone());
        }
    }
    list(found, budget)
}
