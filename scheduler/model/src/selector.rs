//! Label selectors, parsed once. What the API server would refuse is kept as an explicit
//! [`LabelSelector::Invalid`], which matches nothing and says why.

mod text;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use text::write_list;

use crate::Labels;

/// An expression of a selector as it stands in an object, unchecked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawRequirement {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}

impl RawRequirement {
    pub fn new(key: &str, operator: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Self { key: key.to_owned(), operator: operator.to_owned(), values }
    }
}

/// Why a selector cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SelectorError {
    why: Arc<str>,
}

impl SelectorError {
    pub(crate) fn new(why: String) -> Self {
        Self { why: why.into() }
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for SelectorError {}

/// One requirement on a label. It can only be made from what kube-scheduler can parse.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    key: Arc<str>,
    test: LabelTest,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum LabelTest {
    In(BTreeSet<Arc<str>>),
    NotIn(BTreeSet<Arc<str>>),
    Exists,
    DoesNotExist,
    Gt(i64),
    Lt(i64),
}

/// What a requirement wants to know of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads<'a> {
    /// Whether it has one of these values. To be absent is to have none of them.
    AnyOf(&'a BTreeSet<Arc<str>>),
    Presence,
    /// The value itself.
    Value,
}

impl Requirement {
    fn reads(&self) -> Reads<'_> {
        match &self.test {
            LabelTest::In(values) | LabelTest::NotIn(values) => Reads::AnyOf(values),
            LabelTest::Exists | LabelTest::DoesNotExist => Reads::Presence,
            LabelTest::Gt(_) | LabelTest::Lt(_) => Reads::Value,
        }
    }

    /// A requirement of a label selector: `In`, `NotIn`, `Exists`, `DoesNotExist`.
    pub fn of_label(raw: &RawRequirement) -> Result<Self, SelectorError> {
        match raw.operator.as_str() {
            "Gt" | "Lt" => Err(unknown_operator(raw)),
            _ => Self::of_node(raw),
        }
    }

    /// A requirement of a node selector, which knows `Gt` and `Lt` too.
    pub fn of_node(raw: &RawRequirement) -> Result<Self, SelectorError> {
        if !is_label_key(&raw.key) {
            return Err(SelectorError::new(format!("{:?} is not a label key", raw.key)));
        }
        if let Some(bad) = raw.values.iter().find(|value| !is_label_value(value)) {
            return Err(SelectorError::new(format!("{bad:?} is not a label value")));
        }
        let values = || -> BTreeSet<Arc<str>> {
            raw.values.iter().map(|value| value.as_str().into()).collect()
        };
        let test = match (raw.operator.as_str(), raw.values.as_slice()) {
            ("In", [_, ..]) => LabelTest::In(values()),
            ("NotIn", [_, ..]) => LabelTest::NotIn(values()),
            ("Exists", []) => LabelTest::Exists,
            ("DoesNotExist", []) => LabelTest::DoesNotExist,
            ("Gt", [value]) => LabelTest::Gt(integer(value)?),
            ("Lt", [value]) => LabelTest::Lt(integer(value)?),
            ("In" | "NotIn", []) => return Err(wrong_values(raw, "at least one value")),
            ("Gt" | "Lt", _) => return Err(wrong_values(raw, "exactly one value")),
            ("Exists" | "DoesNotExist", _) => return Err(wrong_values(raw, "no values")),
            _ => return Err(unknown_operator(raw)),
        };
        Ok(Self { key: raw.key.as_str().into(), test })
    }

    /// The label has this very value. Like kube-scheduler, this does not check the value's form.
    pub fn equals(key: &Arc<str>, value: &Arc<str>) -> Self {
        Self { key: key.clone(), test: LabelTest::In([value.clone()].into()) }
    }

    /// The label is absent or has another value.
    pub fn differs(key: &Arc<str>, value: &Arc<str>) -> Self {
        Self { key: key.clone(), test: LabelTest::NotIn([value.clone()].into()) }
    }

    /// The label and the values of which it must have one. `None`: it asks something else.
    pub fn one_of(&self) -> Option<(&Arc<str>, &BTreeSet<Arc<str>>)> {
        match &self.test {
            LabelTest::In(values) => Some((&self.key, values)),
            _ => None,
        }
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            LabelTest::In(values) => value.is_some_and(|value| values.contains(value)),
            LabelTest::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            LabelTest::Exists => value.is_some(),
            LabelTest::DoesNotExist => value.is_none(),
            LabelTest::Gt(least) => number().is_some_and(|number| number > *least),
            LabelTest::Lt(most) => number().is_some_and(|number| number < *most),
        }
    }
}

