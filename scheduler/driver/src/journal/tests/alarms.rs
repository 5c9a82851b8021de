//! What goes wrong is written down.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Event, Poll, Report};
use model::{Amount, Assignment, Grant, Granted, PodUid};
use serde_json::{Value, json};

use super::chaos::{Chaos, WORK};
use super::identical;
use crate::journal::keeper::Settings;
use crate::journal::{Recorded, Replayed};

/// An engine whose memory was spoiled: as a fault of ours would leave it.
fn spoiled(chaos: &Chaos, spoil: impl FnOnce(&mut Value)) -> Engine {
    let mut snapshot = serde_json::to_value(chaos.engine.snapshot()).unwrap();
    spoil(&mut snapshot);
    Engine::restore(serde_json::from_value(snapshot).unwrap())
}

/// The only file in the folder, once it is whole: why it was written, and what it shows.
fn written_in(folder: &Path) -> (String, Replayed) {
    loop {
        let written: Vec<_> = std::fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
        let names = written.iter().map(|file| file.file_name().to_string_lossy().into_owned());
        match names.collect::<Vec<_>>().as_slice() {
            [name] if name != "unfinished" => {
                return (name.clone(), identical(&std::fs::read(folder.join(name)).unwrap()));
            }
            [] | [_] => std::thread::yield_now(),
            several => panic!("{several:?}"),
        }
    }
}

/// Two Pods that were granted more than can be counted: the sum is wrong when both are gone. No annotation
/// says so much; see `translate::grant`.
fn break_the_ledger(chaos: &mut Chaos) {
    for number in [1, 2] {
        let mut pod = chaos.pod(1_000_000 + number);
        let granted = Granted { uid: "corridor-uid".into(), amount: Amount::MAX };
        let grant = Some(Box::new(Grant { corridor: Some(granted), bundle: None }));
        pod.assignment = Assignment::Bound { node: "n1".into(), grant };
        chaos.handle(Event::seen(pod));
    }
    for number in [1, 2] {
        chaos.handle(Event::gone(PodUid::new(&format!("uid-{}", 1_000_000 + number))));
    }
}

#[test]
fn a_failure_of_the_engine_writes_a_journal_that_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut chaos = Chaos::new(Settings::default());
    let engine = spoiled(&chaos, |_| ());
    chaos.engine = Recorded::new(engine, Settings::default());
    chaos.engine.keep_files_in(folder.path().to_owned());
    for number in 0..100 {
        chaos.step(number);
    }
    break_the_ledger(&mut chaos);
    for number in 100..200 {
        chaos.step(number);
    }
    let journal = chaos.journal();
    let (name, replayed) = written_in(folder.path());
    assert!(name.ends_with("-quarantine.jsonl.gz"), "{name}");
    assert_eq!(replayed.failures, 1);
    assert!(identical(&journal).calls > replayed.calls, "life went on");
}

/// A count that is too low is noticed where sums are checked: in debug builds.
#[cfg(debug_assertions)]
#[test]
fn a_pod_on_which_the_engine_fails_is_set_aside_in_a_replay_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut chaos = Chaos::new(Settings::default());
    let pod = chaos.pod(1);
    chaos.handle(Event::seen(pod));
    let engine = spoiled(&chaos, |snapshot| snapshot["stats"]["active"] = json!(0));
    chaos.engine = Recorded::new(engine, Settings::default());
    chaos.engine.keep_files_in(folder.path().to_owned());
    chaos.backends_speak();
    assert_eq!(chaos.engine.poll(chaos.now, WORK), Poll::Yield);
    assert_eq!(chaos.engine.stats().quarantined, 1);
    let report = chaos.engine.poll_report();
    assert!(
        matches!(&report, Some(Report::Unschedulable(it)) if it.message.contains("set it aside"))
    );
    let journal = chaos.journal();
    let (name, replayed) = written_in(folder.path());
    assert!(name.ends_with("-quarantine.jsonl.gz"), "{name}");
    assert_eq!((replayed.failures, replayed.engine.stats().quarantined), (1, 1));
    assert_eq!(identical(&journal).held, 1);
}

#[test]
fn a_wake_up_that_was_lost_writes_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let mut chaos = Chaos::new(Settings::default());
    let mut pod = chaos.pod(1);
    Arc::make_mut(&mut pod.spec).needs.clear();
    Arc::make_mut(&mut Arc::make_mut(&mut pod.spec).scheduling).requests.asked.cpu_milli =
        1_000_000;
    chaos.handle(Event::seen(pod));
    chaos.decide();
    let engine = spoiled(&chaos, |snapshot| {
        snapshot["nodes"][0]["node"]["allocatable"]["cpu_milli"] = json!(2_000_000);
    });
    chaos.engine = Recorded::new(engine, Settings::default());
    chaos.engine.keep_files_in(folder.path().to_owned());
    chaos.backends_speak();
    chaos.now = chaos.now + Duration::from_mins(2);
    chaos.decide();
    assert_eq!(chaos.engine.stats().woken_by_sweep, 1);
    chaos.journal();
    let (name, replayed) = written_in(folder.path());
    assert!(name.ends_with("-lost-wake-up.jsonl.gz"), "{name}");
    assert_eq!(replayed.engine.stats().woken_by_sweep, 1);
}

/// A named pipe that is not read from stands for a folder whose server is gone: to open a file there takes for ever.
#[test]
fn a_folder_that_hangs_costs_its_files_and_neither_decisions_nor_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("unfinished");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut chaos = Chaos::new(Settings::default());
    let engine = spoiled(&chaos, |_| ());
    chaos.engine = Recorded::new(engine, Settings::default());
    chaos.engine.keep_files_in(folder.path().to_owned());
    chaos.step(0);
    break_the_ledger(&mut chaos);
    // More entries than may be on their way to the keeper at once.
    for _ in 0..10_000 {
        chaos.backends_speak();
    }
    let before = chaos.bound;
    for number in 1..100 {
        chaos.step(number);
    }
    assert!(chaos.bound > before, "nothing was decided");
    let journal = chaos.journal();
    assert!(identical(&journal).calls > 0, "the journal can be asked for");
    // The pipe is read: the writer goes on.
    std::fs::read(&pipe).unwrap();
}
