//! Regular expressions. Those of the crate `regex` have RE2's syntax, with few exceptions.

use regex::{Regex, RegexBuilder};

use super::{Called, Function};
use crate::budget::Budget;
use crate::node::RegexUse;
use crate::value::{Failure, Outcome, Value};

/// A pattern in ten KiB can ask for any number of states.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// What it costs to compile one during an evaluation.
const COMPILE_STEPS: usize = 1_000;

pub(crate) fn compile(pattern: &str) -> Result<Regex, Failure> {
    let compiled = RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build();
    compiled.map_err(|why| {
        let why = why.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Failure::new(format!("invalid matches argument: {why}"))
    })
}

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    let (text, pattern, max) = match args {
        [text @ Value::String(_), Value::String(pattern)] => (text, pattern, -1),
        [text @ Value::String(_), Value::String(pattern), Value::Int(max)] => (text, pattern, *max),
        _ => return Ok(None),
    };
    let used = match function {
        Function::Matches => RegexUse::Matches,
        Function::Find => RegexUse::Find,
        Function::FindAll => RegexUse::FindAll,
        _ => return Ok(None),
    };
    budget.spend(COMPILE_STEPS)?;
    matched(text, used, &compile(pattern)?, max, budget).map(Some)
}

/// At most `max` of all that matches; fewer than 0 is without a limit.
pub(crate) fn matched(
    text: &Value,
    used: RegexUse,
    regex: &Regex,
    max: i64,
    budget: &mut Budget,
) -> Outcome {
    let Value::String(text) = text else {
        return Err(Failure::no_such_overload(match used {
            RegexUse::Matches => "matches",
            RegexUse::Find => "find",
            RegexUse::FindAll => "findAll",
        }));
    };
    budget.spend_bytes(text.len())?;
    Ok(match used {
        RegexUse::Matches => Value::Bool(regex.is_match(text)),
        RegexUse::Find => Value::string(regex.find(text).map_or("", |it| it.as_str())),
        RegexUse::FindAll => {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            let found: Vec<Value> =
                regex.find_iter(text).take(max).map(|it| Value::string(it.as_str())).collect();
            budget.spend(found.len())?;
            Value::list(found)
        }
    })
}
