//! What a Pod that waits for its volumes is told, and when it is told anew.

use rules::ClaimProblem;

use super::*;

/// A Pod whose claim finds no volume among two that are too small.
fn waiting() -> World {
    let mut world = World::with_classes();
    world.claim(PersistentVolumeClaim { request: "50Gi".parse().unwrap(), ..unbound("c", LOCAL) });
    world.volume(local("v1", "n0"));
    world.volume(local("v2", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    assert!(world.decide().is_empty());
    world
}

const KUBE_SCHEDULERS: &str = "0/2 nodes are available: 2 node(s) didn't find available persistent \
     volumes to bind. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption \
     is not helpful for scheduling.";

#[test]
fn what_stands_behind_its_claims_follows_kube_schedulers_words() {
    let mut world = waiting();
    let reports = world.held_reports();
    let [(_, message)] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(
        *message,
        format!(
            "{KUBE_SCHEDULERS} Volumes: claim team-a/c (class local, 50Gi): 2 volumes of the class, \
             2 too small (largest free 2Gi)."
        )
    );
    let explained = world.engine.explain(&key("p")).unwrap();
    assert_eq!(explained.message, *message);
    assert!(matches!(explained.volumes.claims[0].problem, ClaimProblem::NoVolume(_)));
}

#[test]
fn a_pod_is_told_anew_when_something_else_is_the_matter_with_its_claim() {
    let mut world = waiting();
    assert_eq!(world.held_reports().len(), 1);
    let mut after = |change: &dyn Fn(&mut World)| {
        change(&mut world);
        world.pass(Duration::from_mins(1));
        world.decide();
        world.held_reports().into_iter().map(|(_, message)| message).collect::<Vec<_>>()
    };
    let figures = after(&|world| world.volume(local("v3", "n1")));
    assert!(figures.is_empty(), "{figures:?}");
    let claim = |world: &mut World| world.claim(selected("c", "gone"));
    let [moved] = &after(&claim)[..] else { panic!("not told") };
    let told = moved.strip_prefix(KUBE_SCHEDULERS).unwrap();
    assert!(
        told.starts_with(" Volumes: claim team-a/c (class made, 1Gi) was promised to node gone")
    );
}

#[test]
fn a_pod_whose_volumes_are_not_in_the_way_hears_nothing_of_them() {
    let mut world = World::with_classes();
    world.claim(unbound("c", MADE));
    world.see(PodBuilder::new("p").claims(&["c"]).cpu_milli(100_000).build());
    world.decide();
    let reports = world.held_reports();
    assert!(!reports[0].1.contains("Volumes: "), "{reports:?}");
    assert!(world.engine.explain(&key("p")).unwrap().volumes.is_empty());
}
