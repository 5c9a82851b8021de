//! Pods say why the objects that they refer to are not Ready, in the words of those.

use model::Phase;

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder};

const FIGURES: &str = "needs 10 Gbps, 0 of 100 Gbps free, short by 10 Gbps";

fn asks_both(name: &str) -> model::Pod {
    PodBuilder::new(name).needs("c1", Some(40)).needs_bundle("b1", Some(20)).build()
}

fn told(world: &mut World) -> Vec<String> {
    world.decide();
    world.held_reports().into_iter().map(|(_, message)| message).collect()
}

#[test]
fn the_reason_of_the_object_is_on_the_pod() {
    let failed = |reason: &str, message: &str| {
        CorridorBuilder::new("c1", 100)
            .phase(Phase::Failed)
            .achievable(0.0)
            .not_ready(reason, message)
    };
    for (reason, message, expected) in [
        (
            "AttestationFailed",
            "device \"d\" is revoked",
            "AttestationFailed: device \"d\" is revoked",
        ),
        ("AllocationRefused", "no capacity.", "AllocationRefused: no capacity"),
        ("BackendNotConfigured", "", "BackendNotConfigured"),
    ] {
        let mut world = World::with_nodes(5);
        world.corridor(failed(reason, message));
        world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
        let expected =
            format!("0/5 nodes are available: corridor team-a/c1 (Failed): {FIGURES}, {expected}.");
        assert_eq!(told(&mut world).concat(), expected);
        assert_eq!(world.message("p"), expected, "explained as told");
    }
}

#[test]
fn a_daemon_that_is_not_configured_is_not_silent() {
    let mut world = World::with_nodes(5);
    let pending = CorridorBuilder::new("c1", 100).phase(Phase::Pending).achievable(0.0);
    world.corridor(pending.not_ready("BackendNotConfigured", "corrd is not configured"));
    world.pass(std::time::Duration::from_mins(1));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    let message = told(&mut world).remove(0);
    assert!(
        message.contains("short by 10 Gbps, BackendNotConfigured: corrd is not configured."),
        "{message}"
    );
}

#[test]
fn figures_say_more_than_that_the_floor_is_missed() {
    let mut world = World::with_nodes(5);
    let degraded = CorridorBuilder::new("c1", 100).phase(Phase::Degraded).achievable(40.0);
    world.corridor(degraded.not_ready("BelowFloor", "40 of 100 Gbps"));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    let message = told(&mut world).remove(0);
    assert!(
        message.ends_with("short by 10 Gbps, achievable 40 Gbps is below the floor."),
        "{message}"
    );
}

#[test]
fn bit_errors_are_no_lack_of_bandwidth() {
    let mut world = World::with_nodes(5);
    let degraded = CorridorBuilder::new("c1", 100).phase(Phase::Degraded);
    world.corridor(degraded.not_ready("BerAboveTarget", "1e-9 is above 1e-12"));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    let message = told(&mut world).remove(0);
    assert!(
        message.contains("short by 10 Gbps, BerAboveTarget: 1e-9 is above 1e-12."),
        "{message}"
    );
}

#[test]
fn every_object_that_stands_in_the_way_is_named_and_told_anew() {
    let mut world = World::with_nodes(5);
    let failed = CorridorBuilder::new("c1", 100).phase(Phase::Failed).achievable(0.0);
    world.corridor(failed.not_ready("AttestationFailed", "revoked"));
    world.see(asks_both("p"));
    let first = told(&mut world);
    let both = "corridor team-a/c1 (Failed): needs 40 Gbps, 0 of 100 Gbps free, short by 40 Gbps, AttestationFailed: revoked, memory bundle team-a/b1 not found.";
    assert_eq!(first, [format!("0/5 nodes are available: {both}")]);
    // It waits in the queue of the Corridor; the other object changes.
    let pending = CorridorBuilder::bundle("b1", 50).phase(Phase::Pending).achievable(0.0);
    world.corridor(pending.not_ready("BackendNotConfigured", "memqosd is not configured"));
    let anew = told(&mut world);
    assert!(anew.len() == 1 && anew[0].contains("BackendNotConfigured"), "{anew:?}");
    world.corridor(CorridorBuilder::bundle("b1", 50));
    let anew = told(&mut world);
    assert!(anew.len() == 1 && !anew[0].contains("memory bundle"), "{anew:?}");
}
