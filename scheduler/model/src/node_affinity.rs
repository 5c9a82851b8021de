//! Node affinity of a Pod, and the affinity that a profile adds to every Pod.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::selector::{narrowest, write_list};
use crate::{Labels, NodeName, RawRequirement, Requirement, SelectorError};

/// `nodeAffinity` of a Pod, or `addedAffinity` of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    pub required: Option<NodeSelector>,
    pub preferred: Vec<PreferredNodeTerm>,
}

/// Terms of which one must match. Without any term it matches no Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeSelector {
    pub terms: Vec<NodeSelectorTerm>,
}

/// A term as it stands in an object, unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawNodeTerm {
    /// `matchExpressions`.
    pub expressions: Vec<RawRequirement>,
    /// `matchFields`.
    pub fields: Vec<RawRequirement>,
}

impl NodeSelector {
    pub fn parse(terms: &[RawNodeTerm]) -> Self {
        let term = |raw: &RawNodeTerm| NodeSelectorTerm::parse(&raw.expressions, &raw.fields);
        Self { terms: terms.iter().map(term).collect() }
    }

    /// Whether one of the terms matches by labels alone: see [`NodeSelectorTerm::matches_labels`].
    pub fn matches_labels(&self, labels: &Labels) -> bool {
        self.terms.iter().any(|term| term.matches_labels(labels))
    }

    /// A label of which every Node that it matches has one of these values. `None`: no such label is known.
    pub fn narrowest(&self) -> Option<(&Arc<str>, &BTreeSet<Arc<str>>)> {
        let [NodeSelectorTerm { parsed: Ok(only), .. }] = self.terms.as_slice() else {
            return None;
        };
        narrowest(&only.expressions)
    }

    pub fn matches(&self, name: &NodeName, labels: &Labels) -> bool {
        self.terms.iter().any(|term| term.matches(name, labels))
    }

    /// The Nodes that the terms name, when every term names some: no other Node need be looked
    /// at. An empty set says that the terms contradict themselves.
    pub fn named_nodes(&self) -> Option<BTreeSet<NodeName>> {
        self.each_named().map(|named| named.cloned().collect())
    }

    /// The same, one by one; some perhaps twice.
    pub fn each_named(&self) -> Option<impl Iterator<Item = &NodeName> + Clone> {
        let is_named = !self.terms.is_empty() && self.terms.iter().all(|term| term.named.is_some());
        is_named.then(|| self.terms.iter().flat_map(|term| term.named.iter().flatten()))
    }
}

/// Requirements that must all hold, parsed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    parsed: Result<ParsedTerm, SelectorError>,
    /// The Nodes that its `metadata.name In [..]` fields name. Read before anything is checked,
    /// as kube-scheduler does: an invalid term can still narrow the search.
    named: Option<BTreeSet<NodeName>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct ParsedTerm {
    expressions: Vec<Requirement>,
    fields: Vec<NameField>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum NameField {
    Is(NodeName),
    IsNot(NodeName),
}

const NAME_FIELD: &str = "metadata.name";

impl NodeSelectorTerm {
    /// `matchExpressions` and `matchFields` of a term.
    pub fn parse(expressions: &[RawRequirement], fields: &[RawRequirement]) -> Self {
        Self { parsed: parse(expressions, fields), named: named(fields) }
    }

    pub fn error(&self) -> Option<&SelectorError> {
        self.parsed.as_ref().err()
    }

    /// A term without requirements matches nothing, nor does one that cannot be parsed.
    pub fn matches(&self, name: &NodeName, labels: &Labels) -> bool {
        let Ok(ParsedTerm { expressions, fields }) = &self.parsed else { return false };
        let field_holds = |field: &NameField| match field {
            NameField::Is(wanted) => wanted == name,
            NameField::IsNot(unwanted) => unwanted != name,
        };
        let is_empty = expressions.is_empty() && fields.is_empty();
        !is_empty
            && expressions.iter().all(|expression| expression.matches(labels))
            && fields.iter().all(field_holds)
    }

    /// The same for a volume: its Node has labels and no name, so fields are not looked at. A term of valid fields
    /// alone matches every Node.
    pub fn matches_labels(&self, labels: &Labels) -> bool {
        let Ok(ParsedTerm { expressions, fields }) = &self.parsed else { return false };
        let is_empty = expressions.is_empty() && fields.is_empty();
        !is_empty && expressions.iter().all(|expression| expression.matches(labels))
    }
}

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("no node");
        }
        write_list(f, &self.terms, " or ")
    }
}

