//! MemoryBundles beside Corridors, quotas, and the namespaces that an owner lets in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{Amount, Grant, Granted, ObjectKey, ObjectKind, Phase, SECURITY_DOMAIN_LABEL};

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder, bundle, corridor};
use crate::{ClusterObject, ClusterObjectId, Event, Quota, Watched, WatchedId};

fn both(name: &str, light: u32, memory: u32) -> PodBuilder {
    PodBuilder::new(name).needs("c1", Some(light)).needs_bundle("b1", Some(memory))
}

#[test]
fn both_are_reserved_together_or_neither() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.corridor(CorridorBuilder::bundle("b1", 50).phase(Phase::Degraded).achievable(10.0));
    world.see(both("p", 40, 20).build());
    assert!(world.bind_all().is_empty());
    assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::ZERO));
    assert_eq!(
        world.message("p"),
        "0/5 nodes are available: memory bundle team-a/b1 (Degraded): needs 20 GB/s, 0 of 50 GB/s \
         free, short by 20 GB/s, achievable 10 GB/s is below the floor."
    );
    world.corridor(CorridorBuilder::bundle("b1", 50));
    let bind = world.decide().remove(0);
    let granted = |uid: &str, whole| Granted { uid: uid.into(), amount: Amount::from_whole(whole) };
    let grant =
        Grant { corridor: Some(granted("uid-c1", 40)), bundle: Some(granted("uid-b1", 20)) };
    assert_eq!(bind.grant, Some(grant));
    assert_eq!(bind.handles.len(), 2);
    assert_eq!(world.engine.reserved(&bundle("b1")), Some(Amount::from_whole(20)));
}

#[test]
fn a_pod_that_lacks_two_things_moves_from_queue_to_queue_and_blocks_no_other() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("c1", 100).achievable(0.0));
    world.corridor(CorridorBuilder::bundle("b1", 50).achievable(0.0));
    world.see(both("p", 100, 50).build());
    world.see(PodBuilder::new("q").needs("c1", Some(100)).build());
    assert!(world.bind_all().is_empty());
    world.corridor(CorridorBuilder::new("c1", 100));
    assert_eq!(world.bind_all(), ["q"], "p still lacks the bundle");
    world.corridor(CorridorBuilder::bundle("b1", 50));
    assert!(world.bind_all().is_empty(), "now it lacks the corridor");
    world.end("q");
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_bundle_that_is_not_shareable_has_one_user() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::bundle("b1", 50).exclusive());
    for name in ["first", "second", "third"] {
        world.see(PodBuilder::new(name).needs_bundle("b1", None).build());
    }
    assert_eq!(world.bind_all(), ["first"]);
    assert!(world.message("second").contains("is not shareable and in use by team-a/first"));
    world.end("first");
    assert_eq!(world.bind_all(), ["second"]);
    world.end("second");
    assert_eq!(world.bind_all(), ["third"]);
}

#[test]
fn each_kind_listens_to_its_own_daemon() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.corridor(CorridorBuilder::bundle("b1", 50));
    world.pass(Duration::from_secs(15));
    world.handle(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, age: Duration::ZERO }));
    world.see(both("p", 1, 1).build());
    world.see(PodBuilder::new("q").needs("c1", Some(1)).build());
    assert_eq!(world.bind_all(), ["q"]);
    assert!(world.message("p").contains("memqosd has not reported for 15 s"));
    world.handle(Event::Seen(Watched::Backend {
        kind: ObjectKind::MemoryBundle,
        age: Duration::ZERO,
    }));
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn namespaces_over_their_soft_quota_stand_behind_the_others() {
    let mut world = World::with_nodes(5);
    world.engine.config.quotas.push(Quota {
        namespace: "greedy".into(),
        corridor: Some(Amount::from_whole(40)),
        ..Quota::default()
    });
    world.corridor(CorridorBuilder::new("greedy/c1", 100));
    let_in(&mut world, "greedy", "modest");
    let asks = |name: &str| PodBuilder::new(name).needs("greedy/c1", Some(50));
    world.see(asks("greedy/one").build());
    world.see(asks("greedy/two").build());
    assert_eq!(world.bind_all(), ["one", "two"], "a soft quota alone holds nobody");
    world.see(asks("greedy/three").build());
    world.see(asks("modest/late").build());
    assert!(world.bind_all().is_empty());
    world.end("one");
    assert_eq!(world.bind_all(), ["late"]);
    world.end("two");
    assert_eq!(world.bind_all(), ["three"], "and nobody waits for ever");
}

#[test]
fn an_owners_policy_lets_a_tenant_in_and_its_end_keeps_new_pods_out() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("owner/c1", 100));
    let asks = |name: &str| PodBuilder::new(name).needs("owner/c1", Some(10));
    world.see(asks("guest/p").build());
    assert!(world.bind_all().is_empty());
    let_in(&mut world, "guest", "guest");
    assert!(world.bind_all().is_empty(), "a tenant cannot let itself in");
    let_in(&mut world, "owner", "guest");
    assert_eq!(world.bind_all(), ["p"]);
    world.handle(Event::Gone(WatchedId::Policy(ObjectKey::new("owner", "policy"))));
    world.see(asks("guest/q").build());
    assert!(world.bind_all().is_empty());
}

