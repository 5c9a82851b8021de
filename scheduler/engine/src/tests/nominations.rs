//! What a nomination holds while its victims leave, when it is withdrawn, and what becomes of the victims then.

use std::time::Duration;

use model::{Deletion, ObjectKind, Phase};

use super::World;
use super::preemption::bound;
use crate::nomination::VICTIMS_LATE_MAX;
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder, key};
use crate::{BindRefusal, BindRefusalCause, Event, Eviction, EvictionStep, Watched};

/// One Node of 4 CPUs, full of two Pods of priority 1, and a corridor of 100 Gbps that is free.
fn full() -> World {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    for name in ["a", "b"] {
        world.see(bound(name, "n0", 1).build());
    }
    world
}

/// Needs the whole Node and the whole corridor.
fn preemptor() -> PodBuilder {
    PodBuilder::new("p").cpu_milli(4000).priority(1000).needs("c1", Some(100))
}

/// The preemptor is nominated and its victims are announced.
fn announced(world: &mut World) -> Vec<Eviction> {
    world.see(preemptor().build());
    assert!(world.bind_all().is_empty());
    let (evictions, nominations) = world.steps();
    assert_eq!(nominations, [(key("p"), Some("n0".to_owned()))]);
    assert_eq!(evictions.len(), 2, "{evictions:?}");
    evictions
}

/// Its victims are deleted and leave, which takes time.
fn leaving(world: &mut World) {
    for eviction in announced(world) {
        world.step_done(&eviction);
    }
    let (deletions, _) = world.steps();
    assert!(deletions.iter().all(|it| it.step == EvictionStep::Delete), "{deletions:?}");
    for deletion in &deletions {
        world.step_done(deletion);
        let name = &deletion.victim.name;
        world.see(bound(name, "n0", 1).deletion(Deletion::TerminatingByPreemption).build());
    }
}

fn wanting(name: &str, gbps: u32) -> PodBuilder {
    PodBuilder::new(name).cpu_milli(100).needs("c1", Some(gbps))
}

#[test]
fn the_bandwidth_of_a_nominated_pod_is_not_given_to_a_lesser_one() {
    let mut world = full();
    world.handle(Event::seen(NodeBuilder::new("small").cpu_milli(1000).build()));
    leaving(&mut world);
    world.see(wanting("q", 10).build());
    assert!(world.bind_all().is_empty(), "the corridor was promised to a more important Pod");
    let message = world.message("q");
    assert!(message.contains("0 of 100 Gbps free, short by 10 Gbps"), "{message}");
    world.pass(Duration::from_secs(2));
    world.end("a");
    world.end("b");
    assert_eq!(world.bind_all(), ["p"]);
    world.end("p");
    assert_eq!(world.bind_all(), ["q"], "what is free again goes to the next in line");
}

#[test]
fn a_nomination_is_withdrawn_and_its_victims_are_spared_when_the_corridor_leaves_ready() {
    let mut world = full();
    let announced = announced(&mut world);
    world.step_done(&announced[0]);
    world.corridor(CorridorBuilder::new("c1", 100).phase(Phase::Degraded));
    world.step_done(&announced[1]);
    let (steps, nominations) = world.steps();
    let withdrawn: Vec<_> = steps.iter().filter(|it| it.step == EvictionStep::Withdraw).collect();
    assert_eq!(withdrawn.len(), 2, "nobody is deleted in vain: {steps:?}");
    assert_eq!(nominations, [(key("p"), None)], "and the API server is told");
}

#[test]
fn a_victim_that_could_not_be_deleted_is_told_that_it_stays() {
    let mut world = full();
    let announced = announced(&mut world);
    for eviction in &announced {
        world.step_done(eviction);
    }
    let (deletions, _) = world.steps();
    world.step_done(&deletions[0]);
    world.handle(Event::EvictionFailed { victim: deletions[1].uid.clone() });
    let (steps, nominations) = world.steps();
    let withdrawn =
        steps.iter().any(|it| it.uid == deletions[1].uid && it.step == EvictionStep::Withdraw);
    assert!(withdrawn, "{steps:?}");
    assert_eq!(nominations, [(key("p"), None)]);
}

#[test]
fn a_more_important_pod_takes_what_is_held_and_the_victims_are_spared() {
    let mut world = full();
    world.handle(Event::seen(NodeBuilder::new("small").cpu_milli(1000).build()));
    let announced = announced(&mut world);
    world.see(wanting("equal", 10).priority(1000).build());
    assert!(world.bind_all().is_empty(), "one as important waits");
    world.see(wanting("higher", 10).priority(1001).build());
    assert_eq!(world.bind_all(), ["higher", "equal"], "and what is left goes to the next");
    for eviction in &announced {
        world.step_done(eviction);
    }
    let (steps, nominations) = world.steps();
    assert!(steps.iter().all(|it| it.step == EvictionStep::Withdraw), "{steps:?}");
    assert_eq!(steps.len(), 2);
    assert!(nominations.contains(&(key("p"), None)), "{nominations:?}");
}