impl fmt::Display for NodeSelectorTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parsed {
            Err(why) => write!(f, "no node ({why})"),
            Ok(ParsedTerm { expressions, fields }) if expressions.is_empty() => {
                if fields.is_empty() { f.write_str("no node") } else { write_list(f, fields, ", ") }
            }
            Ok(ParsedTerm { expressions, fields }) => {
                write_list(f, expressions, ", ")?;
                f.write_str(if fields.is_empty() { "" } else { ", " })?;
                write_list(f, fields, ", ")
            }
        }
    }
}

impl fmt::Display for NameField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(name) => write!(f, "{NAME_FIELD}={name}"),
            Self::IsNot(name) => write!(f, "{NAME_FIELD}!={name}"),
        }
    }
}

fn parse(
    expressions: &[RawRequirement],
    fields: &[RawRequirement],
) -> Result<ParsedTerm, SelectorError> {
    let expressions = expressions.iter().map(Requirement::of_node).collect::<Result<_, _>>()?;
    let fields = fields.iter().map(name_field).collect::<Result<_, _>>()?;
    Ok(ParsedTerm { expressions, fields })
}

fn name_field(raw: &RawRequirement) -> Result<NameField, SelectorError> {
    if raw.key != NAME_FIELD {
        let why = format!("field {:?} cannot be selected, only {NAME_FIELD}", raw.key);
        return Err(SelectorError::new(why));
    }
    match (raw.operator.as_str(), raw.values.as_slice()) {
        ("In", [name]) => Ok(NameField::Is(NodeName::new(name))),
        ("NotIn", [name]) => Ok(NameField::IsNot(NodeName::new(name))),
        ("In" | "NotIn", _) => {
            Err(SelectorError::new(format!("field {NAME_FIELD} takes exactly one value")))
        }
        (operator, _) => {
            Err(SelectorError::new(format!("{operator:?} is not an operator of a field")))
        }
    }
}

