//! Strings, whose positions count characters.

use super::{Called, Function, int};
use crate::budget::Budget;
use crate::value::{Failure, Value};

pub(super) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Called {
    if let (Function::Join, Some(Value::List(list))) = (function, args.first()) {
        return match args {
            [_] => join(list, "", budget),
            [_, Value::String(separator)] => join(list, separator, budget),
            _ => Ok(None),
        };
    }
    let Some((Value::String(this), rest)) = args.split_first() else { return Ok(None) };
    budget.spend_bytes(this.len())?;
    match rest {
        [] => alone(function, this, budget),
        [Value::String(other)] => with_string(function, this, other, budget),
        [Value::Int(at)] => with_position(function, this, *at, budget),
        [Value::String(other), Value::Int(number)] => match function {
            Function::IndexOf => index_of(this, other, *number).map(Some),
            Function::LastIndexOf => last_index_of(this, other, *number).map(Some),
            Function::Split => split(this, other, *number, budget),
            _ => Ok(None),
        },
        [Value::Int(start), Value::Int(end)] if function == Function::Substring => {
            substring(this, *start, *end, budget)
        }
        [Value::String(old), Value::String(new)] if function == Function::Replace => {
            replace(this, old, new, -1, budget)
        }
        [Value::String(old), Value::String(new), Value::Int(times)] => match function {
            Function::Replace => replace(this, old, new, *times, budget),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn alone(function: Function, this: &str, budget: &mut Budget) -> Called {
    match function {
        Function::LowerAscii => super::text(this.to_ascii_lowercase(), budget),
        Function::UpperAscii => super::text(this.to_ascii_uppercase(), budget),
        Function::Trim => super::text(this.trim().to_owned(), budget),
        Function::Quote => super::text(quote(this), budget),
        _ => Ok(None),
    }
}

fn with_string(function: Function, this: &str, other: &str, budget: &mut Budget) -> Called {
    Ok(Some(match function {
        Function::Contains => Value::Bool(this.contains(other)),
        Function::StartsWith => Value::Bool(this.starts_with(other)),
        Function::EndsWith => Value::Bool(this.ends_with(other)),
        Function::IndexOf => index_of(this, other, 0)?,
        Function::LastIndexOf if other.is_empty() => int(this.chars().count()),
        Function::LastIndexOf if this.len() < other.len() => Value::Int(-1),
        Function::LastIndexOf => {
            let last = i64::try_from(this.chars().count()).unwrap_or(i64::MAX) - 1;
            last_index_of(this, other, last)?
        }
        Function::Split => return split(this, other, -1, budget),
        _ => return Ok(None),
    }))
}

fn with_position(function: Function, this: &str, at: i64, budget: &mut Budget) -> Called {
    match function {
        Function::CharAt => {
            let length = this.chars().count();
            let place = usize::try_from(at).ok().filter(|it| *it <= length);
            let place = place.ok_or_else(|| out_of_range(at))?;
            let found: String = this.chars().skip(place).take(1).collect();
            super::text(found, budget)
        }
        Function::Substring => {
            let end = i64::try_from(this.chars().count()).unwrap_or(i64::MAX);
            if at > end {
                return Err(out_of_range(at));
            }
            substring(this, at, end, budget)
        }
        _ => Ok(None),
    }
}

fn out_of_range(at: i64) -> Failure {
    Failure::new(format!("index out of range: {at}"))
}

fn substring(this: &str, start: i64, end: i64, budget: &mut Budget) -> Called {
    if start > end {
        let text = format!("invalid substring range. start: {start}, end: {end}");
        return Err(Failure::new(text));
    }
    let length = this.chars().count();
    let inside = |at: i64| usize::try_from(at).ok().filter(|it| *it <= length);
    let from = inside(start).ok_or_else(|| out_of_range(start))?;
    let to = inside(end).ok_or_else(|| out_of_range(end))?;
    super::text(this.chars().skip(from).take(to - from).collect(), budget)
}

fn chars_before(this: &str, bytes: usize) -> usize {
    this.char_indices().take_while(|(at, _)| *at < bytes).count()
}

fn byte_of(this: &str, char_at: usize) -> usize {
    this.char_indices().nth(char_at).map_or(this.len(), |(at, _)| at)
}

/// The first place from `offset` on, or -1.
fn index_of(this: &str, other: &str, offset: i64) -> Result<Value, Failure> {
    if other.is_empty() {
        return Ok(Value::Int(offset));
    }
    let from = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let from = byte_of(this, from);
    let found = this.get(from..).and_then(|it| it.find(other));
    Ok(found.map_or(Value::Int(-1), |at| int(chars_before(this, from + at))))
}

/// The last place up to `offset`, or -1.
fn last_index_of(this: &str, other: &str, offset: i64) -> Result<Value, Failure> {
    if other.is_empty() {
        return Ok(Value::Int(offset));
    }
    let to = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    if to >= this.chars().count() {
        return Ok(Value::Int(-1));
    }
    let end = byte_of(this, to).saturating_add(other.len()).min(this.len());
    let end = (0..=end).rev().find(|at| this.is_char_boundary(*at)).unwrap_or(0);
    let found = this.get(..end).and_then(|it| it.rfind(other));
    Ok(found.map_or(Value::Int(-1), |at| int(chars_before(this, at))))
}

fn replace(this: &str, old: &str, new: &str, times: i64, budget: &mut Budget) -> Called {
    let places = this.matches(old).count();
    let times = usize::try_from(times).map_or(places, |it| it.min(places));
    // Before it is made, so that what is too long never is.
    budget.spend_bytes(this.len().saturating_add(times.saturating_mul(new.len())))?;
    super::text(this.replacen(old, new, times), budget)
}

/// Into at most so many parts; fewer than 0 is without a limit.
fn split(this: &str, separator: &str, parts: i64, budget: &mut Budget) -> Called {
    let max = usize::try_from(parts).unwrap_or(usize::MAX);
    let parts: Vec<Value> = match (max, separator) {
        (0, _) => Vec::new(),
        (max, "") => {
            let alone = this.chars().count().min(max.saturating_sub(1));
            let rest = byte_of(this, alone);
            let chars = this.chars().take(alone).map(|it| Value::string(it.to_string()));
            let rest = Some(&this[rest..]).filter(|it| !it.is_empty());
            chars.chain(rest.map(Value::string)).collect()
        }
        (max, separator) => this.splitn(max, separator).map(Value::string).collect(),
    };
    super::list(parts, budget)
}

fn join(list: &[Value], separator: &str, budget: &mut Budget) -> Called {
    let mut joined = String::new();
    for (at, element) in list.iter().enumerate() {
        let Value::String(element) = element else {
            let text = format!("join: invalid input: {}", element.type_name());
            return Err(Failure::new(text));
        };
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(element);
        budget.spend_bytes(element.len() + separator.len())?;
    }
    Ok(Some(Value::string(joined)))
}

fn quote(this: &str) -> String {
    let mut quoted = String::from('"');
    for letter in this.chars() {
        match letter {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
