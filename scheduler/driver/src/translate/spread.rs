use model::{NodeInclusionPolicy, TopologySpreadConstraint, WhenUnsatisfiable};

use super::selector::label_selector;
use crate::wire::WireSpreadConstraint;

/// Of a Pod, or a default constraint of a profile. The field whose value is unknown, if one is.
pub(crate) fn spread_constraint(
    wire: &WireSpreadConstraint,
) -> Result<TopologySpreadConstraint, &'static str> {
    let when_unsatisfiable = match wire.when_unsatisfiable.as_str() {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        _ => return Err("whenUnsatisfiable"),
    };
    let mut constraint = TopologySpreadConstraint::new(
        &wire.topology_key,
        wire.max_skew,
        when_unsatisfiable,
        label_selector(wire.label_selector.as_ref()),
    );
    if let Some(text) = &wire.node_affinity_policy {
        constraint.node_affinity_policy = policy(text).ok_or("nodeAffinityPolicy")?;
    }
    if let Some(text) = &wire.node_taints_policy {
        constraint.node_taints_policy = policy(text).ok_or("nodeTaintsPolicy")?;
    }
    constraint.min_domains = wire.min_domains;
    constraint.match_label_keys =
        wire.match_label_keys.iter().map(|key| key.as_str().into()).collect();
    Ok(constraint)
}

fn policy(text: &str) -> Option<NodeInclusionPolicy> {
    match text {
        "Honor" => Some(NodeInclusionPolicy::Honor),
        "Ignore" => Some(NodeInclusionPolicy::Ignore),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::LabelSelector;
    use serde_json::{Value, json};

    fn constraint(json: Value) -> Result<TopologySpreadConstraint, &'static str> {
        spread_constraint(&serde_json::from_value(json).unwrap())
    }

    #[test]
    fn what_is_left_out_is_as_the_api_server_takes_it() {
        let plain = json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        });
        let expected = TopologySpreadConstraint::new(
            "zone",
            1,
            WhenUnsatisfiable::ScheduleAnyway,
            LabelSelector::Nothing,
        );
        assert_eq!(constraint(plain), Ok(expected));
    }

    #[test]
    fn every_field_is_read() {
        let full = constraint(json!({
            "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {}, "minDomains": 3, "matchLabelKeys": ["rev"],
            "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
        }))
        .unwrap();
        assert_eq!((full.max_skew, full.min_domains), (2, Some(3)));
        assert_eq!(full.when_unsatisfiable, WhenUnsatisfiable::DoNotSchedule);
        assert!(full.selector.is_everything());
        assert_eq!(full.node_affinity_policy, NodeInclusionPolicy::Ignore);
        assert_eq!(full.node_taints_policy, NodeInclusionPolicy::Honor);
        assert_eq!(full.match_label_keys, ["rev".into()]);
    }

    #[test]
    fn an_unknown_value_is_named_by_its_field() {
        let with = |field: &str| {
            let mut json = json!({"whenUnsatisfiable": "DoNotSchedule"});
            json[field] = json!("Perhaps");
            constraint(json)
        };
        for field in ["whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy"] {
            assert_eq!(with(field), Err(field));
        }
    }
}