fn named(fields: &[RawRequirement]) -> Option<BTreeSet<NodeName>> {
    let mut named: Option<BTreeSet<NodeName>> = None;
    for field in fields.iter().filter(|it| it.key == NAME_FIELD && it.operator == "In") {
        let here: BTreeSet<_> = field.values.iter().map(|name| NodeName::new(name)).collect();
        named = Some(match named {
            None => here,
            Some(before) => before.intersection(&here).cloned().collect(),
        });
    }
    named
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PreferredNodeTerm {
    pub weight: i32,
    pub term: NodeSelectorTerm,
}

impl NodeAffinity {
    /// Why the preferences cannot be scored. The API server accepts label values in them that
    /// kube-scheduler cannot parse; terms without weight are not even looked at.
    pub fn preference_error(&self) -> Option<&SelectorError> {
        let mut weighed = self.preferred.iter().filter(|preferred| preferred.weight != 0);
        weighed.find_map(|preferred| preferred.term.error())
    }

    /// The weights of the preferences that the Node meets.
    pub fn preference(&self, name: &NodeName, labels: &Labels) -> i64 {
        let met = self.preferred.iter().filter(|preferred| preferred.term.matches(name, labels));
        met.map(|preferred| i64::from(preferred.weight)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(key: &str, operator: &str, values: &[&str]) -> RawRequirement {
        RawRequirement::new(key, operator, values)
    }

    fn zone_a() -> Labels {
        [("zone".into(), "a".into())].into()
    }

    #[test]
    fn an_empty_term_matches_nothing_and_so_do_no_terms() {
        let node = NodeName::new("n");
        assert!(!NodeSelectorTerm::parse(&[], &[]).matches(&node, &zone_a()));
        assert!(!NodeSelector::default().matches(&node, &zone_a()));
    }

    #[test]
    fn a_selector_says_what_it_wants() {
        let zones = NodeSelectorTerm::parse(
            &[raw("zone", "In", &["a", "b"])],
            &[raw("metadata.name", "NotIn", &["n2"])],
        );
        let disk = NodeSelectorTerm::parse(&[raw("disk", "Exists", &[])], &[]);
        assert_eq!(
            NodeSelector { terms: vec![zones, disk] }.to_string(),
            "zone in (a,b), metadata.name!=n2 or disk"
        );
        assert_eq!(NodeSelector::default().to_string(), "no node");
    }

    #[test]
    fn expressions_and_fields_of_a_term_hold_together() {
        let term = NodeSelectorTerm::parse(
            &[raw("zone", "In", &["a"])],
            &[raw("metadata.name", "NotIn", &["n2"])],
        );
        assert!(term.matches(&NodeName::new("n1"), &zone_a()));
        assert!(!term.matches(&NodeName::new("n2"), &zone_a()));
        assert!(!term.matches(&NodeName::new("n1"), &Labels::new()));
    }

    #[test]
    fn by_labels_alone_fields_are_not_looked_at_but_must_be_valid() {
        let field =
            |value: &[&str]| NodeSelectorTerm::parse(&[], &[raw("metadata.name", "In", value)]);
        assert!(field(&["n1"]).matches_labels(&Labels::new()));
        assert!(!field(&["n1", "n2"]).matches_labels(&Labels::new()));
        assert!(!NodeSelectorTerm::parse(&[], &[]).matches_labels(&zone_a()));
        let zone = NodeSelectorTerm::parse(&[raw("zone", "In", &["a"])], &[]);
        assert!(zone.matches_labels(&zone_a()) && !zone.matches_labels(&Labels::new()));
    }

    #[test]
    fn an_invalid_term_does_not_spoil_the_valid_one_beside_it() {
        let invalid = NodeSelectorTerm::parse(&[raw("zone", "Gt", &["x"])], &[]);
        let valid = NodeSelectorTerm::parse(&[raw("zone", "Exists", &[])], &[]);
        let selector = NodeSelector { terms: vec![invalid.clone(), valid] };
        assert!(invalid.error().is_some());
        assert!(selector.matches(&NodeName::new("n"), &zone_a()));
    }

    #[test]
    fn names_narrow_the_search_only_when_every_term_names_some() {
        let named = NodeSelectorTerm::parse(&[], &[raw("metadata.name", "In", &["n1"])]);
        let other = NodeSelectorTerm::parse(&[raw("zone", "Exists", &[])], &[]);
        let contradiction = NodeSelectorTerm::parse(
            &[],
            &[raw("metadata.name", "In", &["n1"]), raw("metadata.name", "In", &["n2"])],
        );
        let narrowed = |terms: &[&NodeSelectorTerm]| {
            NodeSelector { terms: terms.iter().copied().cloned().collect() }.named_nodes()
        };
        assert_eq!(narrowed(&[&named]), Some([NodeName::new("n1")].into()));
        assert_eq!(narrowed(&[&named, &other]), None);
        assert_eq!(narrowed(&[&contradiction]), Some(BTreeSet::new()));
        assert_eq!(narrowed(&[&contradiction, &named]), Some([NodeName::new("n1")].into()));
        assert_eq!(narrowed(&[]), None);
    }

    #[test]
    fn two_names_in_one_field_are_invalid_but_still_narrow() {
        let term = NodeSelectorTerm::parse(&[], &[raw("metadata.name", "In", &["n1", "n2"])]);
        assert!(term.error().is_some());
        assert!(!term.matches(&NodeName::new("n1"), &Labels::new()));
        assert_eq!(NodeSelector { terms: vec![term] }.named_nodes().map(|it| it.len()), Some(2));
    }
}
