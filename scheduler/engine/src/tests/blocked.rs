//! Pods beside the queue: they stand in none, and what brings them back is an event of its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{ObjectKey, ObjectKind, Phase, SECURITY_DOMAIN_LABEL};

use super::World;
use crate::objects::BACKEND_FRESH_FOR;
use crate::testkit::{CorridorBuilder, PodBuilder, bundle, key};
use crate::{ClusterObject, Event, Watched};

fn c1() -> CorridorBuilder {
    CorridorBuilder::new("c1", 100)
}

fn hasty(gbps: u32) -> PodBuilder {
    PodBuilder::new("hasty").needs("c1", Some(gbps)).fail_fast()
}

fn corrd_reports(world: &mut World) {
    world.handle(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, age: Duration::ZERO }));
}

#[test]
fn fail_fast_is_tried_again_when_a_silent_daemon_reports() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.pass(BACKEND_FRESH_FOR);
    world.see(hasty(50).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("hasty").contains("corrd has not reported for 15 s"));
    corrd_reports(&mut world);
    assert_eq!(world.bind_all(), ["hasty"]);
}

#[test]
fn a_silent_daemon_that_reports_brings_back_pods_that_failed_for_another_reason() {
    let mut world = World::with_nodes(5);
    world.corridor(c1());
    world.see(PodBuilder::new("holder").needs("c1", Some(100)).build());
    world.bind_all();
    world.see(hasty(50).build());
    assert!(world.bind_all().is_empty());
    world.end("holder");
    corrd_reports(&mut world);
    assert!(world.bind_all().is_empty(), "it reported all the time");
    world.pass(BACKEND_FRESH_FOR);
    corrd_reports(&mut world);
    assert_eq!(world.bind_all(), ["hasty"], "it has entered Ready for scheduling again");
}

#[test]
fn ready_and_the_lease_may_come_in_any_order() {
    for lease_first in [false, true] {
        let mut world = World::with_nodes(5);
        world.pass(BACKEND_FRESH_FOR);
        world.corridor(c1().phase(Phase::Degraded));
        world.see(hasty(50).build());
        assert!(world.bind_all().is_empty());
        if lease_first {
            corrd_reports(&mut world);
            assert!(world.bind_all().is_empty());
            world.corridor(c1());
        } else {
            world.corridor(c1());
            assert!(world.bind_all().is_empty(), "the status is old while corrd is silent");
            corrd_reports(&mut world);
        }
        assert_eq!(world.bind_all(), ["hasty"], "lease first: {lease_first}");
    }
}

#[test]
fn a_floor_that_is_met_again_counts_as_ready_whatever_the_phase_said() {
    let mut world = World::with_nodes(5);
    world.corridor(c1().achievable(99.9));
    world.see(hasty(50).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("hasty").contains("achievable 99.9 Gbps is below the floor"));
    world.corridor(c1());
    assert_eq!(world.bind_all(), ["hasty"]);
}

/// A guest of domain blue before a bundle of domain red.
fn refused_guest() -> World {
    let mut world = World::with_nodes(5);
    world.corridor(CorridorBuilder::bundle("owner/b1", 50).security_domain("red"));
    let policy = ObjectKey::new("owner", "policy");
    let allowed_tenants = BTreeSet::from([Arc::from("guest")]);
    world.handle(Event::Seen(Watched::Policy { policy, allowed_tenants }));
    let labels = [(SECURITY_DOMAIN_LABEL.into(), "blue".into())].into();
    world.handle(Event::seen(ClusterObject::Namespace("guest".into(), labels)));
    world.see(PodBuilder::new("guest/p").needs_bundle("owner/b1", Some(10)).build());
    assert!(world.bind_all().is_empty());
    world
}

#[test]
fn a_guest_is_tried_again_when_the_bundle_is_made_anew_in_its_domain() {
    for domain in ["blue", ""] {
        let mut world = refused_guest();
        world.handle(Event::gone(bundle("owner/b1")));
        assert!(world.bind_all().is_empty());
        let anew = CorridorBuilder::bundle("owner/b1", 50).uid("another");
        world.corridor(anew.security_domain(domain));
        assert_eq!(world.bind_all(), ["p"], "domain {domain:?}");
    }
}

#[test]
fn a_guest_is_tried_again_when_the_bundle_changes_its_domain() {
    let mut world = refused_guest();
    let changed = || CorridorBuilder::bundle("owner/b1", 50).generation(2);
    world.corridor(changed().security_domain("green"));
    assert!(world.bind_all().is_empty());
    world.corridor(changed().generation(3).security_domain("blue"));
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_guest_is_told_what_would_let_it_in() {
    let world = refused_guest();
    assert_eq!(
        world.engine.explain(&key("guest/p")).unwrap().wakes_on,
        ["another security domain of the Pod's namespace or of memory bundle owner/b1"]
    );
}
