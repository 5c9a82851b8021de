//! Numbers of different types: order, equality and conversion.

use std::cmp::Ordering;

use crate::value::Value;

/// 2⁶³ and 2⁶⁴, which doubles hold exactly.
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// `None` if one of them is no number or NaN. Doubles and integers are compared as doubles, as in cel-go: beyond 2⁵³ an
/// integer can equal a double that is not the same number.
pub(crate) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Uint(b)) => {
            Some(u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b)))
        }
        (Value::Uint(a), Value::Int(b)) => {
            Some(u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b)))
        }
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), Value::Int(b)) => double_with_int(*a, *b),
        (Value::Double(a), Value::Uint(b)) => double_with_uint(*a, *b),
        (Value::Int(a), Value::Double(b)) => double_with_int(*b, *a).map(Ordering::reverse),
        (Value::Uint(a), Value::Double(b)) => double_with_uint(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "cel-go compares so")]
fn double_with_int(double: f64, int: i64) -> Option<Ordering> {
    match double {
        d if d < -TWO_POW_63 => Some(Ordering::Less),
        d if d > TWO_POW_63 => Some(Ordering::Greater),
        d => d.partial_cmp(&(int as f64)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "cel-go compares so")]
fn double_with_uint(double: f64, uint: u64) -> Option<Ordering> {
    match double {
        d if d < 0.0 => Some(Ordering::Less),
        d if d > TWO_POW_64 => Some(Ordering::Greater),
        d => d.partial_cmp(&(uint as f64)),
    }
}

/// The integer that a double is exactly.
pub(crate) fn exact_int(double: f64) -> Option<i64> {
    int_of_double(double).filter(|_| double.fract() == 0.0)
}

pub(crate) fn exact_uint(double: f64) -> Option<u64> {
    uint_of_double(double).filter(|_| double.fract() == 0.0)
}

/// Of `int(double)`: both ends of the range are refused.
pub(crate) fn int_of_double(double: f64) -> Option<i64> {
    (double > -TWO_POW_63 && double < TWO_POW_63).then(|| truncated_int(double))
}

pub(crate) fn uint_of_double(double: f64) -> Option<u64> {
    (0.0..TWO_POW_64).contains(&double).then(|| truncated_uint(double))
}

#[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
fn truncated_int(double: f64) -> i64 {
    double as i64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was checked"
)]
fn truncated_uint(double: f64) -> u64 {
    double as u64
}
