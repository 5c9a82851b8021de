//! Which of two firmware versions is newer.

use std::cmp::Ordering;

/// Whether `have` is `least` or newer. Dotted numbers count by value (1.10 is newer than 1.9, 1.2
/// is 1.2.0), a leading `v` and what follows `+` do not count, a pre-release (`-rc1`) is older than
/// its release. What is not a version is older than everything.
pub fn firmware_at_least(have: &str, least: &str) -> bool {
    match (parse(have), parse(least)) {
        (Some(have), Some(least)) => compare(&have, &least) != Ordering::Less,
        _ => false,
    }
}

struct Version<'a> {
    numbers: Vec<u64>,
    pre_release: Option<&'a str>,
}

fn parse(text: &str) -> Option<Version<'_>> {
    let text = text.trim();
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    let (numbers, pre_release) = match text.split_once('-') {
        Some((numbers, rest)) => (numbers, Some(rest)),
        None => (text, None),
    };
    let numbers = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    Some(Version { numbers, pre_release })
}

fn compare(a: &Version<'_>, b: &Version<'_>) -> Ordering {
    let length = a.numbers.len().max(b.numbers.len());
    let padded = |version: &Version<'_>| {
        let mut numbers = version.numbers.clone();
        numbers.resize(length, 0);
        numbers
    };
    padded(a).cmp(&padded(b)).then_with(|| match (a.pre_release, b.pre_release) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(b),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_value() {
        for (have, least, expected) in [
            ("1.10.0", "1.9.9", true),
            ("1.9.9", "1.10.0", false),
            ("1.2", "1.2.0", true),
            ("v2.0.0", "1.99", true),
            ("2.0.0-rc1", "2.0.0", false),
            ("2.0.0", "2.0.0-rc1", true),
            ("2.0.0+build5", "2.0.0", true),
            ("", "1.0", false),
            ("latest", "0", false),
            ("99999999999999999999999", "1", false),
            ("1.0", "banana", false),
        ] {
            assert_eq!(firmware_at_least(have, least), expected, "{have} >= {least}");
        }
    }
}
