//! Several profiles in one engine, and settings that change while it runs.

use model::FailurePolicy;
use rules::Plugin;

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder};
use crate::{EngineConfig, Event, Profile, Profiles, Quota};

fn reconfigure(world: &mut World, profiles: impl IntoIterator<Item = (&'static str, Profile)>) {
    let mut all = Profiles::default();
    for (name, profile) in profiles {
        all.insert(name, profile);
    }
    let config = EngineConfig { profiles: all, ..EngineConfig::default() };
    world.handle(Event::Reconfigured(Box::new(config)));
}

fn without_fit() -> Profile {
    let mut profile = Profile::default();
    profile.rules.switched_off.filters.insert(Plugin::NodeResourcesFit);
    profile
}

#[test]
fn each_pod_is_placed_by_its_own_profile() {
    let mut world = World::with_nodes(1);
    reconfigure(&mut world, [("careful", Profile::default()), ("careless", without_fit())]);
    for name in ["careful", "careless"] {
        world.see(PodBuilder::new(name).profile(name).cpu_milli(64_000).build());
    }
    assert_eq!(world.bind_all(), ["careless"]);
    assert!(world.message("careful").contains("Insufficient cpu"), "{}", world.message("careful"));
}

#[test]
fn pods_of_two_profiles_that_are_parked_alike_are_judged_each_by_its_own() {
    let mut world = World::with_nodes(1);
    let mut no_preemption = Profile::default();
    no_preemption.rules.switched_off.preemption = true;
    reconfigure(&mut world, [("peaceful", no_preemption), ("usual", Profile::default())]);
    world.see(PodBuilder::new("low").cpu_milli(4000).build());
    assert_eq!(world.bind_all(), ["low"]);
    for name in ["peaceful", "usual"] {
        world.see(PodBuilder::new(name).profile(name).priority(10).cpu_milli(4000).build());
    }
    assert!(world.bind_all().is_empty());
    assert_eq!(world.engine.stats().preemptions, 1, "one of them sends others away");
}

#[test]
fn new_settings_try_whom_the_old_ones_rejected() {
    let mut world = World::with_nodes(2);
    world.corridor(CorridorBuilder::new("c1", 100).achievable(0.0));
    world.see(PodBuilder::new("big").cpu_milli(64_000).build());
    world.see(PodBuilder::new("held").needs("c1", Some(10)).build());
    assert!(world.bind_all().is_empty());
    let fail_fast = Profile { failure_policy: FailurePolicy::FailFast, ..without_fit() };
    reconfigure(&mut world, [("corridor-scheduler", fail_fast)]);
    assert_eq!(world.bind_all(), ["big"]);
    assert!(world.message("held").starts_with("FailFast: "), "{}", world.message("held"));
    reconfigure(&mut world, [("corridor-scheduler", Profile::default())]);
    world.bind_all();
    assert!(world.message("held").starts_with("0/2"), "{}", world.message("held"));
    world.corridor(CorridorBuilder::new("c1", 100));
    assert_eq!(world.bind_all(), ["held"]);
}

#[test]
fn a_new_quota_counts_from_the_next_decision() {
    let mut world = World::with_nodes(2);
    world.corridor(CorridorBuilder::new("c1", 30));
    world.see(PodBuilder::new("first").needs("c1", Some(20)).build());
    assert_eq!(world.bind_all(), ["first"]);
    let quota = Quota { namespace: "team-a".into(), pods: Some(1), ..Quota::default() };
    let config = EngineConfig { quotas: vec![quota], ..EngineConfig::default() };
    for name in ["a", "b"] {
        world.see(PodBuilder::new(name).needs("c1", Some(20)).build());
    }
    assert!(world.bind_all().is_empty());
    world.handle(Event::Reconfigured(Box::new(config)));
    assert!(world.bind_all().is_empty(), "nobody is sent away by settings");
    world.end("first");
    assert_eq!(world.bind_all(), ["a"]);
}

#[test]
fn the_seed_outlives_new_settings() {
    let mut world = World::with_nodes(1);
    let config = EngineConfig { seed: 7, ..EngineConfig::default() };
    world.handle(Event::Reconfigured(Box::new(config)));
    assert_eq!(world.engine.config.seed, 0);
}
