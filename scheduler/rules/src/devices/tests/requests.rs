use super::*;

fn names(count: usize) -> Vec<Device> {
    (0..count).map(|index| device(&format!("x{index:02}"))).collect()
}

#[test]
fn a_class_and_a_request_must_both_mean_the_device() {
    let mut given = Given::devices([
        device("x"),
        device("y").text("kind", "fast"),
        device("z").text("kind", "fast").text("size", "large"),
    ]);
    let fast = class("gpu", &["all", "kind=fast"]);
    given.classes.insert("gpu".into(), fast.into());
    assert_eq!(given.gets([request("r", 1)]), ["r=y"]);
    assert_eq!(given.gets([selected("r", 1, "size=large")]), ["r=z"]);
    assert!(!given.fits([selected("r", 1, "none")]));
}

#[test]
fn a_later_request_takes_back_what_an_earlier_one_got() {
    let given = Given::devices([device("x").text("kind", "fast"), device("y")]);
    assert_eq!(
        given.gets([request("any", 1), selected("fast", 1, "kind=fast")]),
        ["any=y", "fast=x"]
    );
}

#[test]
fn all_claims_get_their_devices_or_none_does() {
    let given = Given::devices([device("x"), device("y")]);
    let one = |name| claim(name, [request("r", 1)]);
    let allocations = given.allocate(&[one("a"), one("b")]).unwrap();
    assert_eq!(allocations.iter().flat_map(shown).collect::<Vec<_>>(), ["r=x", "r=y"]);
    assert_does_not_fit(&given.failure(&[one("a"), one("b"), one("c")]));
}

#[test]
fn what_is_taken_is_not_given_again() {
    let mut given = Given::devices([device("x"), device("y")]);
    given.take("other", [request("r", 1)]);
    assert_eq!(given.gets([request("r", 1)]), ["r=y"]);
    assert!(!given.fits([request("r", 2)]));
}

#[test]
fn alternatives_are_tried_in_order_and_a_later_request_may_force_one_down_its_list() {
    let given = Given::devices(names(3));
    let either = || first_of("a", [sub_request("three", 3), sub_request("one", 1)]);
    let alone = given.allocation([either()]);
    assert_eq!(shown(&alone), ["a/three=x00", "a/three=x01", "a/three=x02"]);
    assert_eq!(allocation_score(&claim("c", [either()]).spec, &alone), 8);
    let forced = given.allocation([either(), request("b", 2)]);
    assert_eq!(shown(&forced), ["a/one=x00", "b=x01", "b=x02"]);
    assert_eq!(allocation_score(&claim("c", [either(), request("b", 2)]).spec, &forced), 7);
}

#[test]
fn all_means_every_device_that_is_selected_and_at_least_one() {
    let given = Given::devices([
        device("x").text("kind", "fast"),
        device("y"),
        device("z").text("kind", "fast"),
    ]);
    let fast = |request: DeviceRequest| match request.alternatives {
        RequestAlternatives::Exactly(request) => {
            let selectors = vec![DeviceSelector::Cel("kind=fast".into())];
            exactly(SubRequest { selectors, ..request })
        }
        _ => unreachable!(),
    };
    assert_eq!(given.gets([fast(all("r"))]), ["r=x", "r=z"]);
    assert_eq!(given.gets([all("r")]).len(), 3);
    let none = Given::new([]);
    assert_does_not_fit(&none.failure(&[claim("c", [all("r")])]));
}

#[test]
fn all_fails_where_one_of_them_is_taken_or_tainted() {
    let mut given = Given::devices([device("x"), device("y")]);
    given.take("other", [request("r", 1)]);
    assert!(!given.fits([all("r")]));
    let tainted = device("y").tainted("bad", DeviceTaintEffect::NoSchedule);
    assert!(!Given::devices([device("x"), tainted]).fits([all("r")]));
}

#[test]
fn all_fails_where_a_shared_device_has_too_little_left() {
    let shared = || device("x").shared().capacity("memory", "10");
    let mut given = Given::devices([shared(), device("y").capacity("memory", "10")]);
    let all_of = |amount: &str| {
        let capacity = [("memory".into(), amount.parse().unwrap())].into();
        exactly(SubRequest { count: DeviceCount::All, capacity, ..sub_request("r", 0) })
    };
    given.take("other", [asking("r", "memory", "6")]);
    assert_eq!(given.gets([all_of("4")]), ["r=x", "r=y"]);
    assert!(!given.fits([all_of("5")]), "x is meant, and has 4 left");
    // What no device of this type can give is not meant at all.
    let small = Given::devices([shared(), device("y").capacity("memory", "3")]);
    assert_eq!(small.gets([all_of("5")]), ["r=x"]);
}

