use model::{ConfigSource, RequestConfig};

use super::*;

fn placed(place: DevicePlace, slice: ResourceSlice) -> ResourceSlice {
    ResourceSlice { place, ..slice }
}

fn terms(allocation: &Allocation) -> Option<String> {
    allocation.nodes.as_ref().map(|nodes| nodes.selector.to_string())
}

#[test]
fn one_device_of_the_node_ties_the_claim_to_it() {
    let given = Given::new([
        placed(in_zone("a"), slice("a", "p1", [device("x")])),
        slice("b", "p2", [device("y")]),
    ]);
    assert_eq!(terms(&given.allocation([request("r", 1)])).unwrap(), "zone=a");
    assert_eq!(terms(&given.allocation([request("r", 2)])).unwrap(), "metadata.name=n1");
}

#[test]
fn a_device_may_tie_the_claim_to_the_node_from_wherever_it_is_reached() {
    let binding = Device { binds_to_node: true, ..device("x") };
    let given = Given::new([placed(DevicePlace::AllNodes, slice("a", "p", [binding]))]);
    assert_eq!(terms(&given.allocation([request("r", 1)])).unwrap(), "metadata.name=n1");
}

#[test]
fn selectors_are_merged_into_one_term_without_repeats() {
    let exists = RawRequirement::new("zone", "Exists", &[]);
    let both = |values: [&str; 2]| {
        let zones = RawRequirement::new("zone", "In", &values);
        let terms =
            vec![RawNodeTerm { expressions: vec![zones, exists.clone()], fields: Vec::new() }];
        DevicePlace::Nodes(SelectedNodes::parse(terms).into())
    };
    let given = Given::new([
        placed(both(["a", "b"]), slice("a", "p1", [device("x")])),
        placed(both(["b", "a"]), slice("b", "p2", [device("y")])),
        placed(DevicePlace::AllNodes, slice("c", "p3", [device("z")])),
    ]);
    let allocation = given.allocation([request("r", 3)]);
    assert_eq!(terms(&allocation).unwrap(), "zone in (a,b), zone");
    let everywhere = Given::new([placed(DevicePlace::AllNodes, slice("c", "p", [device("z")]))]);
    assert_eq!(everywhere.allocation([request("r", 1)]).nodes, None);
}

#[test]
fn a_device_that_places_itself_says_where_the_claim_can_be_used() {
    let own = |place| Device { place: Some(place), ..device("x") };
    let given = |place| {
        let slice = slice("s", "p", [own(place)]);
        Given::new([placed(DevicePlace::PerDevice, slice)])
    };
    let of = |place| terms(&given(place).allocation([request("r", 1)]));
    assert_eq!(of(DevicePlace::Node(NodeName::new("n1"))).unwrap(), "metadata.name=n1");
    assert_eq!(of(in_zone("a")).unwrap(), "zone=a");
    assert_eq!(of(DevicePlace::AllNodes), None);
}

#[test]
fn a_selector_of_several_terms_cannot_be_said() {
    let term = |zone| RawNodeTerm {
        expressions: vec![RawRequirement::new("zone", "In", &[zone])],
        fields: Vec::new(),
    };
    let place = DevicePlace::Nodes(SelectedNodes::parse(vec![term("a"), term("b")]).into());
    let given = Given::new([placed(place, slice("s", "p", [device("x")]))]);
    let failure = given.failure(&[claim("c", [request("r", 1)])]);
    let text =
        "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms";
    assert_eq!(failure.to_string(), text);
}

#[test]
fn a_device_is_written_with_what_others_need_of_it() {
    let toleration = DeviceToleration {
        key: "bad".into(),
        exists: true,
        value: "".into(),
        effect: None,
        toleration_seconds: Some(60),
    };
    let device = Device {
        binding_conditions: vec!["attached".into()],
        binding_failure_conditions: vec!["broken".into()],
        ..device("x").shared()
    };
    let given = Given::devices([device]);
    let mut allocation = given.allocation([tolerating("r", vec![toleration.clone()])]);
    let written = &allocation.devices[0];
    assert_eq!(written.tolerations, [toleration]);
    assert_eq!(written.binding_conditions, ["attached".into()]);
    assert_eq!(written.binding_failure_conditions, ["broken".into()]);
    assert_eq!(written.share_id.as_deref(), Some(""), "the caller names it");
    name_shares(&mut allocation, || "named".into());
    assert_eq!(allocation.devices[0].share_id.as_deref(), Some("named"));
}

#[test]
fn configurations_come_from_classes_then_from_the_claim_each_once() {
    let mut given = Given::devices(["x", "y", "z"].map(device));
    let mut class = class("gpu", &[]);
    class.configs = vec!["of class".into()];
    given.classes.insert("gpu".into(), class.into());
    let alternatives = [sub_request("none", 9), sub_request("one", 1)];
    let mut claim = claim("c", [request("a", 1), first_of("b", alternatives)]);
    let config = |requests: &[&str], opaque: &str| RequestConfig {
        requests: requests.iter().map(|it| (*it).into()).collect(),
        opaque: opaque.into(),
    };
    Arc::make_mut(&mut claim.spec).configs = vec![
        config(&[], "for all"),
        config(&["a", "b"], "for both"),
        config(&["b/one"], "for the chosen"),
        config(&["b/none"], "for the other"),
    ];
    let allocations = given.allocate(&[claim]).unwrap();
    let configs = allocations[0].configs.iter();
    let written: Vec<_> =
        configs.map(|it| (it.source, it.requests.join(" "), it.opaque.to_string())).collect();
    let of_claim = |requests: &str, opaque: &str| {
        (ConfigSource::FromClaim, requests.to_owned(), opaque.to_owned())
    };
    let wanted = [
        (ConfigSource::FromClass, "a b/one".to_owned(), "of class".to_owned()),
        of_claim("", "for all"),
        of_claim("a b", "for both"),
        of_claim("b/one", "for the chosen"),
    ];
    assert_eq!(written, wanted);
}
