use std::time::Duration;

use model::{Amount, Assignment};

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder, corridor, key};
use crate::{BindRefusal, BindRefusalCause, Event};

fn refused_with(pod: &str, cause: BindRefusalCause, message: &str) -> Event {
    let refusal = BindRefusal { cause, message: message.into() };
    Event::BindRefused { pod: format!("uid-{pod}").as_str().into(), refusal }
}

fn refused(pod: &str) -> Event {
    let refusal = BindRefusal { cause: BindRefusalCause::Conflict, message: "conflict".into() };
    Event::BindRefused { pod: format!("uid-{pod}").as_str().into(), refusal }
}

#[test]
fn a_refused_binding_gives_back_everything_and_is_tried_again() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("p").needs("c1", Some(100)).cpu_milli(4000).build());
    assert_eq!(world.decide().len(), 1);
    world.handle(refused("p"));
    assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::ZERO));
    assert!(world.decide().is_empty(), "back-off after an error");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn an_unclear_outcome_keeps_its_reservation() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").cpu_milli(4000).build());
    world.decide();
    world.handle(Event::BindUnclear("uid-p".into()));
    world.see(PodBuilder::new("other").cpu_milli(4000).build());
    assert!(world.decide().is_empty());
    world.pass(Duration::from_hours(24));
    assert!(world.decide().is_empty(), "no assumption expires on a timer");
    world.handle(refused("p"));
    assert_eq!(world.decide()[0].pod.name.as_ref(), "other");
}

#[test]
fn an_older_sight_of_a_bound_pod_does_not_place_it_twice() {
    let mut world = World::with_nodes(2);
    let pod = || PodBuilder::new("p");
    world.see(pod().build());
    assert_eq!(world.bind_all(), ["p"]);
    world.see(pod().build());
    world.see(pod().assigned(Assignment::Leaving).build());
    assert!(world.bind_all().is_empty());
}

#[test]
fn the_watch_may_be_faster_than_the_reply() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").cpu_milli(3000).build());
    world.decide();
    let bound = Assignment::Bound { node: "n0".into(), grant: None };
    world.see(PodBuilder::new("p").cpu_milli(3000).assigned(bound).build());
    world.handle(Event::BindDone("uid-p".into()));
    world.see(PodBuilder::new("q").cpu_milli(2000).build());
    assert!(world.bind_all().is_empty(), "counted once and still counted");
    world.end("p");
    world.pass(Duration::from_secs(2));
    assert_eq!(world.bind_all(), ["q"]);
    assert_eq!(world.engine.stats().bound, 1);
}

#[test]
fn what_was_decided_is_granted_whatever_the_pod_says_before_the_reply() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("p").needs("c1", Some(60)).build());
    world.decide();
    let bound = Assignment::Bound { node: "n0".into(), grant: None };
    world.see(PodBuilder::new("p").assigned(bound).build());
    world.handle(Event::BindDone("uid-p".into()));
    assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::from_whole(60)));
}

#[test]
fn a_pod_deleted_while_it_is_bound_frees_its_room() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").cpu_milli(4000).build());
    world.decide();
    world.end("p");
    world.handle(Event::BindDone("uid-p".into()));
    world.see(PodBuilder::new("q").cpu_milli(4000).build());
    assert_eq!(world.bind_all(), ["q"]);
}

#[test]
fn a_pod_bound_elsewhere_by_another_counts_there() {
    let mut world = World::with_nodes(2);
    world.see(PodBuilder::new("p").cpu_milli(4000).build());
    let ours = world.decide().remove(0).node;
    let theirs = if ours.as_str() == "n0" { "n1" } else { "n0" };
    let bound = Assignment::Bound { node: theirs.into(), grant: None };
    world.see(PodBuilder::new("p").cpu_milli(4000).assigned(bound).build());
    world.handle(refused("p"));
    world.see(PodBuilder::new("q").cpu_milli(4000).build());
    assert_eq!(world.decide()[0].node, ours);
}