#[test]
fn a_bundle_that_only_one_may_have_is_held_for_the_nominated() {
    let mut world = full();
    world.handle(Event::seen(NodeBuilder::new("small").cpu_milli(1000).build()));
    world.corridor(CorridorBuilder::bundle("b1", 10).exclusive());
    world.see(preemptor().needs_bundle("b1", None).build());
    assert!(world.bind_all().is_empty());
    world.see(PodBuilder::new("q").needs_bundle("b1", None).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("q").contains("in use by team-a/p"), "{}", world.message("q"));
    world.see(PodBuilder::new("higher").priority(1001).needs_bundle("b1", None).build());
    assert_eq!(world.bind_all(), ["higher"]);
}

#[test]
fn victims_that_never_end_keep_nothing_from_others_for_ever() {
    let mut world = full();
    world.handle(Event::seen(NodeBuilder::new("small").cpu_milli(1000).build()));
    leaving(&mut world);
    world.see(wanting("q", 10).build());
    assert!(world.bind_all().is_empty());
    let due = world.engine.poll_timeout().unwrap();
    assert!(due <= world.now + Duration::from_mins(1), "something is due: the sweep, the daemons");
    let grace = Duration::from_secs(30);
    world.pass(grace + VICTIMS_LATE_MAX);
    world.handle(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, age: Duration::ZERO }));
    assert_eq!(
        world.bind_all(),
        ["q"],
        "what was held is free, and its Pod steps back for a moment"
    );
    let (steps, nominations) = world.steps();
    assert!(steps.is_empty(), "{steps:?}");
    assert!(nominations.contains(&(key("p"), None)), "{nominations:?}");
}

