//! From the placement of a Pod with ResourceClaims to its Binding, and what a claim keeps if that fails.

use super::*;

#[test]
fn a_claim_is_protected_then_gets_its_devices_and_then_its_pod_is_bound() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(1), &[("a", false), ("b", false)]));
    world.claim_seen(exactly("c", 1, IS_B));
    world.see(asks("p", &["c"]));
    assert!(world.decide().is_empty());
    let writes = &world.prepares[0].writes;
    let [PrepareWrite::ProtectClaim { .. }, PrepareWrite::ReserveClaim { allocation, .. }] =
        &writes[..]
    else {
        panic!("{writes:?}")
    };
    assert_eq!(&*allocation.as_ref().unwrap().devices[0].id.device, "b1");
    world.write_all();
    assert_eq!(world.decide()[0].node, "n1".into());
}

#[test]
fn two_pods_do_not_get_one_device() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(1), &[("a", false)]));
    for (pod, claim) in [("p", "c"), ("q", "d")] {
        world.claim_seen(exactly(claim, 1, IS_A));
        world.see(asks(pod, &[claim]));
    }
    world.decide();
    assert_eq!(world.prepares.len(), 1, "what is written soon is taken already");
    assert!(world.message("q").contains("cannot allocate all claims"));
    world.prepares.clear();
    world.handle(refused("p"));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(world.prepares.len(), 1, "what one gives back is there for the others");
}

#[test]
fn pods_that_share_a_claim_follow_the_first_to_its_node() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(2), &[("a", false)]));
    world.claim_seen(exactly("c", 1, IS_A));
    for pod in ["p", "q"] {
        world.see(asks(pod, &["c"]));
    }
    world.decide();
    assert_eq!(world.prepares.len(), 1);
    let message = world.message("q");
    assert!(message.contains("resource claim c is in the process of being allocated"), "{message}");
    world.write_all();
    world.pass(Duration::from_secs(2));
    world.decide();
    world.write_all();
    world.decide();
    let claim = world.claim_named("c");
    assert_eq!(claim.reserved_for.len(), 2, "{claim:?}");
    assert_eq!(claim.allocation.unwrap().devices.len(), 1);
}

#[test]
fn a_claim_named_twice_is_taken_once() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(0), &[("a", false)]));
    world.claim_seen(exactly("c", 1, IS_A));
    world.see(asks("p", &["c", "c"]));
    world.decide();
    assert_eq!(world.prepares[0].writes.len(), 2);
    world.write_all();
    assert_eq!(world.decide().len(), 1);
}

#[test]
fn a_device_that_is_free_again_wakes_who_waits_also_if_its_claim_is_deleted() {
    for is_deleted in [false, true] {
        let mut world = World::with_devices();
        world.slice(slice_of("s", on_node(0), &[("a", false)]));
        let held = allocated(exactly("held", 1, IS_A), "s", "a0");
        world.claim_seen(held);
        world.claim_seen(exactly("c", 1, IS_A));
        world.see(asks("p", &["c"]));
        world.decide();
        assert!(world.prepares.is_empty());
        if is_deleted {
            world.handle(Event::gone(ClusterObjectId::ResourceClaim(key("held"))));
        } else {
            world.claim_seen(exactly("held", 1, IS_A));
        }
        world.pass(Duration::from_secs(2));
        world.decide();
        assert_eq!(world.prepares.len(), 1, "deleted: {is_deleted}");
    }
}

#[test]
fn a_pod_waits_for_the_conditions_of_its_device_and_ends_with_a_failure() {
    for is_failure in [false, true] {
        let mut world = World::with_devices();
        let mut slice = slice_of("s", on_node(0), &[("a", false)]);
        slice.devices[0].binding_conditions = vec!["attached".into()];
        slice.devices[0].binding_failure_conditions = vec!["broken".into()];
        world.slice(slice);
        world.claim_seen(exactly("c", 1, IS_A));
        world.see(asks("p", &["c"]));
        world.decide();
        world.write_all();
        assert!(world.decide().is_empty());
        assert_eq!(world.device_stage("p"), "waiting for claims");
        let mut claim = world.claim_named("c");
        let device = claim.allocation.as_ref().unwrap().devices[0].id.clone();
        let condition = if is_failure { "broken" } else { "attached" };
        claim.true_conditions.insert(device, [condition.into()].into());
        world.claim_seen(claim);
        assert_eq!(world.decide().len(), usize::from(!is_failure));
    }
}

#[test]
fn conditions_that_never_come_end_the_attempt() {
    let mut world = World::with_devices();
    let mut slice = slice_of("s", on_node(0), &[("a", false)]);
    slice.devices[0].binding_conditions = vec!["attached".into()];
    world.slice(slice);
    world.claim_seen(exactly("c", 1, IS_A));
    world.see(asks("p", &["c"]));
    world.decide();
    world.write_all();
    world.pass(Duration::from_secs(601));
    assert!(world.decide().is_empty());
    assert!(world.message("p").contains("device binding timeout"), "{}", world.message("p"));
}

