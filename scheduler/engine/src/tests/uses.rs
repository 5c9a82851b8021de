use std::time::Duration;

use model::{Instant, ObjectKind, Phase};

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder, corridor};
use crate::{Engine, EngineConfig, Event, Facts, Report, Watched, WatchedKind};

impl World {
    /// What has been told of the use of objects since the last look.
    fn told(&mut self) -> Vec<Facts> {
        let mut told = Vec::new();
        while let Some(report) = self.engine.poll_report() {
            if let Report::Used(used) = report {
                told.push(used.facts);
            }
        }
        told
    }
}

fn asks(name: &str, gbps: u32) -> PodBuilder {
    PodBuilder::new(name).needs("c1", Some(gbps))
}

#[test]
fn users_are_counted_and_named_at_most_once_a_second() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    assert!(world.told().is_empty(), "nobody uses it, and nobody was told otherwise");
    world.see(asks("a", 1).build());
    world.bind_all();
    let told = world.told();
    assert_eq!((told.len(), told[0].in_use), (1, 1));
    assert_eq!(&*told[0].in_use_by[0].0.name, "a");
    for name in ["b", "c", "d"] {
        world.see(asks(name, 1).build());
    }
    world.bind_all();
    assert!(world.told().is_empty());
    assert_eq!(world.engine.poll_timeout(), Some(world.now + Duration::from_secs(1)));
    world.pass(Duration::from_secs(1));
    world.bind_all();
    assert_eq!(world.told()[0].in_use, 4);
}

#[test]
fn nothing_is_said_of_users_before_all_pods_are_known() {
    let mut world = World {
        engine: Engine::new(EngineConfig::default()),
        now: Instant::START,
        twin: None,
        prepares: Vec::new(),
    };
    let releasing = CorridorBuilder::new("c1", 100).phase(Phase::Releasing).build();
    world.handle(Event::seen(releasing));
    let synced = |world: &mut World, kinds: &[WatchedKind]| {
        for kind in kinds {
            world.handle(Event::Synced(*kind));
        }
    };
    let (last, others) = WatchedKind::ALL.split_last().unwrap();
    synced(&mut world, others);
    assert!(world.told().is_empty() && !world.engine.has_reports());
    synced(&mut world, &[*last]);
    assert_eq!(world.told()[0].drained, Some(true));
}

#[test]
fn no_more_than_thirty_two_users_are_named() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    for number in 0..40 {
        world.see(asks(&format!("p{number}"), 1).build());
    }
    world.bind_all();
    let told = world.told().remove(0);
    assert_eq!((told.in_use, told.in_use_by.len()), (40, 32));
}

#[test]
fn a_releasing_object_is_drained_when_its_last_user_is_gone() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(asks("a", 1).build());
    world.decide();
    world.told();
    world.pass(Duration::from_secs(1));
    let releasing = || CorridorBuilder::new("c1", 100).generation(2).phase(Phase::Releasing);
    world.corridor(releasing());
    let told = world.told().remove(0);
    assert_eq!((told.drained, told.generation), (Some(false), 2), "a Binding is in flight");
    world.handle(Event::BindDone("uid-a".into()));
    world.end("a");
    world.pass(Duration::from_secs(1));
    world.bind_all();
    assert_eq!(world.told()[0].drained, Some(true));
}

#[test]
fn an_unused_releasing_object_is_drained_at_once() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100).phase(Phase::Releasing));
    assert_eq!(world.told()[0].drained, Some(true));
}

#[test]
fn falling_below_what_is_reserved_is_reported_and_evicts_no_pod() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(asks("a", 80).build());
    world.bind_all();
    world.told();
    world.pass(Duration::from_secs(1));
    world.corridor(CorridorBuilder::new("c1", 50).generation(2));
    let told = world.told().remove(0);
    assert!(told.oversubscribed && told.in_use == 1);
}

#[test]
fn what_could_not_be_written_is_told_again() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(asks("a", 1).build());
    world.bind_all();
    assert_eq!(world.told().len(), 1);
    world.pass(Duration::from_secs(1));
    world.handle(Event::UseLost(corridor("c1")));
    world.handle(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, age: Duration::ZERO }));
    assert_eq!(world.told().len(), 1);
}