#[test]
fn a_claim_has_32_devices_at_most_however_its_requests_are_met() {
    let given = Given::devices(names(40));
    assert_eq!(given.gets([request("r", 32)]).len(), 32);
    let many = first_of("a", [sub_request("ten", 10), sub_request("two", 2)]);
    let gets = given.gets([many.clone(), request("b", 30)]);
    assert_eq!(gets[..2], ["a/two=x00", "a/two=x01"]);
    assert_eq!(gets.len(), 32);
    // The limit is that of a claim, not of a Pod.
    let claims = [claim("a", [request("r", 20)]), claim("b", [request("r", 20)])];
    assert!(given.allocate(&claims).is_ok());
}

#[test]
fn the_limit_of_devices_does_not_lead_the_search_astray() {
    let given = Given::devices(names(40));
    let wide = || first_of("a", [sub_request("all", 31), sub_request("few", 1)]);
    let deep = first_of("b", [sub_request("many", 31), sub_request("some", 2)]);
    let gets = given.gets([wide(), deep]);
    assert_eq!(gets[0], "a/few=x00");
    assert_eq!(gets.len(), 32, "and the first alternative of the second request");
}

#[test]
fn taints_keep_away_what_does_not_tolerate_them() {
    let given = |effect| Given::devices([device("x").tainted("bad", effect)]);
    let toleration = |key: &str, exists, value: &str, effect| {
        let (key, value) = (key.into(), value.into());
        DeviceToleration { key, exists, value, effect, toleration_seconds: None }
    };
    for effect in [DeviceTaintEffect::NoSchedule, DeviceTaintEffect::NoExecute] {
        let fits = |it| given(effect).fits([tolerating("r", vec![it])]);
        assert!(!given(effect).fits([request("r", 1)]));
        assert!(fits(toleration("", true, "", None)));
        assert!(fits(toleration("bad", true, "", Some(effect))));
        assert!(fits(toleration("bad", false, "v", None)));
        assert!(!fits(toleration("bad", false, "w", None)));
        assert!(!fits(toleration("good", true, "", None)));
        assert!(!fits(toleration("bad", true, "", Some(DeviceTaintEffect::Other))));
    }
    assert!(given(DeviceTaintEffect::Other).fits([request("r", 1)]));
}

#[test]
fn combinations_are_tried_and_no_permutations() {
    // 20 devices, 10 wanted, and a last request that nothing serves: 184,756 combinations.
    let mut given = Given::devices(names(20));
    given.step_limit = 1000;
    let failure = given.failure(&[claim("c", [request("r", 10), selected("s", 1, "none")])]);
    let text = "search limit reached: claim default/c on 1 node(s), 1000 steps";
    assert_eq!(failure.to_string(), text);
    // Of 5 devices 3, in 10 combinations: 5 + 10 + 10 steps at most, where permutations would take 60 for the last.
    let mut small = Given::devices(names(5));
    small.step_limit = 25;
    assert_does_not_fit(&small.failure(&[claim("c", [request("r", 3), selected("s", 1, "none")])]));
}

#[test]
fn the_last_step_that_is_allowed_may_be_the_one_that_succeeds() {
    let mut given = Given::devices(names(3));
    given.step_limit = 3;
    assert!(given.fits([request("r", 3)]));
    given.step_limit = 2;
    let failure = given.failure(&[claim("c", [request("r", 3)])]);
    assert!(matches!(failure, AllocationFailure::StepLimit { steps: 2, .. }));
}

#[test]
fn a_diagnosis_says_what_became_of_the_devices() {
    let mut given = Given::devices([
        device("w"),
        device("x").tainted("bad", DeviceTaintEffect::NoExecute),
        device("y").text("kind", "fast"),
        device("z").text("kind", "slow"),
    ]);
    given.take("other", [request("r", 1)]);
    let claims = [claim("c", [request("r", 3)])];
    assert_does_not_fit(&given.failure(&claims));
    let diagnosis = diagnose_devices(&given.input(), &given.node, &[&claims[0]]).unwrap();
    let text =
        "claim default/c, request r: 2 of 4 matching devices free, 3 wanted (1 tainted, 1 in use)";
    assert_eq!(diagnosis.requests[0].to_string(), text);
}
