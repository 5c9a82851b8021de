use super::*;

fn given(total: i64, devices: Vec<Device>) -> Given {
    Given::new([counters(&[("memory", total), ("other", 1)]), drawing(devices)])
}

fn part(name: &str, amount: i64) -> Device {
    device(name).draws("set", "memory", amount)
}

#[test]
fn devices_draw_no_more_than_there_is() {
    let given = given(10, vec![part("x", 6), part("y", 6), part("z", 4), device("free")]);
    assert_eq!(given.gets([request("r", 2)]), ["r=x", "r=z"]);
    assert_eq!(given.gets([request("r", 3)]), ["r=x", "r=z", "r=free"]);
    assert!(!given.fits([request("r", 4)]));
}

#[test]
fn what_is_drawn_is_given_back_when_a_device_is_taken_back() {
    let large = part("large", 10).text("kind", "large");
    let given = given(10, vec![large, part("x", 5), part("y", 5)]);
    assert_eq!(given.gets([request("r", 2)]), ["r=x", "r=y"]);
    let both = given.gets([request("a", 1), request("b", 1)]);
    assert_eq!(both, ["a=x", "b=y"]);
}

#[test]
fn allocated_devices_draw_also_those_of_other_nodes() {
    let mut given = Given::new([
        ResourceSlice { slice_count: 3, ..counters(&[("memory", 10)]) },
        ResourceSlice { slice_count: 3, ..drawing([part("here", 5)]) },
        ResourceSlice {
            slice_count: 3,
            place: DevicePlace::Node(NodeName::new("n2")),
            ..slice("there", "p", [part("there", 6)])
        },
    ]);
    assert!(given.fits([request("r", 1)]));
    given.node = node("n2", "a");
    given.take("other", [request("r", 1)]);
    given.node = node("n1", "a");
    assert!(!given.fits([request("r", 1)]), "4 are left, 5 are wanted");
}

#[test]
fn an_overdrawn_counter_stops_only_those_that_draw_from_it() {
    let devices = || vec![part("x", 6), part("y", 3), device("z").draws("set", "other", 1)];
    let mut given = given(10, devices());
    given.take("other", [request("r", 1)]);
    // The driver publishes less than before.
    given.pools.set(counters(&[("memory", 5), ("other", 1)]).into());
    // kube-scheduler gives nothing of this pool.
    assert_eq!(given.gets([request("r", 1)]), ["r=z"]);
    assert!(!given.fits([request("r", 2)]));
}

#[test]
fn a_shared_device_draws_once() {
    let shared = part("x", 6).shared();
    for shared in [shared.clone().capacity("gbps", "10"), shared] {
        let has_capacity = !shared.device_type.capacity.is_empty();
        let ask = |name| if has_capacity { asking(name, "gbps", "2") } else { request(name, 1) };
        let mut given = given(10, vec![shared, part("y", 5)]);
        assert_eq!(given.gets([ask("a"), ask("b")]), ["a=x", "b=x"]);
        given.take("other", [ask("r")]);
        // kube-scheduler charges it again if it has no capacity.
        assert_eq!(given.gets([ask("a"), ask("b")]), ["a=x", "b=x"]);
        assert!(!given.fits([request("r", 2)]), "the 4 that are left are too few for y");
    }
}

#[test]
fn devices_that_are_no_longer_published_draw_nothing() {
    let mut given = given(10, vec![part("x", 6), part("y", 5)]);
    given.take("other", [request("r", 1)]);
    assert!(!given.fits([request("r", 1)]));
    given.pools.set(drawing([part("y", 5)]).into());
    assert!(given.fits([request("r", 1)]));
}
