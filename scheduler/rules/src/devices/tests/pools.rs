use super::*;

fn generation(number: i64, slice: ResourceSlice) -> ResourceSlice {
    ResourceSlice { generation: number, ..slice }
}

fn of(count: i64, slice: ResourceSlice) -> ResourceSlice {
    ResourceSlice { slice_count: count, ..slice }
}

fn at(place: DevicePlace, slice: ResourceSlice) -> ResourceSlice {
    ResourceSlice { place, ..slice }
}

fn on(node: &str) -> DevicePlace {
    DevicePlace::Node(NodeName::new(node))
}

#[test]
fn pools_come_by_driver_and_name_slices_by_name_and_devices_as_listed() {
    let other_driver = ResourceSlice { driver: "c".into(), ..slice("z", "p9", [device("first")]) };
    let given = Given::new([
        slice("a", "p2", [device("fourth")]),
        of(2, slice("c", "p1", [device("third")])),
        of(2, slice("b", "p1", [device("second-b"), device("second-a")])),
        other_driver,
    ]);
    let wanted = ["r=first", "r=second-b", "r=second-a", "r=third", "r=fourth"];
    assert_eq!(given.gets([request("r", 5)]), wanted);
}

#[test]
fn pools_with_binding_conditions_come_last() {
    let waiting = Device { binding_conditions: vec!["ready".into()], ..device("waiting") };
    let given = Given::new([
        slice("a", "p1", [device("beside"), waiting]),
        slice("b", "p2", [device("usual")]),
    ]);
    assert_eq!(given.gets([request("r", 3)]), ["r=usual", "r=beside", "r=waiting"]);
}

#[test]
fn devices_are_reached_by_name_by_selector_from_everywhere_or_each_for_itself() {
    let placed = |name: &str, place| Device { place: Some(place), ..device(name) };
    let given = Given::new([
        slice("a", "p1", [device("here")]),
        at(on("n2"), slice("b", "p2", [device("there")])),
        at(in_zone("a"), slice("c", "p3", [device("zone-a")])),
        at(in_zone("b"), slice("d", "p4", [device("zone-b")])),
        at(DevicePlace::AllNodes, slice("e", "p5", [device("everywhere")])),
        at(
            DevicePlace::PerDevice,
            slice(
                "f",
                "p6",
                [
                    placed("own-b", in_zone("b")),
                    placed("own-here", on("n1")),
                    placed("own-there", on("n2")),
                    placed("own-all", DevicePlace::AllNodes),
                    device("own-nowhere"),
                ],
            ),
        ),
    ]);
    let wanted = ["r=here", "r=zone-a", "r=everywhere", "r=own-here", "r=own-all"];
    assert_eq!(given.gets([request("r", 5)]), wanted);
    assert!(!given.fits([request("r", 6)]));
}

#[test]
fn only_the_newest_generation_counts() {
    let given = Given::new([
        generation(1, slice("a", "p", [device("old")])),
        generation(2, slice("b", "p", [device("new")])),
    ]);
    assert_eq!(given.gets([request("r", 1)]), ["r=new"]);
    assert!(!given.fits([request("r", 2)]));
}

#[test]
fn a_newer_generation_elsewhere_ends_a_pool_that_is_not_complete_here() {
    let old = of(2, slice("a", "p", [device("old")]));
    let newer = generation(2, at(on("n2"), slice("b", "p", [device("new")])));
    let given = Given::new([old, newer]);
    // Were it incomplete instead, this would be an error.
    assert_does_not_fit(&given.failure(&[claim("c", [all("r")])]));
}

#[test]
fn slices_of_other_nodes_complete_a_pool() {
    let here = of(2, slice("a", "p", [device("here")]));
    let there = of(2, at(on("n2"), slice("b", "p", [device("there")])));
    assert_eq!(Given::new([here.clone(), there]).gets([all("r")]), ["r=here"]);
    let alone = Given::new([here]);
    assert_does_not_fit(&alone.failure(&[claim("c", [request("r", 1)])]));
}

#[test]
fn slices_that_disagree_on_their_number_count_as_the_largest_says() {
    let slices = [of(1, slice("a", "p", [device("x")])), of(2, slice("b", "p", [device("y")]))];
    assert_eq!(Given::new(slices.clone()).gets([request("r", 2)]), ["r=x", "r=y"]);
    let [one, two] = slices;
    assert_eq!(Given::new([two, one]).gets([request("r", 2)]), ["r=x", "r=y"]);
}

#[test]
fn a_pool_that_contradicts_itself_has_no_devices_and_shows_only_if_nothing_fits() {
    let twice = slice("a", "p1", [device("x"), device("x")]);
    let given = Given::new([twice, slice("b", "p2", [device("y")])]);
    assert_eq!(given.gets([request("r", 1)]), ["r=y"]);
    let failure = given.failure(&[claim("c", [request("r", 2)])]);
    assert_eq!(failure.to_string(), "invalid resource pools were encountered");
}

#[test]
fn counters_that_are_not_there_or_twice_make_a_pool_invalid() {
    let invalid = |slices: [ResourceSlice; 2]| {
        let failure = Given::new(slices).failure(&[claim("c", [request("r", 1)])]);
        failure == AllocationFailure::DoesNotFit { has_invalid_pools: true }
    };
    let set = || counters(&[("memory", 4)]);
    let known = drawing([device("x").draws("set", "memory", 4)]);
    assert!(Given::new([set(), known]).fits([request("r", 1)]));
    assert!(invalid([set(), drawing([device("x").draws("other", "memory", 1)])]));
    assert!(invalid([set(), drawing([device("x").draws("set", "other", 1)])]));
    let mut twice = set();
    twice.shared_counters.push(twice.shared_counters[0].clone());
    assert!(invalid([twice, drawing([device("x")])]));
}

#[test]
fn counters_of_devices_elsewhere_are_checked_too() {
    let set = of(3, counters(&[("memory", 4)]));
    let here = of(3, drawing([device("x")]));
    let there =
        |draws| at(on("n2"), of(3, slice("there", "p", [device("y").draws(draws, "memory", 1)])));
    assert!(Given::new([set.clone(), here.clone(), there("set")]).fits([request("r", 1)]));
    assert!(!Given::new([set, here, there("unknown")]).fits([request("r", 1)]));
}

#[test]
fn a_pool_of_which_only_the_counters_came_is_incomplete_on_every_node() {
    let given =
        Given::new([at(on("n2"), counters(&[("memory", 4)])), slice("x", "q", [device("x")])]);
    assert_eq!(given.gets([request("r", 1)]), ["r=x"]);
    let failure = given.failure(&[claim("c", [all("r")])]);
    let text = "claim default/c, request r: asks for all devices, but resource pool d/p is currently being updated";
    assert_eq!(failure.to_string(), text);
}

#[test]
fn slices_that_come_and_go_leave_nothing_behind() {
    let mut pools = DevicePools::default();
    let slices = [
        slice("a", "p", [device("x")]),
        at(DevicePlace::AllNodes, slice("b", "p", [device("y").draws("set", "memory", 1)])),
        generation(2, counters(&[("memory", 1)])),
    ];
    for slice in slices.clone() {
        pools.set(slice.into());
    }
    // The same name again, elsewhere: the old one is gone.
    pools.set(at(on("n9"), slice("a", "q", [])).into());
    assert_eq!(pools.slices().count(), 3);
    for slice in &slices {
        assert!(pools.remove(&slice.name).is_some());
    }
    assert_eq!(pools, DevicePools::default());
    assert!(pools.remove("a").is_none());
}
