//! Random kills during random lives.
//!
//! Several lives run at once, begin at different times and take different courses; the process that
//! serves them all is killed again and again, each time in a random step of a random one of them, in a
//! random mode. Each life is held against one of the same course without a crash.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::timeout;

use super::gate::EVERYBODY;
use super::rehearsal::{live_calmly, new_namespace};
use super::steps::MODES;
use super::story::{Plot, Story};
use super::verdict::Tally;
use super::world::World;
use crate::binaries::say;
use crate::error::Result;
use crate::random::Random;

/// Lives at one time.
const LIVES_AT_ONCE: usize = 8;
/// A kill comes no later than after this many steps of all lives together.
const STEPS_BETWEEN_KILLS_MAX: usize = 120;
/// And no later than this, should there be fewer steps: lives wait for each other's seconds, too.
const TIME_BETWEEN_KILLS_MAX: Duration = Duration::from_millis(1500);
/// Lives begin within this time of each other.
const HEAD_START_MILLIS_MAX: usize = 800;
/// One place among those that live at once ends early when so much is wrong.
const PROBLEMS_MAX: usize = 50;
const SAY_EVERY: usize = 25;

/// How the loop went.
#[derive(Debug, Default)]
pub struct Report {
    pub kills: usize,
    /// Kills that struck in the middle of a step, and not between steps.
    pub struck: usize,
    pub lives: usize,
    pub problems: Vec<String>,
}

/// Kills so many times, or until the time is up. Starts the scheduler.
pub async fn endure(world: &World, kills: usize, seed: u64, time_max: Duration) -> Result<Report> {
    world.start_scheduler().await?;
    let calm = every_calm_life(world).await?;
    say(&format!("{} courses of life are known; killing {kills} times, seed {seed}", calm.len()));
    let (stop, stopped) = watch::channel(false);
    let lives = (0..LIVES_AT_ONCE).map(|number| {
        let random = Random::new(seed.wrapping_add(number as u64 + 1));
        live_on(world, &calm, random, stopped.clone())
    });
    let killing = async {
        let report = kill_again_and_again(world, kills, Random::new(seed), time_max).await;
        // Those that have begun are lived to their end.
        stop.send_replace(true);
        report
    };
    let (ended, killed) = futures::future::join(join_all(lives), killing).await;
    let mut report = killed?;
    for (lives, problems) in ended {
        report.lives += lives;
        report.problems.extend(problems);
    }
    // What is leaked or lost must not be hidden by writes too many.
    report.problems.sort_by_key(|it| it.contains(" writes of "));
    Ok(report)
}

/// What each course comes to when nothing crashes.
async fn every_calm_life(world: &World) -> Result<BTreeMap<Plot, Tally>> {
    let mut calm = BTreeMap::new();
    for number in 0..8_u8 {
        let plot =
            Plot { is_changed: number & 1 > 0, is_moved: number & 2 > 0, is_used: number & 4 > 0 };
        calm.insert(plot, live_calmly(world, plot).await?.0);
    }
    Ok(calm)
}

async fn kill_again_and_again(
    world: &World,
    kills: usize,
    mut random: Random,
    time_max: Duration,
) -> Result<Report> {
    let started = Instant::now();
    let mut report = Report::default();
    while report.kills < kills && started.elapsed() < time_max {
        let mode = MODES[random.below(MODES.len())];
        world.gate.strike_any(random.below(STEPS_BETWEEN_KILLS_MAX), mode);
        let everybody = [EVERYBODY.to_owned()];
        if world.gate.until_struck(&everybody, TIME_BETWEEN_KILLS_MAX).await {
            report.struck += 1;
        }
        world.kill_scheduler().await?;
        // No strike is left when the next process starts.
        world.gate.close(EVERYBODY);
        report.kills += 1;
        world.start_scheduler().await?;
        if report.kills.is_multiple_of(SAY_EVERY) {
            let seconds = started.elapsed().as_secs();
            say(&format!(
                "{} of {kills} kills ({} in a step), {seconds} s",
                report.kills, report.struck
            ));
        }
    }
    Ok(report)
}

/// Lives one life after another. Returns how many, and everything that tells them from calm ones.
async fn live_on(
    world: &World,
    calm: &BTreeMap<Plot, Tally>,
    mut random: Random,
    mut stopped: watch::Receiver<bool>,
) -> (usize, Vec<String>) {
    let (mut count, mut problems) = (0, Vec::new());
    while !*stopped.borrow() && problems.len() < PROBLEMS_MAX {
        let pause = Duration::from_millis(random.below(HEAD_START_MILLIS_MAX) as u64);
        // Either way the loop looks again.
        let _ = timeout(pause, stopped.changed()).await;
        let plot =
            Plot { is_changed: random.coin(), is_moved: random.coin(), is_used: random.coin() };
        let namespace = new_namespace();
        world.gate.open(&namespace, None);
        let found = match Story::new(world, &namespace, plot).live().await {
            Ok(lived) => Tally::of(&lived, &world.gate).differs_from(&calm[&plot]),
            Err(problem) => vec![format!("the life did not end: {problem}")],
        };
        problems.extend(found.into_iter().map(|it| format!("{namespace} ({plot:?}): {it}")));
        world.gate.close(&namespace);
        count += 1;
    }
    (count, problems)
}
