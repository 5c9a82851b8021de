//! Selectors in words.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{LabelSelector, LabelTest, Requirement};

/// As on the command line of kubectl.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |values: &BTreeSet<Arc<str>>| {
            values.iter().map(|value| &**value).collect::<Vec<_>>().join(",")
        };
        match &self.test {
            LabelTest::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
            LabelTest::In(values) => write!(f, "{key} in ({})", list(values)),
            LabelTest::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", list(values)),
            LabelTest::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            LabelTest::Exists => write!(f, "{key}"),
            LabelTest::DoesNotExist => write!(f, "!{key}"),
            LabelTest::Gt(least) => write!(f, "{key}>{least}"),
            LabelTest::Lt(most) => write!(f, "{key}<{most}"),
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::All(requirements) if requirements.is_empty() => f.write_str("everything"),
            Self::All(requirements) => write_list(f, requirements, ", "),
            Self::Invalid(why) => write!(f, "nothing: {why}"),
        }
    }
}

/// All of them, one after the other.
pub(crate) fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    list: &[T],
    separator: &str,
) -> fmt::Result {
    list.iter().enumerate().try_for_each(|(number, it)| {
        f.write_str(if number == 0 { "" } else { separator })?;
        it.fmt(f)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Labels, RawRequirement};

    #[test]
    fn a_selector_reads_as_in_kubectl() {
        let told = |operator: &str, values: &[&str]| {
            let raw = RawRequirement::new("a", operator, values);
            LabelSelector::parse(&Labels::new(), &[raw]).to_string()
        };
        assert_eq!(told("In", &["x"]), "a=x");
        assert_eq!(told("In", &["y", "x"]), "a in (x,y)");
        assert_eq!(told("NotIn", &["x"]), "a!=x");
        assert_eq!(told("NotIn", &["y", "x"]), "a notin (x,y)");
        assert_eq!(told("Exists", &[]), "a");
        assert_eq!(told("DoesNotExist", &[]), "!a");
        let two = [("a".into(), "x".into()), ("b".into(), "y".into())].into();
        assert_eq!(LabelSelector::of_labels(&two).to_string(), "a=x, b=y");
        assert_eq!(LabelSelector::EVERYTHING.to_string(), "everything");
    }
}
