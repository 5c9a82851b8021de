use super::*;

#[test]
fn admin_access_is_given_to_devices_in_use_and_takes_nothing() {
    let mut given = Given::devices([device("x")]);
    given.take("other", [request("r", 1)]);
    let allocation = given.allocation([admin("r")]);
    assert_eq!(shown(&allocation), ["r=x"]);
    assert!(allocation.devices[0].admin_access);
    given.taken.remove(&"other".into());
    given.take("admin", [admin("r")]);
    assert!(given.taken.is_empty());
    assert!(given.fits([request("r", 1)]));
}

#[test]
fn a_claim_has_a_device_once_however_it_uses_it() {
    let given = Given::devices([device("x")]);
    assert!(!given.fits([admin("a"), request("b", 1)]));
    assert!(!given.fits([request("a", 1), admin("b")]));
    assert!(!given.fits([admin("a"), admin("b")]));
}

#[test]
fn admin_access_of_one_claim_leaves_the_device_to_another_in_either_order() {
    let given = Given::devices([device("x")]);
    let claims = [claim("a", [admin("r")]), claim("b", [request("r", 1)])];
    // kube-scheduler finds the device in use.
    assert!(given.allocate(&claims).is_ok());
    let [first, second] = claims;
    assert!(given.allocate(&[second, first]).is_ok());
}

#[test]
fn admin_access_needs_tolerations_selectors_and_constraints_all_the_same() {
    let tainted = device("x").tainted("bad", DeviceTaintEffect::NoSchedule);
    assert!(!Given::devices([tainted]).fits([admin("r")]));
    let constraint = Constraint::Match { requests: Vec::new(), attribute: "d/root".into() };
    let constrained = constrained(claim("c", [admin("r")]), vec![constraint]);
    assert_does_not_fit(&Given::devices([device("x")]).failure(&[constrained]));
}

#[test]
fn admin_access_needs_no_counters_and_draws_none() {
    let part = |name| device(name).draws("set", "memory", 6);
    let mut given = Given::new([counters(&[("memory", 10)]), drawing([part("x"), part("y")])]);
    given.take("other", [request("r", 1)]);
    assert!(!given.fits([request("r", 1)]));
    // kube-scheduler asks for counters.
    assert_eq!(given.gets([admin("r")]), ["r=x"]);
    given.taken.remove(&"other".into());
    let both = [claim("a", [admin("r")]), claim("b", [selected("r", 1, "all")])];
    assert!(given.allocate(&both).is_ok());
}

#[test]
fn admin_access_to_a_full_shared_device_is_given_and_consumes_nothing() {
    let mut given = Given::devices([device("x").shared().capacity("memory", "10")]);
    given.take("other", [request("r", 1)]);
    assert!(!given.fits([request("r", 1)]));
    // kube-scheduler finds no capacity left.
    assert_eq!(given.gets([admin("r")]), ["r=x"]);
    given.taken.remove(&"other".into());
    assert_eq!(given.gets([admin("a"), asking("b", "memory", "10")]), ["a=x", "b=x"]);
}
