//! Between the basic types.

use std::str;

use super::{Called, Function};
use crate::budget::Budget;
use crate::number;
use crate::value::{Failure, Value};

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    let [value] = args else { return Ok(None) };
    match function {
        Function::Dyn => Ok(Some(value.clone())),
        Function::Type => Ok(Some(Value::Type(value.type_name()))),
        Function::Size => size(value, budget),
        Function::Bool => to_bool(value),
        Function::Bytes => Ok(match value {
            Value::Bytes(_) => Some(value.clone()),
            Value::String(it) => Some(Value::Bytes(it.as_bytes().into())),
            _ => None,
        }),
        Function::Double => to_double(value),
        Function::Int => to_int(value),
        Function::Uint => to_uint(value),
        Function::String => to_string(value, budget),
        _ => Ok(None),
    }
}

fn size(value: &Value, budget: &mut Budget) -> Called {
    Ok(Some(super::int(match value {
        Value::String(it) => {
            budget.spend_bytes(it.len())?;
            it.chars().count()
        }
        Value::Bytes(it) => it.len(),
        Value::List(it) => it.len(),
        Value::Map(it) => it.entries.len(),
        _ => return Ok(None),
    })))
}

fn cannot_convert(value: &Value, to: &str) -> Failure {
    Failure::new(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

fn out_of_range(to: &str) -> Failure {
    Failure::new(format!("{to} overflow"))
}

fn to_bool(value: &Value) -> Called {
    let text = match value {
        Value::Bool(_) => return Ok(Some(value.clone())),
        Value::String(it) => it,
        _ => return Ok(None),
    };
    match &**text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Some(Value::Bool(true))),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Some(Value::Bool(false))),
        _ => Err(cannot_convert(value, "bool")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double has no more digits")]
fn to_double(value: &Value) -> Called {
    Ok(Some(Value::Double(match value {
        Value::Double(it) => *it,
        Value::Int(it) => *it as f64,
        Value::Uint(it) => *it as f64,
        Value::String(it) => parse_double(it).ok_or_else(|| cannot_convert(value, "double"))?,
        _ => return Ok(None),
    })))
}

/// As Go reads it, without its hexadecimal forms: the words for infinity, but no overflow into it.
fn parse_double(text: &str) -> Option<f64> {
    let parsed: f64 = text.parse().ok()?;
    let is_word = text.bytes().any(|it| b"nN".contains(&it));
    (parsed.is_finite() || is_word).then_some(parsed)
}

fn to_int(value: &Value) -> Called {
    Ok(Some(Value::Int(match value {
        Value::Int(it) => *it,
        Value::Uint(it) => i64::try_from(*it).map_err(|_| out_of_range("int"))?,
        Value::Double(it) => number::int_of_double(*it).ok_or_else(|| out_of_range("int"))?,
        Value::String(it) => it.parse().map_err(|_| cannot_convert(value, "int"))?,
        _ => return Ok(None),
    })))
}

fn to_uint(value: &Value) -> Called {
    Ok(Some(Value::Uint(match value {
        Value::Uint(it) => *it,
        Value::Int(it) => u64::try_from(*it).map_err(|_| out_of_range("uint"))?,
        Value::Double(it) => number::uint_of_double(*it).ok_or_else(|| out_of_range("uint"))?,
        // Unlike for integers, Go takes no sign here.
        Value::String(it) if it.starts_with('+') => return Err(cannot_convert(value, "uint")),
        Value::String(it) => it.parse().map_err(|_| cannot_convert(value, "uint"))?,
        _ => return Ok(None),
    })))
}

fn to_string(value: &Value, budget: &mut Budget) -> Called {
    let text = match value {
        Value::String(_) => return Ok(Some(value.clone())),
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => it.to_string(),
        Value::Double(it) => shown_double(*it),
        Value::Bytes(it) => {
            let text = str::from_utf8(it);
            text.map_err(|_| Failure::new("invalid UTF-8 in bytes, cannot convert to string"))?
                .into()
        }
        _ => return Ok(None),
    };
    super::text(text, budget)
}

/// The shortest text that reads back as the same double, with an exponent where C's `%g` has one.
fn shown_double(double: f64) -> String {
    if double.is_nan() {
        return "NaN".into();
    }
    if double.is_infinite() {
        return if double > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let scientific = format!("{double:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{double}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