#[test]
fn after_a_panic_one_pod_is_set_aside_and_the_others_go_on() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("bound").needs("c1", Some(60)).cpu_milli(1000).build());
    world.bind_all();
    world.see(PodBuilder::new("waits").needs("c1", Some(80)).build());
    world.bind_all();
    world.see(PodBuilder::new("poison").build());
    world.see(PodBuilder::new("healthy").build());
    // As a panic in the middle of its attempt leaves it.
    world.engine.queues.active.pop();
    world.engine.trying = Some("uid-poison".into());
    assert_eq!(world.engine.recover().unwrap().as_str(), "uid-poison");
    assert_eq!(world.bind_all(), ["healthy"]);
    assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::from_whole(60)));
    let reports = world.held_reports();
    assert!(
        reports.iter().any(|(pod, text)| &*pod.name == "poison" && text.contains("set it aside"))
    );
    world.end("bound");
    assert_eq!(world.bind_all(), ["waits"]);
}

#[test]
fn what_a_failed_attempt_took_is_put_back() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("poison").needs("c1", Some(60)).build());
    // As a panic after the reservation leaves it: this Binding will never be sent.
    world.decide();
    world.engine.trying = Some("uid-poison".into());
    world.engine.recover();
    assert_eq!(world.engine.reserved(&corridor("c1")), Some(Amount::ZERO));
}

#[test]
fn a_binding_that_is_refused_says_so_on_the_pod_in_the_api_servers_words() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").build());
    world.decide();
    world.handle(refused_with("p", BindRefusalCause::ApiServer, "bindings are frozen"));
    let told =
        "binding rejected: the API server did not bind the Pod to node n0: bindings are frozen";
    let reports = world.held_reports();
    assert_eq!(reports, [(key("p"), told.to_owned())]);
    assert_eq!(world.message("p"), told);
    world.pass(Duration::from_secs(1));
    world.decide();
    world.handle(refused_with("p", BindRefusalCause::ApiServer, "bindings are frozen"));
    assert_eq!(world.held_reports(), [], "it has said so");
    world.pass(Duration::from_secs(2));
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_conflict_is_told_when_it_comes_again_and_what_is_obsolete_never() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").build());
    for (cause, told) in [
        (BindRefusalCause::Conflict, 0),
        (BindRefusalCause::Obsolete, 0),
        (BindRefusalCause::Conflict, 1),
    ] {
        assert_eq!(world.decide().len(), 1);
        world.handle(refused_with("p", cause, "the Pod has changed"));
        assert_eq!(world.held_reports().len(), told, "{cause:?}");
        world.pass(Duration::from_secs(10));
    }
}

#[test]
fn while_the_bindings_of_a_namespace_fail_only_two_of_its_pods_are_tried_at_a_time() {
    let mut world = World::with_nodes(4);
    let of = |key: &str| PodBuilder::new(key).build();
    world.see(of("first"));
    world.decide();
    world.handle(Event::BindUnclear("uid-first".into()));
    for number in 0..5 {
        world.see(of(&format!("a{number}")));
    }
    world.see(of("team-b/other"));
    let decided = |world: &mut World| -> Vec<String> {
        world.decide().iter().map(|bind| bind.pod.name.to_string()).collect()
    };
    assert_eq!(decided(&mut world), ["a0", "other"]);
    let waiting = world.engine.explain(&key("a3")).unwrap();
    assert!(waiting.message.contains("2 Bindings there have no outcome yet"), "{waiting:?}");
    world.handle(refused("first"));
    assert_eq!(decided(&mut world), ["a1"]);
    world.handle(Event::BindDone("uid-a0".into()));
    assert_eq!(decided(&mut world), ["a2", "a3", "a4"], "one has succeeded");
}

#[test]
fn pods_that_were_put_off_are_tried_though_those_before_them_fit_nowhere() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("first").build());
    world.decide();
    world.handle(Event::BindUnclear("uid-first".into()));
    world.see(PodBuilder::new("second").build());
    world.decide();
    for number in 0..4 {
        world.see(PodBuilder::new(&format!("vast-{number}")).cpu_milli(64_000).build());
    }
    world.see(PodBuilder::new("small").build());
    assert_eq!(world.decide(), []);
    world.handle(refused("first"));
    assert_eq!(world.decide().len(), 1, "the small one, behind four that do not fit");
}
