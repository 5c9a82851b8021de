use std::time::Duration;

use model::{ObjectKind, Phase};

use super::World;
use crate::testkit::{CorridorBuilder, PodBuilder};
use crate::{Event, Report, Watched};

#[test]
fn a_held_pod_is_reported_once_while_only_figures_move() {
    let mut world = World::with_nodes(1);
    let degraded = |gbps| CorridorBuilder::new("c1", 100).achievable(gbps).phase(Phase::Degraded);
    world.corridor(degraded(40.0));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    world.bind_all();
    assert_eq!(world.held_reports().len(), 1);
    // At or above the floor, too: it is Degraded all the same.
    for gbps in [41.0, 99.9, 100.1, 99.9, 39.0] {
        world.corridor(degraded(gbps));
        world.bind_all();
        assert_eq!(world.held_reports(), [], "at {gbps} Gbps");
    }
}

#[test]
fn a_new_cause_is_reported_at_most_four_times_at_once_then_every_thirty_seconds() {
    let mut world = World::with_nodes(1);
    let phases = [Phase::Degraded, Phase::Failed];
    world.corridor(CorridorBuilder::new("c1", 100).achievable(1.0).phase(phases[0]));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    world.bind_all();
    let mut reports = world.held_reports().len();
    for turn in 0..10 {
        let phase = phases[(turn + 1) % 2];
        world.corridor(CorridorBuilder::new("c1", 100).achievable(1.0).phase(phase));
        reports += world.held_reports().len();
    }
    assert_eq!(reports, 4);
    let due = world.engine.poll_timeout().unwrap();
    assert!(due <= world.now + Duration::from_secs(30));
    world.pass(Duration::from_secs(30));
    world.handle(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, age: Duration::ZERO }));
    let late = world.held_reports();
    assert!(late.len() <= 1, "{late:?}");
}

#[test]
fn a_restarted_scheduler_does_not_repeat_what_the_pod_already_says() {
    let mut world = World::with_nodes(1);
    let mut pod = PodBuilder::new("p").cpu_milli(9000).build();
    let says = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes \
                are available: 1 Preemption is not helpful for scheduling.";
    pod.condition_message = Some(says.into());
    world.see(pod);
    world.bind_all();
    assert!(world.held_reports().is_empty());
}

#[test]
fn corrd_falling_silent_is_reported_on_waiting_pods() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100));
    world.see(PodBuilder::new("holder").needs("c1", Some(100)).build());
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    world.bind_all();
    world.held_reports();
    let due = world.engine.poll_timeout().unwrap();
    world.now = due;
    world.bind_all();
    let reports = world.held_reports();
    assert!(reports[0].1.contains("corrd has not reported"), "{reports:?}");
}

#[test]
fn a_bound_pod_is_reported_as_scheduled() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").build());
    world.bind_all();
    assert!(matches!(world.engine.poll_report(), Some(Report::Scheduled { .. })));
    assert_eq!(world.engine.poll_report(), None);
}

#[test]
fn a_report_that_could_not_be_written_is_told_again() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("p").cpu_milli(9000).build());
    world.bind_all();
    assert_eq!(world.held_reports().len(), 1);
    world.handle(Event::ReportLost("uid-p".into()));
    assert_eq!(world.held_reports().len(), 1);
    assert_eq!(world.held_reports().len(), 0);
}

#[test]
fn held_and_bound_pods_are_told_in_turn() {
    let mut world = World::with_nodes(1);
    for number in 0..3 {
        world.see(PodBuilder::new(&format!("fits{number}")).build());
        world.see(PodBuilder::new(&format!("big{number}")).cpu_milli(9000).build());
    }
    world.bind_all();
    let mut kinds = Vec::new();
    while let Some(report) = world.engine.poll_report() {
        kinds.push(matches!(report, Report::Unschedulable(_)));
    }
    assert_eq!(kinds, [false, true, false, true, false, true]);
}

#[test]
fn a_pod_is_not_decided_while_a_report_on_it_is_being_written() {
    let mut world = World::with_nodes(1);
    world.corridor(CorridorBuilder::new("c1", 100).achievable(0.0));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    world.bind_all();
    let Some(Report::Unschedulable(it)) = world.engine.poll_report() else { panic!("no report") };
    world.corridor(CorridorBuilder::new("c1", 100));
    assert!(world.decide().is_empty(), "its version is about to change");
    let mut written = PodBuilder::new("p").needs("c1", Some(10)).build();
    written.resource_version = "9".into();
    written.condition_message = Some(it.message);
    world.see(written);
    world.handle(Event::ReportWritten(it.uid));
    assert_eq!(world.decide()[0].resource_version.as_deref(), Some("9"));
}

#[test]
fn one_report_at_a_time_and_the_latest_is_not_forgotten() {
    let mut world = World::with_nodes(1);
    let phase = |phase| CorridorBuilder::new("c1", 100).achievable(0.0).phase(phase);
    world.corridor(phase(Phase::Degraded));
    world.see(PodBuilder::new("p").needs("c1", Some(10)).build());
    world.bind_all();
    let Some(Report::Unschedulable(it)) = world.engine.poll_report() else { panic!("no report") };
    world.corridor(phase(Phase::Failed));
    assert_eq!(world.engine.poll_report(), None);
    world.handle(Event::ReportWritten(it.uid));
    let late = world.held_reports();
    assert!(late[0].1.contains("(Failed)"), "{late:?}");
}

#[test]
fn what_a_full_queue_drops_is_counted_and_what_waits_in_it_is_told() {
    let mut world = World::with_nodes(1);
    world.engine.config.events.waiting_max = 2;
    for number in 0..5 {
        world.see(PodBuilder::new(&format!("p{number}")).build());
    }
    assert_eq!(world.bind_all().len(), 5, "and everybody is bound all the same");
    let mut told = 0;
    while world.poll_report().is_some() {
        told += 1;
    }
    assert_eq!((told, world.engine.stats().reports_dropped), (2, 3));
}

#[test]
fn a_report_that_is_put_off_is_neither_lost_nor_counted_as_told() {
    let mut world = World::with_nodes(1);
    world.see(PodBuilder::new("fits").build());
    world.bind_all();
    world.see(PodBuilder::new("vast").cpu_milli(64_000).build());
    world.decide();
    for _ in 0..6 {
        let mut put_off = Vec::new();
        while let Some(report) = world.poll_report() {
            put_off.push(report);
        }
        assert_eq!(put_off.len(), 2, "{put_off:?}");
        for report in put_off {
            world.handle(Event::ReportPutOff(Box::new(report)));
        }
        assert!(world.poll_report().is_none(), "not before its time");
        assert!(world.engine.poll_timeout().is_some());
        world.pass(Duration::from_secs(5));
        world.decide();
    }
    assert_eq!(world.held_reports().len(), 1);
}
