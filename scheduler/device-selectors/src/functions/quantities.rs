//! Quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Called, Function};
use crate::budget::Budget;
use crate::quantity::Quantity;
use crate::value::{Failure, Value};

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    match args {
        [Value::String(text)] => {
            budget.spend_bytes(text.len())?;
            of_text(function, text)
        }
        [Value::Quantity(this)] => alone(function, this),
        [Value::Quantity(this), Value::Quantity(other)] => with(function, this, other),
        [Value::Quantity(this), Value::Int(other)] => match function {
            Function::Add | Function::Sub => with(function, this, &Quantity::from_int(*other)),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn of_text(function: Function, text: &str) -> Called {
    match function {
        Function::Quantity => {
            let quantity = Quantity::parse(text).map_err(Failure::new)?;
            Ok(Some(Value::Quantity(Arc::new(quantity))))
        }
        Function::IsQuantity => Ok(Some(Value::Bool(Quantity::parse(text).is_ok()))),
        _ => Ok(None),
    }
}

fn alone(function: Function, this: &Quantity) -> Called {
    Ok(Some(match function {
        Function::Sign => Value::Int(this.sign()),
        Function::IsInteger => Value::Bool(this.as_integer().is_some()),
        Function::AsInteger => {
            let cannot = || Failure::new("cannot convert value to integer");
            Value::Int(this.as_integer().ok_or_else(cannot)?)
        }
        Function::AsApproximateFloat => Value::Double(this.as_approximate_double()),
        _ => return Ok(None),
    }))
}

fn with(function: Function, this: &Quantity, other: &Quantity) -> Called {
    let made = |it: Option<Quantity>| {
        let too_large = || Failure::new("quantity has more digits than can be held");
        Ok(Some(Value::Quantity(Arc::new(it.ok_or_else(too_large)?))))
    };
    match function {
        Function::Add => made(this.add(other)),
        Function::Sub => made(this.sub(other)),
        Function::IsLessThan | Function::IsGreaterThan | Function::CompareTo => {
            Ok(compared(function, this.compare_to(other)))
        }
        _ => Ok(None),
    }
}

/// The three comparisons that quantities and versions share.
pub(super) fn compared(function: Function, order: Ordering) -> Option<Value> {
    Some(match function {
        Function::IsLessThan => Value::Bool(order.is_lt()),
        Function::IsGreaterThan => Value::Bool(order.is_gt()),
        Function::CompareTo => Value::Int(order as i64),
        _ => return None,
    })
}
