//! The twin answers as the engine would, or not at all.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use jiff::Timestamp;
use model::ObjectKey;
use tokio::sync::oneshot;

use super::chaos::Chaos;
use crate::journal::asking::AnsweredBy;
use crate::journal::call::Outcome;
use crate::journal::keeper::Settings;
use crate::journal::replay;
use crate::journal::twin::{FEED_MAX, IDLE_MAX, Stage};
use crate::questions::{Asked, QuestionError, Reply, WAITING_MAX};

type Answer<A> = oneshot::Receiver<Result<Option<A>, QuestionError>>;

const AT: Timestamp = Timestamp::UNIX_EPOCH;
/// When everything happens that says nothing else: a machine that stands still for minutes ends no twin.
static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

fn ask<A>(chaos: &mut Chaos, asked: impl FnOnce(Reply<A>) -> Asked) -> (AnsweredBy, Answer<A>) {
    let (reply, answer) = oneshot::channel();
    (chaos.engine.ask(asked(reply), *NOW, AT), answer)
}

/// What the engine itself answers.
fn direct<A>(
    chaos: &Chaos,
    asked: impl FnOnce(Reply<A>) -> Asked,
) -> Result<Option<A>, QuestionError> {
    let (reply, answer) = oneshot::channel();
    asked(reply).answer(&chaos.engine, AT);
    answer.blocking_recv().unwrap()
}

/// Who answered, after it was compared with what the engine answers.
fn same<A: PartialEq + std::fmt::Debug>(
    chaos: &mut Chaos,
    asked: impl Fn(Reply<A>) -> Asked,
) -> AnsweredBy {
    let expected = direct(chaos, &asked);
    let (by, answer) = ask(chaos, &asked);
    assert_eq!(answer.blocking_recv().unwrap(), expected);
    by
}

/// One question of each kind, about Pods of which some are gone. How many of them the twin answered.
fn questions(chaos: &mut Chaos, pods: u64) -> usize {
    let pod = ObjectKey::new("a", &format!("p{}", chaos.below(pods)));
    let spec = chaos.pod(1_000_000).spec;
    let by = [
        same(chaos, |reply| Asked::Explain(pod.clone(), reply)),
        same(chaos, |reply| Asked::When(pod.clone(), reply)),
        same(chaos, |reply| Asked::WhatIf(Box::new(model::PodSpec::clone(&spec)), reply)),
    ];
    by.into_iter().filter(|by| *by == AnsweredBy::Twin).count()
}

fn explain(reply: Reply<api::Explanation>) -> Asked {
    Asked::Explain(ObjectKey::new("a", "p1"), reply)
}

/// Asks until the twin answers.
fn with_twin(chaos: &mut Chaos) {
    while same(chaos, explain) != AnsweredBy::Twin {
        // While the keeper is busy there is none: the next question starts it.
        assert!(!chaos.engine.asking.is_put_off, "the twin has ended");
        std::thread::yield_now();
    }
}

/// A question that keeps the twin busy: it has begun when this returns.
fn keep_busy(chaos: &mut Chaos) -> (SyncSender<()>, Answer<()>) {
    let (end, until) = sync_channel(0);
    let (by, answer) = ask(chaos, |reply| Asked::Slow(until, reply));
    assert_eq!(by, AnsweredBy::Twin);
    end.send(()).unwrap();
    (end, answer)
}

fn small_segments() -> Settings {
    Settings { segment_bytes_max: 10_000, ..Settings::default() }
}

#[test]
fn the_twin_answers_as_the_engine_does_in_random_histories() {
    for seed in 0..6 {
        let mut chaos = Chaos::seeded(Settings::default(), seed);
        for number in 0..60 {
            // It is built meanwhile.
            chaos.step(number);
            questions(&mut chaos, number + 2);
        }
        with_twin(&mut chaos);
        let mut by_twin = 0;
        for number in 60..200 {
            chaos.step(number);
            by_twin += questions(&mut chaos, number);
        }
        assert_eq!(by_twin, 3 * 140, "with seed {seed}");
        assert_eq!(chaos.engine.twin_divergences(), 0, "with seed {seed}");
    }
}

