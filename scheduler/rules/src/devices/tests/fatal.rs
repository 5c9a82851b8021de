use super::*;

/// What the claim `c` fails with on a Node with three devices, as an error of the whole attempt.
#[track_caller]
fn fatal(given: &Given, claim: ResourceClaim) -> String {
    match given.failure(&[claim]) {
        AllocationFailure::Fatal(error) => error.to_string(),
        other => panic!("{other}"),
    }
}

fn three() -> Given {
    Given::devices(["x", "y", "z"].map(|name| device(name).text("root", name)))
}

#[test]
fn an_expression_that_fails_fails_the_pod() {
    let text = "claim default/c: selector #0: CEL runtime error: no such key: x";
    assert_eq!(fatal(&three(), claim("c", [selected("r", 1, "error")])), text);
    let mut given = three();
    given.classes.insert("gpu".into(), class("gpu", &["all", "error"]).into());
    let text = "class gpu: selector #1: CEL runtime error: no such key: x";
    assert_eq!(fatal(&given, claim("c", [request("r", 1)])), text);
}

#[test]
fn an_expression_is_not_evaluated_for_a_device_in_use_or_after_one_that_says_no() {
    let mut given = Given::devices([device("x")]);
    given.take("other", [request("r", 1)]);
    assert!(!given.fits([selected("r", 1, "error")]));
    let mut given = three();
    given.classes.insert("gpu".into(), class("gpu", &["none", "error"]).into());
    assert!(!given.fits([request("r", 1)]));
}

#[test]
fn an_expression_is_evaluated_for_a_device_out_of_reach_beside_one_within() {
    let placed = |name: &str, node: &str| Device {
        place: Some(DevicePlace::Node(NodeName::new(node))),
        ..device(name)
    };
    let devices = [placed("far", "n2"), placed("near", "n1").text("kind", "fast")];
    let slice = ResourceSlice { place: DevicePlace::PerDevice, ..slice("s", "p", devices) };
    let given = Given::new([slice]);
    fatal(&given, claim("c", [selected("r", 1, "error")]));
}

#[test]
fn all_is_refused_for_what_comes_first_an_expression_or_a_pool() {
    let incomplete = |pool| ResourceSlice { slice_count: 2, ..slice(pool, pool, [device("y")]) };
    let all = || {
        let selectors = vec![DeviceSelector::Cel("error".into())];
        let request = SubRequest { selectors, count: DeviceCount::All, ..sub_request("r", 0) };
        claim("c", [exactly(request)])
    };
    let usable = || slice("s", "p", [device("x")]);
    let text = fatal(&Given::new([usable(), incomplete("a")]), all());
    assert_eq!(
        text,
        "claim default/c, request r: asks for all devices, but resource pool d/a is currently being updated"
    );
    let text = fatal(&Given::new([usable(), incomplete("z")]), all());
    assert_eq!(text, "claim default/c: selector #0: CEL runtime error: no such key: x");
}

#[test]
fn what_is_not_known_is_refused() {
    let unknown = DeviceRequest { name: "r".into(), alternatives: RequestAlternatives::Unknown };
    let text = "claim default/c, request r: missing device class name (unsupported request type?)";
    assert_eq!(fatal(&three(), claim("c", [unknown])), text);

    let gone = exactly(SubRequest { class: "gone".into(), ..sub_request("r", 1) });
    let text = "claim default/c, request r: could not retrieve device class gone: deviceclass.resource.k8s.io \"gone\" not found";
    assert_eq!(fatal(&three(), claim("c", [gone])), text);

    let selectors = vec![DeviceSelector::Cel("all".into()), DeviceSelector::Unknown];
    let selector = SubRequest { selectors, ..sub_request("s", 1) };
    let text = "claim default/c, request s, selector #1: CEL expression empty (unsupported selector type?)";
    assert_eq!(fatal(&three(), claim("c", [first_of("r", [selector])])), text);

    let mode = SubRequest { count: DeviceCount::Unknown("Half".into()), ..sub_request("r", 1) };
    let text = "claim default/c, request r: unsupported count mode Half";
    assert_eq!(fatal(&three(), claim("c", [exactly(mode)])), text);

    let constraint = constrained(claim("c", [request("r", 1)]), vec![Constraint::Unknown]);
    let text = "claim default/c, constraint #0: empty constraint (unsupported constraint type?)";
    assert_eq!(fatal(&three(), constraint), text);
}

#[test]
fn more_devices_than_a_claim_may_have_are_an_error_if_there_is_no_smaller_alternative() {
    let text = "claim default/c: number of requested devices 33 exceeds the claim limit of 32";
    assert_eq!(fatal(&three(), claim("c", [request("r", 33)])), text);
    let given = Given::devices((0..33).map(|index| device(&format!("x{index}"))));
    assert_eq!(fatal(&given, claim("c", [all("r")])), text);
    let huge = first_of("r", [sub_request("many", i64::MAX), sub_request("one", 1)]);
    assert_eq!(three().gets([huge]), ["r/one=x"]);
    let several = fatal(&three(), claim("c", [request("a", i64::MAX), request("b", i64::MAX)]));
    assert!(several.contains("exceeds the claim limit of 32"), "{several}");
}

#[test]
fn all_devices_of_a_pool_that_is_not_whole_are_an_error_on_this_node() {
    let mut given = three();
    given.pools.set(ResourceSlice { slice_count: 2, ..slice("t", "q", [device("w")]) }.into());
    assert!(given.fits([request("r", 1)]));
    let text = "claim default/c, request r: asks for all devices, but resource pool d/q is currently being updated";
    assert_eq!(fatal(&given, claim("c", [all("r")])), text);
    given.pools.set(slice("t", "q", [device("w"), device("w")]).into());
    let text = "claim default/c, request r: asks for all devices, but resource pool d/q is currently invalid";
    assert_eq!(fatal(&given, claim("c", [all("r")])), text);
}

#[test]
fn a_constraint_that_keeps_one_of_all_devices_out_is_an_error() {
    let constraint = Constraint::Match { requests: Vec::new(), attribute: "d/root".into() };
    let claim = constrained(claim("c", [all("r")]), vec![constraint]);
    let text = "claim default/c, request r: cannot add device d/p/y because a claim constraint would not be satisfied";
    assert_eq!(fatal(&three(), claim), text);
}

#[test]
fn a_node_selector_that_cannot_be_parsed_is_an_error() {
    let bad = RawRequirement::new("zone", "Near", &["a"]);
    let terms = vec![RawNodeTerm { expressions: vec![bad], fields: Vec::new() }];
    let place = DevicePlace::Nodes(SelectedNodes::parse(terms).into());
    let given = Given::new([ResourceSlice { place, ..slice("s", "p", [device("x")]) }]);
    let text = fatal(&given, claim("c", [request("r", 1)]));
    let begins = "gather pool information: failed to perform node selection for slice s: failed to parse node selector";
    assert!(text.starts_with(begins), "{text}");
}