#[test]
fn a_nomination_lasts_as_long_as_its_victims_may_take() {
    let mut world = full();
    leaving(&mut world);
    world.see(wanting("q", 10).build());
    for _ in 0..11 {
        world.pass(Duration::from_secs(10));
        world.handle(Event::Seen(Watched::Backend {
            kind: ObjectKind::Corridor,
            age: Duration::ZERO,
        }));
        assert!(world.bind_all().is_empty());
    }
    world.end("a");
    world.end("b");
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_node_that_takes_no_more_pods_ends_the_nomination() {
    let mut world = full();
    let announced = announced(&mut world);
    let mut cordoned = NodeBuilder::new("n0").build();
    cordoned.node.unschedulable = true;
    world.handle(Event::seen(cordoned));
    for eviction in &announced {
        world.step_done(eviction);
    }
    let (steps, nominations) = world.steps();
    assert!(steps.iter().all(|it| it.step == EvictionStep::Withdraw), "{steps:?}");
    assert_eq!(nominations, [(key("p"), None)]);
    world.pass(Duration::from_secs(11));
    world.see(wanting("q", 10).build());
    assert_eq!(world.bind_all(), Vec::<String>::new());
    assert!(
        !world.message("q").contains("corridor"),
        "it lacks a Node only: {}",
        world.message("q")
    );
}

#[test]
fn a_victim_that_is_not_needed_any_more_is_spared() {
    let mut world = World::with_nodes(1);
    for name in ["a", "b", "c"] {
        world.see(bound(name, "n0", 1).cpu_milli(1000).build());
    }
    world.see(bound("d", "n0", 10).cpu_milli(1000).build());
    world.see(PodBuilder::new("p").cpu_milli(2000).priority(9).build());
    assert!(world.bind_all().is_empty());
    let (announced, _) = world.steps();
    assert_eq!(announced.len(), 2);
    world.end("d");
    for eviction in &announced {
        world.step_done(eviction);
    }
    let (steps, _) = world.steps();
    let of = |step| steps.iter().filter(|it| it.step == step).count();
    assert_eq!((of(EvictionStep::Delete), of(EvictionStep::Withdraw)), (1, 1), "{steps:?}");
}

#[test]
fn a_victim_that_another_needs_goes_though_the_first_does_not_need_it_any_more() {
    let mut world = World::with_nodes(1);
    world.see(bound("low", "n0", 0).cpu_milli(4000).build());
    world.see(PodBuilder::new("middle").cpu_milli(4000).priority(5).build());
    world.bind_all();
    let announced = world.one_eviction();
    world.see(PodBuilder::new("high").cpu_milli(4000).priority(9).build());
    world.bind_all();
    world.step_done(&announced);
    let deleted = world.one_eviction();
    assert_eq!((deleted.step, deleted.preemptor), (EvictionStep::Delete, key("high")));
}

#[test]
fn a_new_leader_keeps_the_former_nominations_or_withdraws_them() {
    for phase in [Phase::Ready, Phase::Degraded] {
        let mut world = full();
        world.handle(Event::seen(NodeBuilder::new("small").cpu_milli(1000).build()));
        world.corridor(CorridorBuilder::new("c1", 100).phase(phase));
        world.see(preemptor().nominated("n0").build());
        for name in ["a", "b"] {
            let leaving = bound(name, "n0", 1).deletion(Deletion::TerminatingByPreemption);
            world.see(leaving.build());
        }
        world.handle(Event::TermBegan);
        assert!(world.bind_all().is_empty());
        let (steps, nominations) = world.steps();
        assert!(steps.is_empty(), "{steps:?}");
        let is_kept = phase == Phase::Ready;
        let field = is_kept.then(|| "n0".to_owned());
        assert_eq!(nominations, [(key("p"), field)]);
        world.see(wanting("q", 10).build());
        assert!(world.bind_all().is_empty());
        assert_eq!(world.message("q").contains("held for team-a/p"), is_kept);
        world.pass(Duration::from_secs(11));
        world.end("a");
        world.end("b");
        let bound = if is_kept { vec!["p"] } else { vec![] };
        assert_eq!(world.bind_all(), bound);
    }
}

#[test]
fn a_nomination_is_reserved_again_when_the_binding_is_refused() {
    let mut world = full();
    world.handle(Event::seen(NodeBuilder::new("small").cpu_milli(1000).build()));
    leaving(&mut world);
    world.end("a");
    world.end("b");
    world.pass(Duration::from_secs(2));
    let binds = world.decide();
    assert_eq!(binds.len(), 1);
    world.see(wanting("q", 10).build());
    let refusal = BindRefusal { cause: BindRefusalCause::Conflict, message: "conflict".into() };
    world.handle(Event::BindRefused { pod: binds[0].uid.clone(), refusal });
    assert!(world.bind_all().is_empty(), "nobody overtakes it meanwhile");
    world.pass(Duration::from_secs(2));
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_deletion_is_asked_for_again_each_time_and_given_up_at_last() {
    let mut world = full();
    for eviction in announced(&mut world) {
        world.step_done(&eviction);
    }
    let (deletions, _) = world.steps();
    let victim = deletions[0].uid.clone();
    for _ in 0..2 {
        world.handle(Event::EvictionDelayed { victim: victim.clone() });
        assert!(world.steps().0.is_empty(), "not at once");
        world.pass(Duration::from_millis(500));
        world.decide();
        assert_eq!(world.one_eviction().step, EvictionStep::Delete);
    }
    world.handle(Event::EvictionDelayed { victim: victim.clone() });
    assert_eq!(world.one_eviction().step, EvictionStep::Withdraw);
    world.handle(Event::EvictionFailed { victim: victim.clone() });
    assert!(world.steps().0.is_empty());
    world.pass(Duration::from_secs(30));
    world.decide();
    let (steps, _) = world.steps();
    let told_again = steps.iter().any(|it| it.uid == victim && it.step == EvictionStep::Withdraw);
    assert!(told_again, "what could not be written is written later: {steps:?}");
}

#[test]
fn a_step_that_is_put_off_comes_again_and_counts_as_no_try() {
    let mut world = full();
    let steps = announced(&mut world);
    let [first, second] = steps.as_slice() else { panic!("two victims: {steps:?}") };
    world.step_done(second);
    assert_eq!(world.one_eviction().step, EvictionStep::Delete, "of the other, who need not wait");
    world.step_done(first);
    let deletion = world.one_eviction();
    for _ in 0..5 {
        world.handle(Event::EvictionPutOff { victim: deletion.uid.clone() });
        assert!(world.steps().0.is_empty(), "not at once");
        world.pass(Duration::from_secs(1));
        world.decide();
        assert_eq!(world.one_eviction(), deletion);
    }
    world.handle(Event::EvictionDelayed { victim: deletion.uid.clone() });
    world.pass(Duration::from_millis(500));
    world.decide();
    assert_eq!(world.one_eviction(), deletion, "the second try of three");
}

#[test]
fn a_new_leader_carries_on_with_announced_victims_and_withdraws_the_other_announcements() {
    let mut world = full();
    for name in ["c", "d"] {
        world.see(bound(name, "n1", 1).announced().build());
    }
    world.see(bound("a", "n0", 1).announced().build());
    world.see(bound("b", "n0", 1).deletion(Deletion::TerminatingByPreemption).build());
    world.see(preemptor().nominated("n0").build());
    world.handle(Event::TermBegan);
    assert!(world.bind_all().is_empty());
    let (steps, nominations) = world.steps();
    let of = |step| {
        let of = steps.iter().filter(|it| it.step == step);
        of.map(|it| it.victim.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of(EvictionStep::Announce), ["a"], "{steps:?}");
    assert_eq!(of(EvictionStep::Withdraw), ["c", "d"], "{steps:?}");
    assert_eq!(nominations, [(key("p"), Some("n0".to_owned()))]);
}

#[test]
fn no_victim_goes_for_a_pod_that_is_not_more_important() {
    let mut world = full();
    let announced = announced(&mut world);
    world.see(bound("a", "n0", 1000).build());
    for eviction in &announced {
        world.step_done(eviction);
    }
    let (steps, nominations) = world.steps();
    assert!(steps.iter().all(|it| it.step == EvictionStep::Withdraw), "{steps:?}");
    assert_eq!(nominations, [(key("p"), None)]);
}
