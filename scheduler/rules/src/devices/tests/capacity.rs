use model::{CapacityPolicy, CapacityValues, Quantity};

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn with_policy(policy: CapacityPolicy) -> Device {
    device("x").shared().typed(|it| {
        let capacity =
            DeviceCapacity { value: quantity("100"), text: "100".into(), policy: Some(policy) };
        it.capacity.insert("memory".into(), capacity);
    })
}

fn range(min: &str, max: Option<&str>, step: Option<&str>) -> CapacityPolicy {
    let (max, step) = (max.map(quantity), step.map(quantity));
    let values = CapacityValues::Range { min: Some(quantity(min)), max, step };
    CapacityPolicy { default: Some(quantity(min)), values }
}

/// What the request consumes of the device, if it gets it.
fn consumed(device: Device, request: DeviceRequest) -> Option<String> {
    let allocations = Given::devices([device]).allocate(&[claim("c", [request])]).ok()?;
    let consumed = &allocations[0].devices[0].consumed_capacity;
    Some(consumed.get("memory").unwrap().to_string())
}

#[test]
fn who_asks_for_nothing_gets_the_default_or_the_whole() {
    let shared = device("x").shared().capacity("memory", "100");
    assert_eq!(consumed(shared, request("r", 1)).unwrap(), "100");
    let policy = CapacityPolicy { default: Some(quantity("7")), values: CapacityValues::Any };
    assert_eq!(consumed(with_policy(policy.clone()), request("r", 1)).unwrap(), "7");
    assert_eq!(consumed(with_policy(policy), asking("r", "memory", "9")).unwrap(), "9");
}

#[test]
fn a_range_rounds_up_to_its_steps_and_ends() {
    let asked = |policy: CapacityPolicy, amount: &str| {
        consumed(with_policy(policy), asking("r", "memory", amount))
    };
    assert_eq!(asked(range("4", None, None), "1").unwrap(), "4");
    assert_eq!(asked(range("4", None, None), "5500m").unwrap(), "5500m");
    assert_eq!(asked(range("4", None, Some("8")), "5").unwrap(), "12");
    assert_eq!(asked(range("4", None, Some("8")), "12").unwrap(), "12");
    assert_eq!(asked(range("4", Some("20"), Some("8")), "20").unwrap(), "20");
    assert_eq!(asked(range("4", Some("20"), Some("8")), "21"), None);
    assert_eq!(asked(range("4", None, None), "101"), None, "more than there is");
}

#[test]
fn of_listed_values_the_next_is_taken() {
    let values = CapacityValues::Listed(["2", "8", "64"].map(quantity).to_vec());
    let policy = CapacityPolicy { default: Some(quantity("8")), values };
    let asked = |amount| consumed(with_policy(policy.clone()), asking("r", "memory", amount));
    assert_eq!(asked("3").unwrap(), "8");
    assert_eq!(asked("8").unwrap(), "8");
    assert_eq!(asked("65"), None);
    assert_eq!(consumed(with_policy(policy.clone()), request("r", 1)).unwrap(), "8");
}

#[test]
fn names_of_capacities_are_compared_as_they_are_written() {
    let given = Given::devices([device("x").shared().capacity("memory", "100")]);
    assert!(!given.fits([asking("r", "d/memory", "1")]));
    assert!(!given.fits([asking("r", "bandwidth", "1")]));
    assert!(given.fits([asking("r", "memory", "1")]));
}

#[test]
fn shares_are_given_until_nothing_is_left() {
    let mut given = Given::devices([
        device("x").shared().capacity("memory", "10"),
        device("y").shared().capacity("memory", "10"),
    ]);
    let ask = |name| asking(name, "memory", "4");
    assert_eq!(given.gets([ask("a"), ask("b"), ask("c")]), ["a=x", "b=x", "c=y"]);
    given.take("other", [asking("r", "memory", "7")]);
    assert_eq!(given.gets([ask("a")]), ["a=y"]);
    assert!(!given.fits([ask("a"), ask("b"), ask("c")]));
    given.taken.remove(&"other".into());
    assert!(given.fits([ask("a"), ask("b"), ask("c")]));
}

#[test]
fn every_capacity_counts_and_all_of_them_are_in_the_result() {
    let device = device("x").shared().capacity("memory", "10").capacity("gbps", "3");
    let given = Given::devices([device]);
    let allocation = given.allocation([asking("r", "memory", "4")]);
    let consumed = &allocation.devices[0].consumed_capacity;
    assert_eq!(consumed.get("memory"), Some(&quantity("4")));
    assert_eq!(consumed.get("gbps"), Some(&quantity("3")), "nobody said how much: all of it");
    assert!(!given.fits([asking("a", "memory", "4"), asking("b", "memory", "4")]));
}

#[test]
fn one_request_has_a_shared_device_once_and_two_may_have_it_twice() {
    let given = Given::devices([device("x").shared().capacity("memory", "10")]);
    let capacity = [("memory".into(), quantity("1"))].into();
    assert!(!given.fits([exactly(SubRequest { capacity, ..sub_request("r", 2) })]));
    assert!(given.fits([asking("a", "memory", "1"), asking("b", "memory", "1")]));
}

#[test]
fn of_a_device_that_is_not_shared_the_ask_is_a_minimum() {
    let given = Given::devices([
        device("x").capacity("memory", "10"),
        device("y").capacity("memory", "20"),
    ]);
    let allocation = given.allocation([asking("r", "memory", "11")]);
    assert_eq!(shown(&allocation), ["r=y"]);
    assert!(allocation.devices[0].consumed_capacity.is_empty());
    assert_eq!(allocation.devices[0].share_id, None);
    assert!(!given.fits([asking("r", "memory", "21")]));
}

#[test]
fn a_device_is_in_use_if_how_it_is_given_out_has_changed() {
    let mut given = Given::devices([device("x").shared()]);
    given.take("other", [request("r", 1)]);
    assert!(given.fits([request("r", 1)]), "still shared");
    given.pools.set(slice("s", "p", [device("x")]).into());
    // kube-scheduler knows the share by its capacity alone.
    assert!(!given.fits([request("r", 1)]), "no longer, and another has a share");

    let mut given = Given::devices([device("x")]);
    given.take("other", [request("r", 1)]);
    given.pools.set(slice("s", "p", [device("x").shared()]).into());
    assert!(!given.fits([request("r", 1)]), "shared from now on, and another has the whole");
}
