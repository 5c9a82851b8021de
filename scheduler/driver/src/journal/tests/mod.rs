//! A journal of a chaotic run, carried out again.

mod alarms;
mod chaos;
mod twin;
mod twin_cost;

use std::collections::BTreeSet;
use std::io::Read as _;

use engine::{Engine, EngineConfig, Event, WatchedKind};
use flate2::bufread::MultiGzDecoder;
use model::{Assignment, Instant, PodUid};
use tokio::sync::oneshot;

use self::chaos::{Chaos, SECRET};
use super::keeper::Settings;
use super::lines::FORMAT;
use super::{Recorded, ReplayError, Replayed, replay};

fn unpacked(journal: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(journal).read_to_string(&mut text).unwrap();
    text
}

fn identical(journal: &[u8]) -> Replayed {
    let replayed = replay(journal, u64::MAX).unwrap();
    assert_eq!(replayed.divergence, None);
    replayed
}

#[test]
fn a_chaotic_run_replays_to_identical_decisions() {
    let mut chaos = Chaos::new(Settings::default());
    for number in 0..700 {
        chaos.step(number);
    }
    let journal = chaos.journal();
    let replayed = identical(&journal);
    assert_eq!(replayed.binds, chaos.bound);
    let Replayed { binds, held, evictions, .. } = replayed;
    println!("{binds} bound, {held} held, {evictions} steps of evictions, {} bytes", journal.len());
    assert!(binds > 200 && held > 50 && evictions > 5, "{binds} {held} {evictions}");
    assert_eq!(replayed.engine.stats(), chaos.engine.stats());
    let now = serde_json::to_string(&chaos.engine.snapshot()).unwrap();
    assert_eq!(serde_json::to_string(&replayed.engine.snapshot()).unwrap(), now);
    assert!(!unpacked(&journal).contains(SECRET), "what is nobody's business is not written");
    // It is the same without compression, to look at it or to change it.
    identical(unpacked(&journal).as_bytes());
}

#[test]
fn old_segments_go_and_what_is_left_is_whole() {
    let segment_bytes_max = 10_000;
    let mut chaos = Chaos::new(Settings { segment_bytes_max, ..Settings::default() });
    let (mut longest, mut starts) = (0, BTreeSet::new());
    for number in 0..600 {
        chaos.step(number);
        if number % 20 == 19 {
            // Asking waits for the keeper, too, as a busy loop would not.
            let journal = chaos.journal();
            longest = longest.max(journal.len());
            starts.insert(unpacked(&journal).lines().next().unwrap().to_owned());
        }
        if number % 200 == 199 {
            let journal = chaos.journal();
            identical(&journal);
            assert!(journal.len() > segment_bytes_max, "no whole segment is left");
        }
    }
    assert!(starts.len() >= 4, "no segment went: {starts:?}");
    assert!(longest < 12 * segment_bytes_max, "{longest} bytes");
}

#[test]
fn a_decision_that_was_changed_is_found() {
    let mut chaos = Chaos::new(Settings::default());
    for number in 0..200 {
        chaos.step(number);
    }
    let text = unpacked(&chaos.journal());
    let is_bind = |line: &&str| line.contains("\"Bind\"");
    let (number, bind) = text.lines().enumerate().filter(|(_, line)| is_bind(line)).nth(5).unwrap();
    let node = bind.split("\"node\":\"").nth(1).unwrap().split('"').next().unwrap();
    let changed = bind.replace(&format!("\"node\":\"{node}\""), "\"node\":\"elsewhere\"");
    let tampered = text.replace(bind, &changed);
    let replayed = replay(tampered.as_bytes(), u64::MAX).unwrap();
    let divergence = replayed.divergence.unwrap();
    // Two lines come before the first call.
    assert_eq!(divergence.call, number as u64 - 1);
    assert!(divergence.recorded.contains("elsewhere"), "{divergence}");
    assert!(divergence.came_out.contains(node), "{divergence}");
    let before = replay(tampered.as_bytes(), divergence.call - 1).unwrap();
    assert_eq!((before.divergence, before.calls), (None, divergence.call - 1));
}

#[test]
fn what_is_no_whole_journal_is_refused_with_the_reason() {
    let mut chaos = Chaos::new(Settings::default());
    for number in 0..20 {
        chaos.step(number);
    }
    let journal = chaos.journal();
    let text = unpacked(&journal);
    let why = |text: &[u8]| replay(text, u64::MAX).unwrap_err().to_string();
    let without_end = text.rsplit_once("{\"end\"").unwrap().0;
    let without_a_call: Vec<&str> =
        text.lines().enumerate().filter(|(number, _)| *number != 9).map(|(_, it)| it).collect();
    let cases = [
        (why(&journal[..journal.len() / 2]), "cut off or damaged"),
        (why(without_end.as_bytes()), "its last line is missing"),
        (why(b"apiVersion: v1\n"), "is not a journal"),
        (why(b""), "is not a journal"),
        (why(b"{}"), "is not a journal"),
        (
            why(text.replacen(&format!("\"journal\":{FORMAT}"), "\"journal\":9", 1).as_bytes()),
            "format 9",
        ),
        (why(text.replacen("\"version\":\"", "\"version\":\"9", 1).as_bytes()), "use 9"),
        (why(text.replacen("\"call\"", "\"cal\"", 1).as_bytes()), "line 3 makes no sense"),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
    let shorter = replay(without_a_call.join("\n").as_bytes(), u64::MAX);
    assert!(
        matches!(&shorter, Err(ReplayError::Malformed { .. }))
            || shorter.is_ok_and(|it| it.divergence.is_some()),
        "a call is missing, and nobody noticed"
    );
}

#[test]
fn nothing_is_written_before_everything_was_listed() {
    let mut engine = Recorded::new(Engine::new(EngineConfig::default()), Settings::default());
    engine.handle(Instant::START, Event::Synced(WatchedKind::Nodes));
    let (to, dump) = oneshot::channel();
    engine.dump(to);
    assert!(dump.blocking_recv().unwrap().is_empty());
}

/// Design: a kilobyte for each Pod, for everything. Two snapshots take a small part of it.
#[test]
fn a_snapshot_takes_some_tens_of_bytes_for_each_pod() {
    const PODS: u64 = 3_000;
    let mut chaos = Chaos::new(Settings::default());
    let before = chaos.journal().len();
    chaos.engine = Recorded::new(Engine::new(EngineConfig::default()), Settings::default());
    for number in 0..PODS {
        let mut pod = chaos.pod(number);
        // As random as the API server makes them.
        let (high, low) = (chaos.below(1 << 31), chaos.below(1 << 31));
        pod.uid = PodUid::new(&format!("{high:08x}-{:04x}-4000-{low:012x}", number * 7 % 65_521));
        let node = format!("n{}", number % 50).as_str().into();
        pod.assignment = Assignment::Bound { node, grant: None };
        chaos.handle(Event::seen(pod));
    }
    for kind in WatchedKind::ALL {
        chaos.handle(Event::Synced(kind));
    }
    let per_pod = (chaos.journal().len() - before) / usize::try_from(PODS).unwrap();
    println!("{per_pod} bytes for each Pod");
    assert!(per_pod < 100, "{per_pod} bytes for each Pod");
}
