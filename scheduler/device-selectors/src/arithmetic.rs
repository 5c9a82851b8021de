//! `+ - * / %`, between values of one type only.

use std::sync::Arc;

use crate::budget::Budget;
use crate::node::Operator;
use crate::value::{Failure, Outcome, Value};

pub(crate) fn calculate(
    operator: Operator,
    one: &Value,
    other: &Value,
    budget: &mut Budget,
) -> Outcome {
    let result = match (one, other) {
        (Value::Int(a), Value::Int(b)) => int(operator, *a, *b)?.map(Value::Int),
        (Value::Uint(a), Value::Uint(b)) => uint(operator, *a, *b)?.map(Value::Uint),
        (Value::Double(a), Value::Double(b)) => double(operator, *a, *b).map(Value::Double),
        _ if matches!(operator, Operator::Add) => joined(one, other, budget)?,
        _ => None,
    };
    result.ok_or_else(|| Failure::no_such_overload(symbol(operator)))
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "_+_",
        Operator::Subtract => "_-_",
        Operator::Multiply => "_*_",
        Operator::Divide => "_/_",
        Operator::Remainder => "_%_",
    }
}

fn joined(one: &Value, other: &Value, budget: &mut Budget) -> Result<Option<Value>, Failure> {
    Ok(Some(match (one, other) {
        (Value::String(a), Value::String(b)) => {
            budget.spend_bytes(a.len().saturating_add(b.len()))?;
            Value::string(format!("{a}{b}"))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            budget.spend_bytes(a.len().saturating_add(b.len()))?;
            Value::Bytes(Arc::from([&**a, &**b].concat()))
        }
        (Value::List(a), Value::List(b)) => {
            budget.spend(a.len().saturating_add(b.len()))?;
            Value::list([&**a, &**b].concat())
        }
        _ => return Ok(None),
    }))
}

fn int(operator: Operator, a: i64, b: i64) -> Result<Option<i64>, Failure> {
    if b == 0 {
        zero_divisor(operator)?;
    }
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
    };
    result.map(Some).ok_or_else(|| Failure::new("integer overflow"))
}

fn uint(operator: Operator, a: u64, b: u64) -> Result<Option<u64>, Failure> {
    if b == 0 {
        zero_divisor(operator)?;
    }
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
    };
    result.map(Some).ok_or_else(|| Failure::new("unsigned integer overflow"))
}

fn zero_divisor(operator: Operator) -> Result<(), Failure> {
    match operator {
        Operator::Divide => Err(Failure::new("division by zero")),
        Operator::Remainder => Err(Failure::new("modulus by zero")),
        Operator::Add | Operator::Subtract | Operator::Multiply => Ok(()),
    }
}

fn double(operator: Operator, a: f64, b: f64) -> Option<f64> {
    Some(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Remainder => return None,
    })
}

pub(crate) fn negate(value: &Value) -> Outcome {
    match value {
        Value::Int(it) => {
            it.checked_neg().map(Value::Int).ok_or_else(|| Failure::new("integer overflow"))
        }
        Value::Double(it) => Ok(Value::Double(-it)),
        _ => Err(Failure::no_such_overload("-_")),
    }
}
