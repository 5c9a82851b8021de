//! Semantic versions.

use std::sync::Arc;

use super::{Called, Function, quantities};
use crate::budget::Budget;
use crate::semver::Semver;
use crate::value::{Failure, Value};

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    match args {
        [Value::String(text)] => of_text(function, text, false, budget),
        [Value::String(text), Value::Bool(normalize)] => {
            of_text(function, text, *normalize, budget)
        }
        [Value::Semver(this)] => Ok(Some(match function {
            Function::Major => part(this.major),
            Function::Minor => part(this.minor),
            Function::Patch => part(this.patch),
            _ => return Ok(None),
        })),
        [Value::Semver(this), Value::Semver(other)] => {
            Ok(quantities::compared(function, this.cmp(other)))
        }
        _ => Ok(None),
    }
}

/// Numbers beyond the range of integers wrap, as they do in kube-scheduler.
fn part(number: u64) -> Value {
    Value::Int(number.cast_signed())
}

fn of_text(function: Function, text: &str, normalize: bool, budget: &mut Budget) -> Called {
    budget.spend_bytes(text.len())?;
    let parse = || if normalize { Semver::parse_normalized(text) } else { Semver::parse(text) };
    match function {
        Function::Semver => Ok(Some(Value::Semver(Arc::new(parse().map_err(Failure::new)?)))),
        Function::IsSemver => Ok(Some(Value::Bool(parse().is_ok()))),
        _ => Ok(None),
    }
}
