//! Plays stories, many at once, each with a crash point of its own.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join, join_all};

use super::gate::EVERYBODY;
use super::steps::{CrashPoint, MODES, Mode, Step};
use super::story::{FULL, Plot, SHORT, Story};
use super::verdict::Tally;
use super::world::World;
use crate::error::Result;

/// Stories that are killed by one and the same kill. The controllers work on 32 objects of a kind at
/// once; frozen ones must leave room for those that are still on their way.
pub const BATCH: usize = 16;

/// A new process comes to a step of its start within this time, or not at all.
const STRIKE_TIME_MAX: Duration = Duration::from_secs(12);

/// Nothing in a life takes longer from one step to the next; the longest is a second between two writes
/// of who uses an object.
const STALL: Duration = Duration::from_secs(3);

/// How a story with a crash ended.
#[derive(Debug)]
pub struct Outcome {
    pub point: CrashPoint,
    /// Whether the story came to its crash point.
    pub is_struck: bool,
    /// Everything that tells it from a story without a crash.
    pub problems: Vec<String>,
}

/// What lives without a crash are like.
#[derive(Debug)]
pub struct Calm {
    pub tally: Tally,
    /// Every step that some such life has. Readings come when they come, and some ask once more.
    pub steps: BTreeSet<Step>,
    /// Those that every such life has.
    pub certain_steps: BTreeSet<Step>,
    /// From the start of the process to the end of a life.
    pub steps_of_everybody: BTreeSet<Step>,
}

/// Plays lives without a crash, one after another, and returns what they are like and in what they
/// differ. Starts the scheduler.
pub async fn play_calmly(world: &World, count: usize) -> Result<(Calm, Vec<String>)> {
    world.gate.open(EVERYBODY, None);
    world.start_scheduler().await?;
    let mut calm: Option<Calm> = None;
    let mut problems = Vec::new();
    for _ in 0..count {
        let (tally, steps) = live_calmly(world, FULL).await?;
        match &mut calm {
            None => {
                let steps_of_everybody =
                    world.gate.steps(EVERYBODY).into_iter().map(|it| it.0).collect();
                let certain_steps = steps.clone();
                calm = Some(Calm { tally, steps, certain_steps, steps_of_everybody });
            }
            Some(calm) => {
                problems.extend(tally.differs_from(&calm.tally));
                calm.certain_steps.retain(|step| steps.contains(step));
                calm.steps.extend(steps);
            }
        }
    }
    world.gate.close(EVERYBODY);
    let calm = calm.ok_or_else(|| crate::Error::malformed("playing calmly", "no life"))?;
    Ok((calm, problems))
}

/// One life without a crash, and its steps. The scheduler runs.
pub async fn live_calmly(world: &World, plot: Plot) -> Result<(Tally, BTreeSet<Step>)> {
    let namespace = new_namespace();
    world.gate.open(&namespace, None);
    let lived = Story::new(world, &namespace, plot).live().await?;
    let tally = Tally::of(&lived, &world.gate);
    let steps = world.gate.steps(&namespace).into_iter().map(|it| it.0).collect();
    world.gate.close(&namespace);
    Ok((tally, steps))
}

impl Calm {
    /// Every mode of every step of a story.
    pub fn crash_points(&self) -> Vec<CrashPoint> {
        points(&self.steps)
    }

    /// The same for the steps of no story in particular.
    pub fn crash_points_of_everybody(&self) -> Vec<CrashPoint> {
        points(&self.steps_of_everybody)
    }
}

fn points(steps: &BTreeSet<Step>) -> Vec<CrashPoint> {
    let of = |step: &Step, mode: Mode| CrashPoint { step: step.clone(), mode };
    steps.iter().flat_map(|step| MODES.map(|mode| of(step, mode))).collect()
}

/// Plays one story for each crash point, all at once; one kill ends the process when every story has
/// come to its own. The scheduler runs before and after.
pub async fn rehearse(world: &World, calm: &Calm, batch: &[CrashPoint]) -> Result<Vec<Outcome>> {
    let namespaces: Vec<String> = batch.iter().map(|_| new_namespace()).collect();
    for (namespace, point) in namespaces.iter().zip(batch) {
        world.gate.open(namespace, Some(point.clone()));
    }
    let stories = namespaces.iter().map(|namespace| Story::new(world, namespace, FULL).live());
    let killing = async {
        world.gate.until_struck_or_stalled(&namespaces, STALL).await;
        world.kill_scheduler().await?;
        world.start_scheduler().await
    };
    let (ended, killed) = join(join_all(stories), killing).await;
    killed?;
    let mut outcomes = Vec::new();
    for ((namespace, point), lived) in namespaces.iter().zip(batch).zip(ended) {
        let problems = match lived {
            Ok(lived) => Tally::of(&lived, &world.gate).differs_from(&calm.tally),
            Err(problem) => vec![format!("the story did not end: {problem}")],
        };
        let is_struck = world.gate.was_struck(namespace);
        outcomes.push(Outcome { point: point.clone(), is_struck, problems });
        world.gate.close(namespace);
    }
    Ok(outcomes)
}

/// Plays one story with a crash in a step that belongs to no story. The process starts with the story,
/// because most of these steps are of its start. `calm`: a short life without a crash.
pub async fn rehearse_start(world: &World, calm: &Tally, point: &CrashPoint) -> Result<Outcome> {
    world.kill_scheduler().await?;
    let namespace = new_namespace();
    world.gate.open(EVERYBODY, Some(point.clone()));
    world.gate.open(&namespace, None);
    let killing = async {
        world.start_scheduler().await?;
        world.gate.until_struck(&[EVERYBODY.to_owned()], STRIKE_TIME_MAX).await;
        world.kill_scheduler().await?;
        let is_struck = world.gate.was_struck(EVERYBODY);
        // What was planned has happened: the next process is not to be seen as struck at its start.
        world.gate.open(EVERYBODY, None);
        world.start_scheduler().await.map(|()| is_struck)
    };
    let mut story = Story::new(world, &namespace, SHORT);
    // All of it is there when the process starts, so that it meets all of it in its lists.
    story.be_governed().await?;
    story.be_wanted().await?;
    let (lived, killed) = join(story.live_on(), killing).await;
    let problems = match lived {
        Ok(lived) => Tally::of(&lived, &world.gate).differs_from(calm),
        Err(problem) => vec![format!("the story did not end: {problem}")],
    };
    world.gate.close(&namespace);
    world.gate.close(EVERYBODY);
    Ok(Outcome { point: point.clone(), is_struck: killed?, problems })
}

/// A namespace that no story was played in.
pub fn new_namespace() -> String {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    format!("story-{}", MADE.fetch_add(1, Ordering::Relaxed))
}