#[test]
fn a_twin_that_starts_in_the_middle_of_a_segment_knows_everything_before() {
    let mut chaos = Chaos::new(Settings::default());
    for number in 0..500 {
        chaos.step(number);
    }
    with_twin(&mut chaos);
    for number in 0..500 {
        let pod = ObjectKey::new("a", &format!("p{number}"));
        let by = same(&mut chaos, |reply| Asked::Explain(pod.clone(), reply));
        assert_eq!(by, AnsweredBy::Twin);
    }
}

#[test]
fn a_twin_lives_on_when_a_segment_begins() {
    let mut chaos = Chaos::new(small_segments());
    chaos.step(0);
    with_twin(&mut chaos);
    let first = chaos.engine.asking.twin.as_ref().unwrap().shared.clone();
    let start =
        |chaos: &mut Chaos| super::unpacked(&chaos.journal()).lines().next().unwrap().to_owned();
    let began = start(&mut chaos);
    for number in 1..600 {
        chaos.step(number);
        if number % 20 == 0 {
            // Waits for the keeper, as a busy loop would not.
            chaos.journal();
            assert_eq!(questions(&mut chaos, number), 3);
        }
    }
    assert_ne!(start(&mut chaos), began, "no segment went");
    assert!(Arc::ptr_eq(&first, &chaos.engine.asking.twin.as_ref().unwrap().shared));
}

#[test]
fn what_the_twin_reads_does_not_make_the_journal_larger() {
    let lengths = [false, true].map(|asks| {
        let mut chaos = Chaos::new(Settings::default());
        chaos.step(0);
        if asks {
            with_twin(&mut chaos);
        }
        for number in 1..300 {
            chaos.step(number);
            if asks {
                assert_eq!(same(&mut chaos, explain), AnsweredBy::Twin);
            }
        }
        chaos.journal().len()
    });
    let [without, with] = lengths;
    // The time of its first line may have another length.
    assert!(with.abs_diff(without) < 50, "{with} bytes instead of {without}");
}