/// A label of a Node that tells most Nodes apart.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Of requirements that must all hold, the one by which what they match is best found: a label that must have one of a
/// few values. `None`: there is no such requirement.
pub(crate) fn narrowest(requirements: &[Requirement]) -> Option<(&Arc<str>, &BTreeSet<Arc<str>>)> {
    let one_of = requirements.iter().filter_map(Requirement::one_of);
    one_of.min_by_key(|(key, values)| (***key != *HOSTNAME, values.len()))
}

fn unknown_operator(raw: &RawRequirement) -> SelectorError {
    SelectorError::new(format!("{:?} is not an operator of this selector", raw.operator))
}

fn wrong_values(raw: &RawRequirement, expected: &str) -> SelectorError {
    SelectorError::new(format!("operator {} on {:?} takes {expected}", raw.operator, raw.key))
}

fn integer(value: &str) -> Result<i64, SelectorError> {
    value.parse().map_err(|_| SelectorError::new(format!("{value:?} is not a whole number")))
}

/// Which Pods (or Namespaces) are meant, by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LabelSelector {
    /// The field is absent: nothing is meant.
    #[default]
    Nothing,
    /// All of these hold. None at all (`{}`) means everything.
    All(Vec<Requirement>),
    /// It cannot be parsed; it matches nothing.
    Invalid(SelectorError),
}

impl LabelSelector {
    pub const EVERYTHING: Self = Self::All(Vec::new());

    /// `matchLabels` and `matchExpressions` of a selector that is present.
    pub fn parse(match_labels: &Labels, match_expressions: &[RawRequirement]) -> Self {
        let labels = match_labels.iter().map(|(key, value)| {
            Requirement::of_label(&RawRequirement::new(key, "In", &[value.as_ref()]))
        });
        let expressions = match_expressions.iter().map(Requirement::of_label);
        match labels.chain(expressions).collect() {
            Ok(requirements) => Self::All(requirements),
            Err(why) => Self::Invalid(why),
        }
    }

    /// Every one of these labels. None at all means everything.
    pub fn of_labels(labels: &Labels) -> Self {
        Self::All(labels.iter().map(|(key, value)| Requirement::equals(key, value)).collect())
    }

    /// Whether this is the selector `{}`. An absent or invalid one is not: it matches nothing.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    pub fn error(&self) -> Option<&SelectorError> {
        match self {
            Self::Invalid(why) => Some(why),
            Self::Nothing | Self::All(_) => None,
        }
    }

    /// See [`narrowest`].
    pub fn narrowest(&self) -> Option<(&Arc<str>, &BTreeSet<Arc<str>>)> {
        match self {
            Self::All(requirements) => narrowest(requirements),
            Self::Nothing | Self::Invalid(_) => None,
        }
    }

    /// The labels that it looks at, with what it wants to know of each. It matches all Pods alike that agree in that.
    pub fn reads(&self) -> impl Iterator<Item = (&Arc<str>, Reads<'_>)> {
        let requirements: &[Requirement] = match self {
            Self::All(requirements) => requirements,
            Self::Nothing | Self::Invalid(_) => &[],
        };
        requirements.iter().map(|it| (&it.key, it.reads()))
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::All(requirements) => requirements.iter().all(|it| it.matches(labels)),
            Self::Nothing | Self::Invalid(_) => false,
        }
    }

    /// The selector with `matchLabelKeys` and `mismatchLabelKeys` merged in: the Pod's own value
    /// of each key is required or excluded. Keys that the Pod lacks are ignored, and a selector
    /// that matches nothing stays so.
    #[must_use]
    pub fn with_label_keys(
        &self,
        match_keys: &[Arc<str>],
        mismatch_keys: &[Arc<str>],
        pod_labels: &Labels,
    ) -> Self {
        let Self::All(requirements) = self else { return self.clone() };
        let own = |keys: &[Arc<str>], require: fn(&Arc<str>, &Arc<str>) -> Requirement| {
            keys.iter()
                .filter_map(|key| pod_labels.get_key_value(key))
                .map(|(key, value)| require(key, value))
                .collect::<Vec<_>>()
        };
        let mut merged = requirements.clone();
        merged.extend(own(match_keys, Requirement::equals));
        merged.extend(own(mismatch_keys, Requirement::differs));
        Self::All(merged)
    }
}

