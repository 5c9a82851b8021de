//! Patterns in the strings of a template: `zone-{index % 3}`.
//!
//! In braces stands a number, then perhaps `%` or `/` and another number. Numbers are `index` (of this
//! object in its group), `scatter` (the same, shaken: neighbours are far apart), `nodes` (how many there are)
//! and digits. Braces around anything else are left alone.

use serde_json::Value;

/// What a pattern can refer to.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    pub index: usize,
    pub nodes: usize,
}

/// The template with every pattern in it filled in.
pub fn fill(template: &Value, numbers: Numbers) -> Value {
    match template {
        Value::String(text) => Value::String(fill_text(text, numbers)),
        Value::Array(items) => items.iter().map(|item| fill(item, numbers)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (fill_text(name, numbers), fill(value, numbers)))
            .collect(),
        other => other.clone(),
    }
}

pub fn fill_text(text: &str, numbers: Numbers) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        let inside = behind.split_once('}');
        let known = inside.and_then(|(inside, after)| Some((value(inside, numbers)?, after)));
        if let Some((number, after)) = known {
            filled.push_str(&number.to_string());
            rest = after;
        } else {
            filled.push('{');
            rest = behind;
        }
    }
    filled.push_str(rest);
    filled
}

fn value(inside: &str, numbers: Numbers) -> Option<usize> {
    let words: Vec<&str> = inside.split_whitespace().collect();
    match words[..] {
        [word] => number(word, numbers),
        [left, "%", right] => number(left, numbers)?.checked_rem(number(right, numbers)?),
        [left, "/", right] => number(left, numbers)?.checked_div(number(right, numbers)?),
        _ => None,
    }
}

fn number(word: &str, numbers: Numbers) -> Option<usize> {
    match word {
        "index" => Some(numbers.index),
        "scatter" => Some(scatter(numbers.index)),
        "nodes" => Some(numbers.nodes),
        digits => digits.parse().ok(),
    }
}

/// The same for every run: a workload is the same workload each time.
fn scatter(index: usize) -> usize {
    let mixed = (index as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from((mixed ^ (mixed >> 29)) >> 33).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, index: usize) -> String {
        fill_text(text, Numbers { index, nodes: 7 })
    }

    #[test]
    fn patterns_are_filled_in() {
        assert_eq!(filled("zone-{index % 3}", 5), "zone-2");
        assert_eq!(filled("app-{index / 250}-{index}", 501), "app-2-501");
        assert_eq!(filled("node-{index % nodes}", 9), "node-2");
    }

    #[test]
    fn other_braces_are_left_alone() {
        assert_eq!(filled("{\"v\":1}", 5), "{\"v\":1}");
        assert_eq!(filled("{index % 0} {", 5), "{index % 0} {");
    }

    #[test]
    fn neighbours_are_scattered() {
        let seen: std::collections::BTreeSet<_> =
            (0..100).map(|index| filled("{scatter % 10}", index)).collect();
        assert_eq!(seen.len(), 10);
    }
}
