use model::{AllocatedDevice, DeviceId, Quantity};
use proptest::prelude::*;

use super::*;

fn id(device: &str) -> DeviceId {
    DeviceId { driver: "d".into(), pool: "p".into(), device: device.into() }
}

fn whole(name: &str) -> AllocatedDevice {
    AllocatedDevice {
        request: "r".into(),
        id: id(name),
        admin_access: false,
        tolerations: Vec::new(),
        binding_conditions: Vec::new(),
        binding_failure_conditions: Vec::new(),
        share_id: None,
        consumed_capacity: BTreeMap::new(),
    }
}

fn share(name: &str, share_id: &str, memory: i64) -> AllocatedDevice {
    AllocatedDevice {
        share_id: Some(share_id.into()),
        consumed_capacity: [("memory".into(), Quantity::from_whole(memory))].into(),
        ..whole(name)
    }
}

fn allocation(devices: impl IntoIterator<Item = AllocatedDevice>) -> Allocation {
    Allocation { devices: devices.into_iter().collect(), ..Allocation::default() }
}

fn set(taken: &mut TakenDevices, claim: &str, devices: Vec<AllocatedDevice>) -> TakenChange {
    taken.set(&claim.into(), Some(&allocation(devices)))
}

#[test]
fn another_allocation_frees_what_it_no_longer_has() {
    let mut taken = TakenDevices::default();
    set(&mut taken, "a", vec![whole("x"), whole("y")]);
    let change = set(&mut taken, "a", vec![whole("y"), whole("z")]);
    assert_eq!(change, TakenChange { freed: vec![id("x")], taken: vec![id("z")] });
    assert!(taken.device(&id("x")).is_none());
    assert!(set(&mut taken, "a", vec![whole("y"), whole("z")]).is_empty(), "nothing has changed");
    assert_eq!(taken.remove(&"a".into()).freed, [id("y"), id("z")]);
    assert_eq!(taken, TakenDevices::default());
}

#[test]
fn a_device_of_two_claims_is_known_and_stays_taken_when_one_lets_go() {
    let mut taken = TakenDevices::default();
    set(&mut taken, "a", vec![whole("x")]);
    set(&mut taken, "b", vec![whole("x")]);
    let contested: Vec<_> = taken.contested().map(|(id, it)| (id, it.holders().count())).collect();
    assert_eq!(contested, [(&id("x"), 2)]);
    taken.remove(&"a".into());
    assert!(taken.device(&id("x")).unwrap().is_held());
    assert_eq!(taken.contested().count(), 0);
}

#[test]
fn a_share_of_a_device_that_another_holds_is_contested() {
    let mut taken = TakenDevices::default();
    set(&mut taken, "a", vec![whole("x")]);
    set(&mut taken, "b", vec![share("x", "1", 2)]);
    assert_eq!(taken.contested().count(), 1);
    taken.remove(&"b".into());
    assert_eq!(taken.contested().count(), 0);
}

#[test]
fn shares_add_up_and_admin_access_counts_nowhere() {
    let mut taken = TakenDevices::default();
    set(&mut taken, "a", vec![share("x", "1", 2), share("x", "2", 3)]);
    set(&mut taken, "b", vec![AllocatedDevice { admin_access: true, ..share("x", "3", 100) }]);
    let in_use = taken.device(&id("x")).unwrap();
    assert_eq!(in_use.consumed("memory"), Quantity::from_whole(5));
    assert_eq!(in_use.shares().count(), 2);
    assert!(!in_use.is_held());
}

#[test]
fn a_capacity_beyond_measure_leaves_a_correct_sum_behind() {
    let mut taken = TakenDevices::default();
    let mut huge = share("x", "1", 0);
    huge.consumed_capacity = [("memory".into(), Quantity::MAX)].into();
    set(&mut taken, "a", vec![huge]);
    set(&mut taken, "b", vec![share("x", "2", 3)]);
    taken.remove(&"a".into());
    assert_eq!(taken.device(&id("x")).unwrap().consumed("memory"), Quantity::from_whole(3));
}

fn any_device() -> impl Strategy<Value = AllocatedDevice> {
    let name = || prop::sample::select(vec!["x", "y", "z"]);
    prop_oneof![
        name().prop_map(whole),
        (name(), prop::sample::select(vec!["", "1", "2"]), 0..4_i64)
            .prop_map(|(name, share_id, memory)| share(name, share_id, memory)),
    ]
}

proptest! {
    /// However it came about, it says the same as if it had been made of the claims that are left.
    #[test]
    fn changes_add_up(
        changes in prop::collection::vec(
            (prop::sample::select(vec!["a", "b", "c"]), prop::collection::vec(any_device(), 0..4)),
            0..20,
        )
    ) {
        let mut taken = TakenDevices::default();
        let mut last = BTreeMap::new();
        for (claim, devices) in changes {
            set(&mut taken, claim, devices.clone());
            last.insert(claim, devices);
        }
        let mut rebuilt = TakenDevices::default();
        for (claim, devices) in last {
            set(&mut rebuilt, claim, devices);
        }
        prop_assert_eq!(&taken, &rebuilt);
    }
}