/// The journal in the folder, once it is whole.
fn saved_in(folder: &Path) -> (String, Vec<u8>) {
    loop {
        let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
        let mut names = files.map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = names.find(|name| name != "unfinished") {
            let journal = std::fs::read(folder.join(&name)).unwrap();
            return (name, journal);
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_entry_that_was_changed_is_found_and_ends_the_twin_until_the_next_segment() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { folder: Some(folder.path().to_owned()), ..small_segments() };
    let mut chaos = Chaos::new(settings);
    chaos.step(0);
    with_twin(&mut chaos);
    // It must not get to the changed entry before it was asked: the loop would answer.
    let (end, _slow) = keep_busy(&mut chaos);
    chaos.backends_speak();
    chaos.engine.pending.latest.last_mut().unwrap().out = Outcome::Reserved(None);
    let (by, answer) = ask(&mut chaos, explain);
    assert_eq!(by, AnsweredBy::Twin);
    end.send(()).unwrap();
    assert_eq!(answer.blocking_recv().unwrap(), Err(QuestionError::Busy), "not a wrong answer");
    while chaos.engine.asking.twin.is_some() {
        chaos.engine.tend_twin(*NOW);
        std::thread::yield_now();
    }
    // The alarm is raised by the next look, if the twin ended during the last one.
    chaos.engine.tend_twin(*NOW);
    assert_eq!(chaos.engine.twin_divergences(), 1);
    let (name, journal) = saved_in(folder.path());
    assert!(name.ends_with("-twin-divergence.jsonl.gz"), "{name}");
    assert!(replay(journal.as_slice(), u64::MAX).unwrap().divergence.is_some(), "not in the file");
    assert_eq!(same(&mut chaos, explain), AnsweredBy::Loop);
    assert!(chaos.engine.asking.twin.is_none(), "on the same segment it would diverge again");
    let mut number = 1;
    while chaos.engine.asking.is_put_off {
        chaos.step(number);
        chaos.journal();
        number += 1;
    }
    with_twin(&mut chaos);
    assert_eq!(chaos.engine.twin_divergences(), 1);
}

#[test]
fn a_segment_that_was_changed_is_found_while_the_twin_is_built() {
    let mut chaos = Chaos::new(Settings::default());
    chaos.step(0);
    chaos.engine.pending.latest.last_mut().unwrap().out = Outcome::Handled;
    chaos.journal();
    while !chaos.engine.asking.is_put_off {
        assert_eq!(same(&mut chaos, explain), AnsweredBy::Loop);
    }
    chaos.engine.tend_twin(*NOW);
    assert_eq!(chaos.engine.twin_divergences(), 1);
}

#[test]
fn a_twin_that_is_not_asked_ends_and_takes_its_engine_along() {
    let mut chaos = Chaos::new(Settings::default());
    chaos.step(0);
    with_twin(&mut chaos);
    let asked = *NOW;
    let alive = Arc::downgrade(&chaos.engine.asking.twin.as_ref().unwrap().shared);
    chaos.engine.tend_twin(asked + IDLE_MAX / 2);
    assert!(chaos.engine.asking.twin.is_some());
    chaos.engine.tend_twin(asked + IDLE_MAX);
    assert!(chaos.engine.asking.twin.is_none());
    // Its thread has these until it ends.
    while alive.strong_count() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(same(&mut chaos, explain), AnsweredBy::Loop);
    with_twin(&mut chaos);
}

#[test]
fn one_question_more_than_may_wait_is_refused_and_the_others_are_answered() {
    let mut chaos = Chaos::new(Settings::default());
    chaos.step(0);
    with_twin(&mut chaos);
    let expected = direct(&chaos, explain);
    let (end, slow) = keep_busy(&mut chaos);
    let waiting: Vec<_> = (1..WAITING_MAX).map(|_| ask(&mut chaos, explain)).collect();
    assert!(waiting.iter().all(|(by, _)| *by == AnsweredBy::Twin));
    let (by, answer) = ask(&mut chaos, explain);
    assert_eq!(by, AnsweredBy::Refused);
    assert_eq!(answer.blocking_recv().unwrap(), Err(QuestionError::Busy));
    end.send(()).unwrap();
    assert_eq!(slow.blocking_recv().unwrap(), Ok(Some(())));
    for (_, answer) in waiting {
        assert_eq!(answer.blocking_recv().unwrap(), expected);
    }
    with_twin(&mut chaos);
}

#[test]
fn a_twin_that_is_too_far_behind_is_given_up_and_the_loop_goes_on() {
    let mut chaos = Chaos::new(Settings::default());
    chaos.step(0);
    with_twin(&mut chaos);
    let expected = direct(&chaos, explain);
    let (end, _slow) = keep_busy(&mut chaos);
    let (by, waits) = ask(&mut chaos, explain);
    assert_eq!(by, AnsweredBy::Twin);
    for _ in 1..FEED_MAX {
        chaos.backends_speak();
        chaos.engine.tend_twin(*NOW);
    }
    assert_eq!(same(&mut chaos, explain), AnsweredBy::Loop, "there is no room for a question");
    let twin = chaos.engine.asking.twin.as_ref().unwrap();
    assert_eq!(twin.stage(), Stage::Answering);
    chaos.backends_speak();
    chaos.engine.tend_twin(*NOW);
    assert!(chaos.engine.asking.twin.is_none(), "there was room for one more");
    assert_eq!(same(&mut chaos, explain), AnsweredBy::Loop);
    end.send(()).unwrap();
    assert_eq!(waits.blocking_recv().unwrap(), expected, "what it was asked before is answered");
    super::identical(&chaos.journal());
}

#[test]
fn a_question_that_panics_costs_its_own_answer_alone() {
    let mut chaos = Chaos::new(Settings::default());
    chaos.step(0);
    with_twin(&mut chaos);
    let (end, until) = sync_channel(0);
    drop(end);
    let (by, answer) = ask(&mut chaos, |reply| Asked::Slow(until, reply));
    assert_eq!(by, AnsweredBy::Twin);
    assert_eq!(answer.blocking_recv().unwrap(), Err(QuestionError::Failed));
    assert_eq!(questions(&mut chaos, 1), 3, "the twin goes on");
    let (_, until) = sync_channel(0);
    assert_eq!(direct(&chaos, |reply| Asked::Slow(until, reply)), Err(QuestionError::Failed));
}
