use std::collections::BTreeMap;

use engine::SwitchedOff;

use super::*;

fn rules(plugins: &str) -> Result<Rules, String> {
    let plugins: Plugins = serde_json::from_str(plugins).map_err(|error| error.to_string())?;
    let mut rules = Rules::default();
    plugins.apply(&mut rules).map_err(|error| error.to_string())?;
    Ok(rules)
}

fn weights(plugins: &str) -> BTreeMap<Plugin, u32> {
    rules(plugins).unwrap().weights
}

fn off(plugins: &str) -> SwitchedOff {
    rules(plugins).unwrap().switched_off
}

#[test]
fn weights_of_scores_go_before_those_of_all_points() {
    let set = weights(
        r#"{"multiPoint":{"enabled":[{"name":"NodeAffinity","weight":5},{"name":"NodePorts"},
            {"name":"ImageLocality","weight":7},{"name":"VolumeBinding"}]},
            "score":{"enabled":[{"name":"NodeAffinity","weight":9},{"name":"TaintToleration"}],
            "disabled":[{"name":"NodeAffinity"}]}}"#,
    );
    let expected = [
        (Plugin::NodeAffinity, 9),
        (Plugin::ImageLocality, 7),
        // Left out is 0, which counts as 1.
        (Plugin::TaintToleration, 0),
        (Plugin::VolumeBinding, 0),
    ];
    assert_eq!(set, expected.into());
    assert!(weights("{}").is_empty());
    assert_eq!(off("{}"), SwitchedOff::default());
}

#[test]
fn a_plugin_is_switched_off_at_one_point_or_at_all() {
    let score = off(r#"{"score":{"disabled":[{"name":"ImageLocality"}]}}"#);
    assert_eq!(score.scores, [Plugin::ImageLocality].into());
    assert!(score.filters.is_empty() && !score.preemption);
    let everywhere = off(r#"{"multiPoint":{"disabled":[{"name":"TaintToleration"}]}}"#);
    assert_eq!(everywhere.scores, [Plugin::TaintToleration].into());
    assert_eq!(everywhere.filters, [Plugin::TaintToleration].into());
    let ports = off(r#"{"filter":{"disabled":[{"name":"NodePorts"}]}}"#);
    assert_eq!(ports.filters, [Plugin::NodePorts].into());
    assert!(off(r#"{"postFilter":{"disabled":[{"name":"*"}]}}"#).preemption);
}

#[test]
fn all_can_be_switched_off_and_some_on_again() {
    let no_scores =
        off(r#"{"preScore":{"disabled":[{"name":"*"}]},"score":{"disabled":[{"name":"*"}]}}"#);
    assert_eq!(no_scores.scores.len(), 9);
    assert!(no_scores.filters.is_empty());
    let one =
        off(r#"{"preScore":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeResourcesFit"}]},
        "score":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeResourcesFit"}]}}"#);
    assert_eq!(one.scores.len(), 8);
    let few =
        off(r#"{"multiPoint":{"disabled":[{"name":"*"}],"enabled":[{"name":"SchedulingGates"},
        {"name":"PrioritySort"},{"name":"DefaultBinder"},
        {"name":"NodeResourcesFit"}]}}"#);
    assert_eq!(few.scores.len(), 8);
    assert!(!few.filters.contains(&Plugin::NodeResourcesFit) && few.filters.len() == 13);
    assert!(few.preemption);
    let again = off(r#"{"multiPoint":{"disabled":[{"name":"ImageLocality"}]},
        "score":{"enabled":[{"name":"ImageLocality","weight":3}]}}"#);
    assert_eq!(again, SwitchedOff::default());
}

#[test]
fn what_cannot_be_chosen_is_refused_by_name() {
    let cases = [
        (r#"{"multiPoint":{"disabled":[{"name":"*"}]}}"#, "\"SchedulingGates\" cannot be"),
        (r#"{"bind":{"disabled":[{"name":"DefaultBinder"}]}}"#, "\"DefaultBinder\" cannot be"),
        (r#"{"reserve":{"disabled":[{"name":"Corridor"}]}}"#, "\"Corridor\" cannot be"),
        (r#"{"multiPoint":{"enabled":[{"name":"Mine"}]}}"#, "\"Mine\" is no plugin"),
        (r#"{"multiPoint":{"disabled":[{"name":"Mine"}]}}"#, "\"Mine\" is no plugin"),
        (r#"{"queueSort":{"enabled":[{"name":"Coscheduling"}]}}"#, "\"Coscheduling\" is no plugin"),
        (r#"{"score":{"enabled":[{"name":"NodePorts"}]}}"#, "\"NodePorts\" takes no part"),
        (r#"{"score":{"enabled":[{"name":"NodeAffinity","weight":-1}]}}"#, "is -1"),
        (r#"{"preScore":{"disabled":[{"name":"*"}]}}"#, "preScore and score"),
        (r#"{"filter":{"disabled":[{"name":"InterPodAffinity"}]}}"#, "preFilter and filter"),
        (
            r#"{"score":{"enabled":[{"name":"NodeAffinity"},{"name":"NodeAffinity"}]}}"#,
            "enabled twice",
        ),
        (r#"{"socre":{}}"#, "socre"),
    ];
    for (plugins, expected) in cases {
        let error = rules(plugins).unwrap_err();
        assert!(error.contains(expected), "{plugins}: {error}");
    }
}
