//! What a twin costs, and what it saves the loop:
//! `cargo test --release -p driver twin_cost -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use engine::{Engine, EngineConfig, Event, WatchedKind};
use jiff::Timestamp;
use model::{Assignment, ObjectKey};
use tokio::sync::oneshot;

use super::chaos::Chaos;
use crate::journal::Recorded;
use crate::journal::asking::AnsweredBy;
use crate::journal::keeper::Settings;
use crate::journal::twin::IDLE_MAX;
use crate::questions::Asked;

const NODES: u64 = 5_000;
const PODS: u64 = 50_000;
/// Pods that come, and some of which go again.
const MORE: u64 = 2_000;

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn large_cluster() -> Chaos {
    let mut chaos = Chaos::new(Settings::default());
    chaos.engine = Recorded::new(Engine::new(EngineConfig::default()), Settings::default());
    for number in 0..NODES {
        chaos.node(number);
    }
    for number in 0..PODS {
        let mut pod = chaos.pod(number);
        let node = format!("n{}", number % NODES).as_str().into();
        pod.assignment = Assignment::Bound { node, grant: None };
        chaos.handle(Event::seen(pod));
    }
    for kind in WatchedKind::ALL {
        chaos.handle(Event::Synced(kind));
    }
    chaos.backends_speak();
    chaos
}

/// How long the loop is busy with a question, and for how long its answer is waited for.
fn asked(chaos: &mut Chaos, pod: &ObjectKey) -> (AnsweredBy, Duration, Duration) {
    let key = pod.clone();
    let (reply, answer) = oneshot::channel();
    let began = Instant::now();
    let by = chaos.engine.ask(Asked::Explain(key, reply), began, Timestamp::UNIX_EPOCH);
    let in_the_loop = began.elapsed();
    answer.blocking_recv().unwrap().unwrap().unwrap();
    (by, in_the_loop, began.elapsed())
}

fn told(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let of = |share: usize| times[(times.len() - 1) * share / 100];
    println!("{what}: p50 {:?}, p99 {:?}, {} of them", of(50), of(99), times.len());
}

#[test]
#[ignore = "measures; for release builds"]
fn a_twin_takes_the_evaluation_of_nodes_off_the_loop() {
    let mut chaos = large_cluster();
    for number in PODS..PODS + MORE {
        chaos.step(number);
    }
    let keys = (PODS..PODS + MORE).map(|number| ObjectKey::new("a", &format!("p{number}")));
    let known: Vec<_> = keys.filter(|key| chaos.engine.explain(key).is_some()).take(50).collect();
    let mut pods = known.iter().cycle();
    let kept = chaos.journal().len();
    let before = resident_mib();
    println!("{NODES} nodes, {PODS} Pods, journal of {kept} bytes, {before} MiB resident");
    let began = Instant::now();
    let (mut by_loop, mut by_twin, mut waited) = (Vec::new(), Vec::new(), Vec::new());
    while by_twin.len() < 500 {
        let (by, in_the_loop, until_answered) = asked(&mut chaos, pods.next().unwrap());
        match by {
            AnsweredBy::Twin => {
                if by_twin.is_empty() {
                    println!("it answers after {:?}, {} MiB", began.elapsed(), resident_mib());
                }
                by_twin.push(in_the_loop);
                waited.push(until_answered);
            }
            AnsweredBy::Loop => by_loop.push(in_the_loop),
            AnsweredBy::Refused => {}
        }
        chaos.backends_speak();
    }
    told("the loop, answering itself", by_loop);
    told("the loop, with a twin", by_twin);
    told("until the twin has answered", waited);
    let alive = std::sync::Arc::downgrade(&chaos.engine.asking.twin.as_ref().unwrap().shared);
    println!("with a twin {} MiB", resident_mib());
    chaos.engine.tend_twin(Instant::now() + IDLE_MAX);
    while alive.strong_count() > 0 {
        std::thread::yield_now();
    }
    println!("without {} MiB", resident_mib());
    assert_eq!(chaos.engine.twin_divergences(), 0);
}