#[test]
fn a_claim_with_as_many_users_as_it_may_have_takes_no_more() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(0), &[("a", false)]));
    let user = |number: usize| ClaimUser {
        is_pod: true,
        name: number.to_string().into(),
        uid: number.to_string().into(),
    };
    let claim = allocated(exactly("c", 1, IS_A), "s", "a0");
    let users = (0..ResourceClaim::USERS_MAX).map(user).collect();
    world.claim_seen(ResourceClaim { reserved_for: users, ..claim.clone() });
    world.see(asks("p", &["c"]));
    world.decide();
    let message = world.message("p");
    assert!(message.contains("is reserved for 256 users, as many as it may have"), "{message}");
    world.claim_seen(claim);
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(world.prepares.len(), 1, "one of them has ended");
}

#[test]
fn a_new_leader_goes_on_from_what_its_predecessor_has_written() {
    let claims = [("p", "c"), ("q", "d")];
    let known = |world: &mut World, written: Option<ResourceClaim>| {
        world.slice(slice_of("s", on_node(0), &[("a", false)]));
        for (pod, claim) in claims {
            world.claim_seen(exactly(claim, 1, IS_A));
            world.see(asks(pod, &[claim]));
        }
        if let Some(written) = written {
            world.claim_seen(written);
        }
    };
    let mut predecessor = World::with_devices();
    known(&mut predecessor, None);
    predecessor.decide();
    let [prepare] = &predecessor.prepares.clone()[..] else { panic!("one Pod gets the device") };
    for write in &prepare.writes {
        predecessor.write(prepare, write);
    }
    let claim = &claims.iter().find(|(pod, _)| *pod == &*prepare.pod.name).unwrap().1;
    let mut leader = World::with_devices();
    known(&mut leader, Some(predecessor.claim_named(claim)));
    let bound = leader.decide();
    assert_eq!(bound.iter().map(|it| &it.uid).collect::<Vec<_>>(), [&prepare.uid]);
    assert!(leader.prepares.is_empty(), "nothing is written again");
}

#[test]
fn devices_of_a_pod_that_is_gone_stay_taken_until_its_write_has_an_outcome() {
    let mut world = World::with_devices();
    world.slice(slice_of("s", on_node(0), &[("a", false)]));
    for (pod, claim) in [("p", "c"), ("q", "d")] {
        world.claim_seen(exactly(claim, 1, IS_A));
        world.see(asks(pod, &[claim]));
    }
    world.decide();
    let sent = world.prepares.remove(0);
    let other = if *sent.pod.name == *"p" { "q" } else { "p" };
    world.handle(Event::gone(sent.uid.clone()));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert!(world.prepares.is_empty(), "the write may still be carried out");
    world.handle(refused(&sent.pod.name));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(&*world.prepares[0].pod.name, other);
}

#[test]
fn a_claim_that_cannot_be_used_gives_its_devices_back_and_gets_others() {
    for is_used in [false, true] {
        let mut world = World::with_devices();
        world.slice(slice_of("s", on_node(0), &[("a", false)]));
        world.slice(slice_of("t", on_node(1), &[("a", false)]));
        let mut claim = allocated(exactly("c", 1, IS_A), "s", "a0");
        let only = RawRequirement::new("metadata.name", "In", &["n0"]);
        let term = RawNodeTerm { expressions: Vec::new(), fields: vec![only] };
        let nodes = Some(Arc::new(SelectedNodes::parse(vec![term])));
        Arc::make_mut(claim.allocation.as_mut().unwrap()).nodes = nodes;
        if is_used {
            let (name, uid) = ("other".into(), "uid-other".into());
            claim.reserved_for.push(ClaimUser { is_pod: true, name, uid });
        }
        world.claim_seen(claim);
        // The Node of the devices has no room.
        let full = Assignment::Bound { node: "n0".into(), grant: None };
        world.see(PodBuilder::new("full").cpu_milli(4000).assigned(full).build());
        world.see(asks("p", &["c"]));
        world.decide();
        if is_used {
            assert!(world.prepares.is_empty());
            let message = world.message("p");
            assert!(message.contains("resourceclaim not available on the node"), "{message}");
            assert!(message.contains("still not schedulable, preemption: "), "{message}");
            continue;
        }
        let writes = &world.prepares[0].writes;
        assert!(matches!(writes[..], [PrepareWrite::DeallocateClaim { .. }]), "{writes:?}");
        world.write_all();
        world.decide();
        world.write_all();
        assert_eq!(world.decide()[0].node, "n1".into());
    }
}

#[test]
fn a_claim_that_is_not_given_back_is_tried_again_later() {
    let mut world = World::with_devices();
    let mut slice = slice_of("s", on_node(0), &[("a", false)]);
    slice.devices[0].binding_failure_conditions = vec!["broken".into()];
    world.slice(slice);
    world.slice(slice_of("t", on_node(1), &[("a", false)]));
    let mut claim = allocated(exactly("c", 1, IS_A), "s", "a0");
    let device = &mut Arc::make_mut(claim.allocation.as_mut().unwrap()).devices[0];
    device.binding_failure_conditions = vec!["broken".into()];
    let id = device.id.clone();
    claim.true_conditions.insert(id, ["broken".into()].into());
    world.claim_seen(claim);
    world.see(asks("p", &["c"]));
    world.decide();
    assert_eq!(std::mem::take(&mut world.prepares).len(), 1);
    world.handle(refused("p"));
    assert!(world.prepares.is_empty() && world.decide().is_empty());
    world.pass(Duration::from_secs(2));
    world.decide();
    world.write_all();
    world.decide();
    world.write_all();
    assert_eq!(world.decide()[0].node, "n1".into());
}
