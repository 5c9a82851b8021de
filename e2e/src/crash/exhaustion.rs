//! Every crash point there is, one after another.

use std::collections::BTreeMap;
use std::time::Instant;

use super::rehearsal::{
    BATCH, Calm, Outcome, live_calmly, new_namespace, play_calmly, rehearse, rehearse_start,
};
use super::steps::{CrashPoint, MODES, Step};
use super::story::{FULL, SHORT, Story};
use super::world::World;
use crate::binaries::say;
use crate::error::{Result, ensure};

/// Lives without a crash that must be the same before any other is held against them.
const CALM_LIVES: usize = 3;

/// A crash point that was not come to in a batch, nor alone so many times, is not there.
const TRIES_ALONE: usize = 3;

/// Which crash points are played.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Only those whose name contains this.
    pub only: &'a str,
    pub breadth: Breadth,
    /// How often each.
    pub times: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    /// Every mode of every step.
    Every,
    /// Every mode of each kind of call, in one of its steps: another one for each mode.
    EachKind,
}

/// Plays the chosen crash points. Returns a line for each crash that can be told from none.
pub async fn exhaust(choice: &Choice<'_>) -> Result<Vec<String>> {
    let world = World::start().await?;
    let (calm, differing) = play_calmly(&world, CALM_LIVES).await?;
    ensure(differing.is_empty(), || format!("lives without a crash differ: {differing:#?}"))?;
    say(&format!(
        "{} steps of a life, {} of everybody; writes {:?}, allocations {:?}",
        calm.steps.len(),
        calm.steps_of_everybody.len(),
        calm.tally.writes,
        calm.tally.made,
    ));
    let mut outcomes = Vec::new();
    let started = Instant::now();
    for _ in 0..choice.times {
        let of_stories = choice.of(calm.crash_points());
        outcomes.extend(crash_in_stories(&world, &calm, of_stories, started).await?);
        let of_everybody = choice.of(calm.crash_points_of_everybody());
        outcomes.extend(crash_at_starts(&world, of_everybody, started).await?);
    }
    say(&format!("{} crashes in {} s", outcomes.len(), started.elapsed().as_secs()));
    Ok(outcomes.iter().filter_map(|it| described(it, &calm)).collect())
}

impl Choice<'_> {
    fn of(&self, points: Vec<CrashPoint>) -> Vec<CrashPoint> {
        let mut kinds: BTreeMap<String, Vec<Step>> = BTreeMap::new();
        for CrashPoint { step, mode } in &points {
            if *mode == MODES[0] {
                kinds.entry(step.what.clone()).or_default().push(step.clone());
            }
        }
        let is_in_its_stratum = |point: &CrashPoint| {
            let steps = &kinds[&point.step.what];
            let turn = MODES.iter().position(|mode| *mode == point.mode).unwrap_or_default();
            // From the first of them to the last.
            point.step == steps[turn * (steps.len() - 1) / (MODES.len() - 1)]
        };
        let is_chosen = |point: &CrashPoint| {
            point.to_string().contains(self.only)
                && (self.breadth == Breadth::Every || is_in_its_stratum(point))
        };
        points.into_iter().filter(is_chosen).collect()
    }
}

/// The steps of so many lives without a crash, in order, each with the time at which it was begun.
pub async fn steps_of_lives(times: usize) -> Result<Vec<String>> {
    let world = World::start().await?;
    world.start_scheduler().await?;
    let mut lines = Vec::new();
    for _ in 0..times {
        let namespace = new_namespace();
        world.gate.open(&namespace, None);
        let started = Instant::now();
        Story::new(&world, &namespace, FULL).live().await?;
        lines.push(format!("{namespace}:"));
        lines.extend(world.gate.steps(&namespace).into_iter().map(|(step, at)| {
            format!("after {} ms: {step}", at.saturating_duration_since(started).as_millis())
        }));
        world.gate.close(&namespace);
    }
    Ok(lines)
}

/// Batches first; those that were not come to because others stood in their way, alone.
async fn crash_in_stories(
    world: &World,
    calm: &Calm,
    points: Vec<CrashPoint>,
    started: Instant,
) -> Result<Vec<Outcome>> {
    let (mut outcomes, mut again) = (Vec::new(), Vec::new());
    for batch in points.chunks(BATCH) {
        let played = rehearse(world, calm, batch).await?;
        tell(&played, started);
        let (struck, missed): (Vec<_>, Vec<_>) = played.into_iter().partition(|it| it.is_struck);
        outcomes.extend(struck);
        again.extend(missed.into_iter().map(|it| it.point));
    }
    for point in again {
        let tries = if is_read(&point) { 1 } else { TRIES_ALONE };
        for left in (0..tries).rev() {
            let played = rehearse(world, calm, std::slice::from_ref(&point)).await?;
            tell(&played, started);
            let is_struck = played.iter().all(|it| it.is_struck);
            if is_struck || left == 0 {
                outcomes.extend(played);
                break;
            }
        }
    }
    Ok(outcomes)
}

async fn crash_at_starts(
    world: &World,
    points: Vec<CrashPoint>,
    started: Instant,
) -> Result<Vec<Outcome>> {
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let (short, _) = live_calmly(world, SHORT).await?;
    let mut outcomes = Vec::new();
    for point in points {
        let played = [rehearse_start(world, &short, &point).await?];
        tell(&played, started);
        outcomes.extend(played);
    }
    Ok(outcomes)
}

fn tell(played: &[Outcome], started: Instant) {
    let count = |is_it: fn(&Outcome) -> bool| played.iter().filter(|it| is_it(it)).count();
    say(&format!(
        "after {} s: {} crashes as planned, {} not come to, {} that can be told",
        started.elapsed().as_secs(),
        count(|it| it.is_struck),
        count(|it| !it.is_struck),
        count(|it| !it.problems.is_empty()),
    ));
    if let [alone] = played {
        say(&format!("  that was {}", alone.point));
    }
}

/// How often something is read depends on when readings come: not every life has the last of them.
fn is_read(point: &CrashPoint) -> bool {
    point.step.what.starts_with("GET ")
}

/// What is wrong with an outcome, if anything is.
fn described(outcome: &Outcome, calm: &Calm) -> Option<String> {
    let step = &outcome.point.step;
    let is_certain = (calm.certain_steps.contains(step) && !is_read(&outcome.point))
        || calm.steps_of_everybody.contains(step);
    let mut problems = outcome.problems.clone();
    if is_certain && !outcome.is_struck {
        problems.push("the story never came there".into());
    }
    (!problems.is_empty()).then(|| format!("- {}: {}", outcome.point, problems.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_of_each_kind_is_played_once_and_in_different_steps() {
        let step = |what: &str, nth| Step { what: what.to_owned(), nth };
        let steps = [step("GET a", 1), step("GET a", 2), step("GET a", 3), step("POST b", 1)];
        let points: Vec<_> = steps
            .iter()
            .flat_map(|step| MODES.map(|mode| CrashPoint { step: step.clone(), mode }))
            .collect();
        let choose = |breadth, only| {
            let chosen = Choice { only, breadth, times: 1 }.of(points.clone());
            chosen.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(choose(Breadth::Every, "").len(), 12);
        assert_eq!(
            choose(Breadth::EachKind, ""),
            [
                "before GET a #1",
                "reply lost of GET a #2",
                "after GET a #3",
                "before POST b #1",
                "reply lost of POST b #1",
                "after POST b #1",
            ]
        );
        assert_eq!(choose(Breadth::EachKind, "after GET"), ["after GET a #3"]);
    }
}
