//! Label and field selectors of list, watch and deletecollection.

use std::collections::BTreeMap;

use crate::catalog::ResourceType;
use crate::refusal::Refusal;
use crate::stored::Stored;

/// What a request wants to see of one resource type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub namespace: Option<String>,
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelTerm {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelTest {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    GreaterThan(i64),
    LessThan(i64),
}

#[derive(Debug, Clone)]
struct FieldTerm {
    place: Place,
    equal: bool,
    value: String,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Name,
    Namespace,
    /// Index into [`ResourceType::fields`].
    Field(usize),
}

impl Filter {
    pub fn parse(
        ty: &ResourceType,
        namespace: Option<&str>,
        label_selector: &str,
        field_selector: &str,
    ) -> Result<Self, Refusal> {
        let fields = split(field_selector, ',').filter(|term| !term.is_empty());
        Ok(Self {
            namespace: namespace.map(ToOwned::to_owned),
            labels: parse_labels(label_selector).map_err(Refusal::bad_request)?,
            fields: fields.map(|term| field_term(ty, term)).collect::<Result<_, _>>()?,
        })
    }

    /// Only the object with this name, as in a watch of one object.
    pub fn with_name(mut self, name: &str) -> Self {
        self.fields.push(FieldTerm { place: Place::Name, equal: true, value: name.to_owned() });
        self
    }

    /// Whether it leaves anything out but what is in other namespaces.
    pub fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Whether it asks for one object by its full name.
    pub fn is_single(&self, ty: &ResourceType) -> bool {
        let is_name = |term: &FieldTerm| matches!(term.place, Place::Name) && term.equal;
        let by_name = self.fields.iter().any(is_name);
        by_name && (!ty.namespaced || self.namespace.is_some())
    }

    /// The part of it for which the real server has an index: the node of a Pod.
    pub fn indexed(&self, ty: &ResourceType) -> Option<Self> {
        let is_node = |term: &&FieldTerm| match term.place {
            Place::Field(index) => term.equal && ty.fields[index] == "spec.nodeName",
            _ => false,
        };
        let term = self.fields.iter().find(is_node)?;
        Some(Self { fields: vec![term.clone()], ..Self::default() })
    }

    pub fn matches(&self, object: &Stored) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == object.key.namespace)
            && self.labels.iter().all(|term| term.matches(&object.labels))
            && self.fields.iter().all(|term| term.matches(object))
    }
}

impl FieldTerm {
    fn matches(&self, object: &Stored) -> bool {
        let value = match self.place {
            Place::Name => &object.key.name,
            Place::Namespace => &object.key.namespace,
            Place::Field(index) => object.fields.get(index).map_or("", String::as_str),
        };
        (value == self.value) == self.equal
    }
}

impl LabelTerm {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            LabelTest::In(values) => value.is_some_and(|value| values.contains(value)),
            LabelTest::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            LabelTest::Exists => value.is_some(),
            LabelTest::Absent => value.is_none(),
            LabelTest::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            LabelTest::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn field_term(ty: &ResourceType, term: &str) -> Result<FieldTerm, Refusal> {
    let (name, equal, value) = if let Some((name, value)) = term.split_once("!=") {
        (name, false, value)
    } else if let Some((name, value)) = term.split_once("==") {
        (name, true, value)
    } else if let Some((name, value)) = term.split_once('=') {
        (name, true, value)
    } else {
        let why = format!("invalid selector: '{term}'; can't understand '{term}'");
        return Err(Refusal::bad_request(why));
    };
    let place = match name.trim() {
        "metadata.name" => Place::Name,
        "metadata.namespace" if ty.namespaced => Place::Namespace,
        name => match ty.fields.iter().position(|field| field == name) {
            Some(index) => Place::Field(index),
            None => {
                return Err(Refusal::bad_request(format!("field label not supported: {name}")));
            }
        },
    };
    Ok(FieldTerm { place, equal, value: value.trim().to_owned() })
}

fn parse_labels(selector: &str) -> Result<Vec<LabelTerm>, String> {
    let terms = split(selector, ',').map(str::trim).filter(|term| !term.is_empty());
    terms.map(label_term).collect()
}

fn label_term(term: &str) -> Result<LabelTerm, String> {
    if let Some((head, values)) = term.split_once('(') {
        return set_term(term, head, values);
    }
    let (key, test) = if let Some((key, value)) = term.split_once("!=") {
        (key, LabelTest::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (key, LabelTest::In(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = term.split_once('>') {
        (key, LabelTest::GreaterThan(bound(term, value)?))
    } else if let Some((key, value)) = term.split_once('<') {
        (key, LabelTest::LessThan(bound(term, value)?))
    } else if let Some(key) = term.strip_prefix('!') {
        (key, LabelTest::Absent)
    } else {
        (term, LabelTest::Exists)
    };
    checked(term, key, test)
}

/// `key in (a, b)` and `key notin (a, b)`.
fn set_term(term: &str, head: &str, values: &str) -> Result<LabelTerm, String> {
    let values = values.strip_suffix(')').ok_or_else(|| unclear(term))?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    let (key, operator) =
        head.trim().rsplit_once(char::is_whitespace).ok_or_else(|| unclear(term))?;
    match operator {
        "in" => checked(term, key, LabelTest::In(values)),
        "notin" => checked(term, key, LabelTest::NotIn(values)),
        _ => Err(unclear(term)),
    }
}

fn bound(term: &str, value: &str) -> Result<i64, String> {
    value.trim().parse().map_err(|_| unclear(term))
}

fn checked(term: &str, key: &str, test: LabelTest) -> Result<LabelTerm, String> {
    let key = key.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if key.is_empty() || !key.chars().all(allowed) {
        return Err(unclear(term));
    }
    Ok(LabelTerm { key: key.to_owned(), test })
}

fn unclear(term: &str) -> String {
    format!("unable to parse requirement '{term}': expected key, !key, =, ==, !=, in, notin, <, >")
}

/// Splits at `separator`, but not inside parentheses.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        parse_labels(selector).unwrap().iter().all(|term| term.matches(&labels))
    }

    #[test]
    fn label_selectors_follow_the_real_grammar() {
        let labels = [("app", "web"), ("tier", "2")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=2", true),
            ("app!=web", false),
            ("absent!=x", true),
            ("app in (api, web)", true),
            ("app notin (api,web)", false),
            ("absent notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!absent", true),
            ("tier>1", true),
            ("tier<2", false),
            ("app in (web),tier notin (3)", true),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for selector in ["a b c", "app in web", "in (x", "(", "=x", "tier>x", "a is (b)"] {
            assert!(parse_labels(selector).is_err(), "{selector}");
        }
    }
}
