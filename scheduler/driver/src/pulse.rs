//! Whether the driver's two threads still run, as seen from a third.
//!
//! The loop that decides counts a beat for every turn, input and poll; on the thread that reads, a task beats while
//! the watches do. A look from outside compares the counts with those of the look before. Looks are counted, and not
//! time: a process that was stopped and continued, or a machine that slept, has missed looks as well as beats.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// The time between two looks, and at most between two beats of a driver that has nothing to do.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// 60 s. The longest turn to be expected takes about 20 s: 64 attempts in one poll, each of a kind of Pod that looks at
/// a million nodes for the first time, which takes 0.3 s (benches/README.md).
const LOOKS_MAX: u32 = 12;

/// The two threads, each with its count of beats.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    deciding: AtomicU64,
    reading: AtomicU64,
}

impl Pulse {
    /// One relaxed addition: the loop does this for every input.
    pub fn beat_deciding(&self) {
        self.deciding.fetch_add(1, Ordering::Relaxed);
    }

    pub fn beat_reading(&self) {
        self.reading.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> [(Thread, u64); 2] {
        [(Thread::Deciding, &self.deciding), (Thread::Reading, &self.reading)]
            .map(|(thread, beats)| (thread, beats.load(Ordering::Relaxed)))
    }

    /// Ready when one of the threads is stuck. To be awaited on neither of them.
    pub async fn until_stuck(&self) -> Stuck {
        let mut watchdog = Watchdog::new(self.counts());
        loop {
            sleep(LOOK_INTERVAL).await;
            if let Some(stuck) = watchdog.look(self.counts()) {
                return stuck;
            }
        }
    }

    /// To be run on the thread that reads.
    pub async fn keep_beating(&self) {
        loop {
            self.beat_reading();
            sleep(LOOK_INTERVAL).await;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Deciding,
    Reading,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deciding => "the loop that decides",
            Self::Reading => "the thread that reads the watches",
        })
    }
}

/// A thread does not go on: what it does last, it may do for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{thread} has not moved for {} s", (LOOK_INTERVAL * LOOKS_MAX).as_secs())]
pub struct Stuck {
    thread: Thread,
}

/// What the last looks have shown.
#[derive(Debug)]
struct Watchdog {
    last: [(Thread, u64); 2],
    /// Looks in a row at which a thread had not moved.
    missed: [u32; 2],
}

impl Watchdog {
    fn new(counts: [(Thread, u64); 2]) -> Self {
        Self { last: counts, missed: [0; 2] }
    }

    fn look(&mut self, counts: [(Thread, u64); 2]) -> Option<Stuck> {
        let before = std::mem::replace(&mut self.last, counts);
        let threads = before.iter().zip(&counts).zip(&mut self.missed);
        let mut stuck = None;
        for (((_, before), (thread, now)), missed) in threads {
            *missed = if before == now { *missed + 1 } else { 0 };
            if *missed >= LOOKS_MAX {
                stuck = stuck.or(Some(Stuck { thread: *thread }));
            }
        }
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_beat_for_a_minute_is_stuck_and_named() {
        type Beat = fn(&Pulse);
        let cases: [(Beat, &str); 2] = [
            (Pulse::beat_reading, "the loop that decides has not moved for 60 s"),
            (Pulse::beat_deciding, "the thread that reads the watches has not moved for 60 s"),
        ];
        for (beat_other, says) in cases {
            let pulse = Pulse::default();
            let mut watchdog = Watchdog::new(pulse.counts());
            pulse.beat_deciding();
            pulse.beat_reading();
            assert_eq!(watchdog.look(pulse.counts()), None);
            for _ in 1..LOOKS_MAX {
                beat_other(&pulse);
                assert_eq!(watchdog.look(pulse.counts()), None);
            }
            beat_other(&pulse);
            assert_eq!(watchdog.look(pulse.counts()).unwrap().to_string(), says);
        }
    }

    #[test]
    fn one_beat_between_two_looks_is_enough() {
        let pulse = Pulse::default();
        let mut watchdog = Watchdog::new(pulse.counts());
        for _ in 0..10 * LOOKS_MAX {
            pulse.beat_deciding();
            pulse.beat_reading();
            assert_eq!(watchdog.look(pulse.counts()), None);
        }
    }

    #[test]
    fn a_driver_that_never_begins_is_stuck_too() {
        let pulse = Pulse::default();
        let mut watchdog = Watchdog::new(pulse.counts());
        let mut looks = (0..LOOKS_MAX).map(|_| watchdog.look(pulse.counts()));
        assert_eq!(looks.position(|look| look.is_some()), Some(11));
    }

    #[tokio::test(start_paused = true)]
    async fn who_beats_by_itself_is_never_stuck() {
        let pulse = Pulse::default();
        let beats = async {
            loop {
                pulse.beat_deciding();
                sleep(LOOK_INTERVAL).await;
            }
        };
        tokio::select! {
            stuck = pulse.until_stuck() => panic!("{stuck}"),
            () = pulse.keep_beating() => {}
            () = beats => {}
            () = sleep(Duration::from_hours(1)) => {}
        }
        let stuck = pulse.until_stuck().await;
        assert_eq!(stuck.thread, Thread::Deciding);
    }
}