#[test]
fn queued_pods_are_checked_again_when_the_owner_changes_its_policy() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("owner/c1", 100).achievable(0.0));
    let_in(&mut world, "owner", "guest");
    world.see(PodBuilder::new("guest/p").needs("owner/c1", Some(10)).build());
    assert!(world.bind_all().is_empty());
    world.handle(Event::Gone(WatchedId::Policy(ObjectKey::new("owner", "policy"))));
    world.corridor(CorridorBuilder::new("owner/c1", 100));
    assert!(world.bind_all().is_empty());
    let_in(&mut world, "owner", "guest");
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn fail_fast_is_tried_again_when_a_raised_floor_takes_effect() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("holder").needs("c1", Some(100)).build());
    world.bind_all();
    world.see(PodBuilder::new("hasty").needs("c1", Some(50)).fail_fast().build());
    assert!(world.bind_all().is_empty());
    let asked = || CorridorBuilder::new("c1", 200).generation(2).achievable(210.0);
    world.corridor(asked().confirmed(100.0));
    assert!(world.bind_all().is_empty(), "corrd has not agreed yet");
    world.corridor(asked().confirmed(200.0));
    assert_eq!(world.bind_all(), ["hasty"]);
}

#[test]
fn a_bundle_is_shared_only_within_its_security_domain() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::bundle("owner/b1", 50).security_domain("red"));
    let_in(&mut world, "owner", "guest");
    let asks = |name: &str| PodBuilder::new(name).needs_bundle("owner/b1", Some(10)).build();
    world.see(asks("owner/own"));
    assert_eq!(world.bind_all(), ["own"], "the owner's namespace is in its own domain");
    world.see(asks("guest/p"));
    assert!(world.bind_all().is_empty());
    assert_eq!(
        world.message("guest/p"),
        "0/5 nodes are available: memory bundle owner/b1 (Ready): only namespaces of security \
         domain \"red\" may share it."
    );
    let mut label = |domain: &str| {
        let labels = [(SECURITY_DOMAIN_LABEL.into(), domain.into())].into();
        world.handle(Event::seen(ClusterObject::Namespace("guest".into(), labels)));
        world.bind_all()
    };
    assert!(label("blue").is_empty());
    assert_eq!(label("red"), ["p"]);
    world.handle(Event::gone(ClusterObjectId::Namespace("guest".into())));
    world.see(asks("guest/q"));
    assert!(world.bind_all().is_empty(), "a namespace without the label is in no domain");
}

#[test]
fn a_pod_carries_the_hashes_of_the_tickets_that_it_relies_on() {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::new("c1", 100).ticket_hash("of-c1"));
    world.corridor(CorridorBuilder::bundle("b1", 50).ticket_hash("of-b1"));
    world.see(both("p", 40, 20).build());
    assert_eq!(world.decide().remove(0).ticket_hashes, ["of-c1".into(), "of-b1".into()]);
}

fn let_in(world: &mut World, owner: &str, tenant: &str) {
    let policy = ObjectKey::new(owner, "policy");
    let allowed_tenants = BTreeSet::from([Arc::from(tenant)]);
    world.handle(Event::Seen(Watched::Policy { policy, allowed_tenants }));
}

#[test]
fn a_window_that_opens_lets_more_in_and_one_that_closes_less() {
    let mut world = World::with_nodes(5);
    let opens = world.now + Duration::from_secs(5);
    let base = || CorridorBuilder::bundle("b1", 10).achievable(30.0);
    let asks = |name: &str| PodBuilder::new(name).needs_bundle("b1", Some(20)).build();
    world.corridor(base().asks_later(opens, 25));
    world.see(asks("p"));
    assert!(world.bind_all().is_empty(), "the base is 10");
    assert!(
        world.message("p").contains("needs 20 GB/s, 10 of 10 GB/s free"),
        "not for ever: it waits"
    );
    assert_eq!(world.engine.poll_timeout(), Some(opens));
    world.pass(Duration::from_secs(5));
    assert_eq!(world.bind_all(), ["p"], "the window has opened, and nothing less was confirmed");
    // The daemon has confirmed less than the window asks for.
    let mut world = World::with_nodes(5);
    let opens = world.now + Duration::from_secs(5);
    world.corridor(base().confirmed(10.0).asks_later(opens, 25));
    world.see(asks("p"));
    world.pass(Duration::from_secs(5));
    assert!(world.bind_all().is_empty(), "until the daemon says so");
    // And the window closes before the daemon has said so.
    let mut world = World::with_nodes(5);
    let closes = world.now + Duration::from_secs(5);
    world.corridor(
        CorridorBuilder::bundle("b1", 25).achievable(30.0).confirmed(25.0).asks_later(closes, 10),
    );
    world.pass(Duration::from_secs(5));
    world.see(asks("late"));
    assert!(world.bind_all().is_empty(), "{}", world.message("late"));
}
