use model::{LabelSelector, RawRequirement};

use super::labels;
use crate::wire::{WireRequirement, WireSelector};

/// Absent it means nothing, as `{}` everything.
pub(crate) fn label_selector(wire: Option<&WireSelector>) -> LabelSelector {
    wire.map_or(LabelSelector::Nothing, |wire| {
        let expressions = requirements(&wire.match_expressions);
        LabelSelector::parse(&labels(&wire.match_labels), &expressions)
    })
}

pub(super) fn requirements(wire: &[WireRequirement]) -> Vec<RawRequirement> {
    let raw = |wire: &WireRequirement| {
        let WireRequirement { key, operator, values } = wire.clone();
        RawRequirement { key, operator, values }
    };
    wire.iter().map(raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Labels;
    use serde_json::{Value, json};

    fn selector(json: Value) -> LabelSelector {
        let wire: Option<WireSelector> = serde_json::from_value(json).unwrap();
        label_selector(wire.as_ref())
    }

    fn with(key: &str, value: &str) -> Labels {
        [(key.into(), value.into())].into()
    }

    #[test]
    fn absent_is_nothing_and_empty_is_everything() {
        assert_eq!(selector(Value::Null), LabelSelector::Nothing);
        for empty in [json!({}), json!({"matchLabels": {}, "matchExpressions": []})] {
            assert!(selector(empty).is_everything());
        }
    }

    #[test]
    fn every_operator_and_plain_labels_hold_together() {
        let cases = [
            (json!({"key": "a", "operator": "In", "values": ["x", "y"]}), true, false),
            (json!({"key": "a", "operator": "NotIn", "values": ["x"]}), false, true),
            (json!({"key": "a", "operator": "Exists"}), true, false),
            (json!({"key": "a", "operator": "DoesNotExist"}), false, true),
        ];
        for (expression, matches_x, matches_none) in cases {
            let selector = selector(json!({"matchExpressions": [expression]}));
            assert_eq!(selector.matches(&with("a", "x")), matches_x, "{expression}");
            assert_eq!(selector.matches(&Labels::new()), matches_none, "{expression}");
        }
        let both = selector(json!({
            "matchLabels": {"a": "x"},
            "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}],
        }));
        assert!(both.matches(&with("a", "x")) && !both.matches(&with("a", "y")));
    }

    #[test]
    fn what_cannot_be_parsed_matches_nothing_and_says_why() {
        let cases = [
            json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["x"]}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
            json!({"matchExpressions": [{}]}),
            json!({"matchLabels": {"not a key": "x"}}),
        ];
        for case in cases {
            let selector = selector(case);
            assert!(selector.error().is_some() && !selector.matches(&with("a", "x")));
        }
    }
}
