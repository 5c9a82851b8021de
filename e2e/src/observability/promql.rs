//! The names of metrics in a PromQL expression, as far as that takes no parser.

use std::collections::BTreeSet;

/// Words of the language that a metric could be taken for, because no parenthesis follows.
const WORDS: [&str; 22] = [
    "and",
    "avg",
    "bool",
    "bottomk",
    "by",
    "count",
    "group",
    "group_left",
    "group_right",
    "ignoring",
    "inf",
    "max",
    "min",
    "nan",
    "offset",
    "on",
    "or",
    "quantile",
    "sum",
    "topk",
    "unless",
    "without",
];

/// After these a parenthesis holds labels.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Every metric that the expression names.
pub fn metrics_in(expression: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' | '\'' => after_text(rest, first),
            '{' => after_bracket(rest, '}'),
            '[' => after_bracket(rest, ']'),
            first if first.is_ascii_digit() => rest.trim_start_matches(is_of_a_name),
            first if is_of_a_name(first) => {
                let after = rest.trim_start_matches(is_of_a_name);
                let name = &rest[..rest.len() - after.len()];
                let next = after.trim_start();
                if BEFORE_LABELS.contains(&name) && next.starts_with('(') {
                    after_bracket(next, ')')
                } else {
                    if !next.starts_with('(') && !WORDS.contains(&name.to_lowercase().as_str()) {
                        found.insert(name.to_owned());
                    }
                    after
                }
            }
            first => &rest[first.len_utf8()..],
        };
    }
    found
}

fn is_of_a_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ':')
}

/// What follows a text in quotes.
fn after_text(text: &str, quote: char) -> &str {
    let mut is_escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        if character == quote && !is_escaped {
            return &text[place + quote.len_utf8()..];
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    ""
}

/// What follows a bracket that holds no other of its kind; texts in it may hold anything.
fn after_bracket(text: &str, closing: char) -> &str {
    let mut rest = &text[1..];
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' | '\'' => after_text(rest, first),
            first if first == closing => return &rest[1..],
            first => &rest[first.len_utf8()..],
        };
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(expression: &str) -> Vec<String> {
        metrics_in(expression).into_iter().collect()
    }

    #[test]
    fn metrics_are_told_from_functions_labels_and_words() {
        assert_eq!(
            names(
                "sum by (le, kind) (rate(a_bucket{x=~\"b}|c\", le=\"5\"}[5m])) / on (x) \
                 group_left () (b:c:d > bool 0.5e3) or vector(0)"
            ),
            ["a_bucket", "b:c:d"]
        );
        assert_eq!(names("bottomk(10, a{x=\"$y\"}) and absent(b)"), ["a", "b"]);
        assert_eq!(names("14.4 * (1 - r{s=\"t\"})"), ["r"]);
    }
}