const NAME_BYTES_MAX: usize = 63;
const PREFIX_BYTES_MAX: usize = 253;

/// `name` or `dns.prefix/name`.
fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
    }
}

fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= NAME_BYTES_MAX
        && bytes.iter().all(|b| inner(*b))
        && ends(bytes.first())
        && ends(bytes.last())
}

fn is_dns_subdomain(name: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(|b| lower(*b) || *b == b'-')
            && bytes.first().is_some_and(|b| lower(*b))
            && bytes.last().is_some_and(|b| lower(*b))
    };
    name.len() <= PREFIX_BYTES_MAX && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn selector(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        LabelSelector::parse(&Labels::new(), &[RawRequirement::new(key, operator, values)])
    }

    #[test]
    fn a_missing_label_passes_only_the_negative_operators() {
        let none = Labels::new();
        assert!(!selector("a", "In", &["x"]).matches(&none));
        assert!(selector("a", "NotIn", &["x"]).matches(&none));
        assert!(!selector("a", "Exists", &[]).matches(&none));
        assert!(selector("a", "DoesNotExist", &[]).matches(&none));
    }

    #[test]
    fn an_absent_selector_matches_nothing_and_an_empty_one_everything() {
        let any = labels(&[("a", "x")]);
        assert!(!LabelSelector::Nothing.matches(&any) && !LabelSelector::Nothing.is_everything());
        assert!(LabelSelector::EVERYTHING.matches(&any));
        assert!(LabelSelector::EVERYTHING.is_everything());
    }

    #[test]
    fn numbers_are_compared_as_whole_numbers_and_nothing_else_matches() {
        let gt = Requirement::of_node(&RawRequirement::new("n", "Gt", &["5"])).unwrap();
        for (value, expected) in [("6", true), ("5", false), ("+6", true), ("5.5", false)] {
            assert_eq!(gt.matches(&labels(&[("n", value)])), expected, "{value}");
        }
        assert!(!gt.matches(&labels(&[("n", "99999999999999999999")])), "beyond 64 bits");
        assert!(!gt.matches(&Labels::new()));
        let lt = Requirement::of_node(&RawRequirement::new("n", "Lt", &["5"])).unwrap();
        assert!(lt.matches(&labels(&[("n", "-7")])), "the label may hold any whole number");
    }

    #[test]
    fn what_kube_scheduler_cannot_parse_is_kept_as_invalid() {
        let bad = [
            ("a", "In", &[][..]),
            ("a", "Exists", &["x"][..]),
            ("a", "Gt", &["1"][..]),
            ("a", "Near", &["x"][..]),
            ("-a", "Exists", &[][..]),
            ("Up.Case/a", "Exists", &[][..]),
            ("a/b/c", "Exists", &[][..]),
            ("a", "In", &["not a value"][..]),
        ];
        for (key, operator, values) in bad {
            let selector = selector(key, operator, values);
            assert!(selector.error().is_some(), "{key} {operator} {values:?}");
            assert!(!selector.matches(&labels(&[("a", "x")])));
        }
        let number = |value| Requirement::of_node(&RawRequirement::new("a", "Gt", &[value]));
        assert!(number("x").is_err());
        assert!(number("-5").is_err(), "a minus cannot begin a label value");
    }

    #[test]
    fn label_keys_take_the_pods_own_values_and_ignore_what_it_lacks() {
        let pod = labels(&[("rev", "1"), ("tenant", "a")]);
        let keys = |names: &[&str]| names.iter().map(|it| Arc::from(*it)).collect::<Vec<_>>();
        let merged = LabelSelector::EVERYTHING.with_label_keys(
            &keys(&["rev", "absent"]),
            &keys(&["tenant"]),
            &pod,
        );
        assert!(merged.matches(&labels(&[("rev", "1"), ("tenant", "b")])));
        assert!(!merged.matches(&labels(&[("rev", "2")])));
        assert!(!merged.matches(&pod));
        let nothing = LabelSelector::Nothing.with_label_keys(&keys(&["rev"]), &[], &pod);
        assert_eq!(nothing, LabelSelector::Nothing);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(key in "\\PC{0,70}", operator in "In|NotIn|Gt|Lt|Exists|\\PC{0,4}",
                                values in proptest::collection::vec("\\PC{0,8}", 0..3)) {
            let raw = RawRequirement { key, operator, values };
            if let Ok(requirement) = Requirement::of_node(&raw) {
                let _ = requirement.matches(&labels(&[("a", "1")]));
            }
        }
    }
}
