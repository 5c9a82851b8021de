//! Semantic versions, parsed as strictly as the Go library that Kubernetes uses.

use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Semver {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    prerelease: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numbers come before words.
    Number(u64),
    Word(String),
}

impl Semver {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".into());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        if let Some(build) = build {
            build.split('.').try_for_each(check_build)?;
        }
        let prerelease = prerelease.map(|it| it.split('.').map(identifier).collect());
        Ok(Self {
            major: number(major, "Major")?,
            minor: number(minor, "Minor")?,
            patch: number(patch, "Patch")?,
            prerelease: prerelease.transpose()?.unwrap_or_default(),
        })
    }

    /// Without one leading `v`, without leading zeros, and with missing parts filled up.
    pub fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|it| it.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".into());
            }
            parts.resize(3, "0".into());
        }
        Self::parse(&parts.join("."))
    }
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit())
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {what} number {text:?}"));
    }
    if has_leading_zero(text) {
        return Err(format!("{what} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("{what} number {text:?} is out of range"))
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".into());
    }
    if is_number(text) {
        if has_leading_zero(text) {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {text:?}"
            ));
        }
        let out_of_range = |_| format!("PreRelease version {text:?} is out of range");
        return text.parse().map(Identifier::Number).map_err(out_of_range);
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in prerelease {text:?}"));
    }
    Ok(Identifier::Word(text.to_owned()))
}

fn check_build(text: &str) -> Result<(), String> {
    match text {
        "" => Err("Build meta data is empty".into()),
        _ if is_word(text) => Ok(()),
        _ => Err(format!("Invalid character(s) found in build meta data {text:?}")),
    }
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
}

impl Ord for Semver {
    /// A version with a pre-release comes before the one without. Build metadata does not count.
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |it: &Self| (it.major, it.minor, it.patch, it.prerelease.is_empty());
        numbers(self).cmp(&numbers(other)).then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
