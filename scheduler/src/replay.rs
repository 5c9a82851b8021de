//! `corridor-scheduler replay`: carries out a journal again, and says whether everything came out the same.

use std::fs::File;
use std::path::PathBuf;

use driver::{Divergence, ReplayError, Replayed};
use serde_json::{Value, json};

use crate::args::{OutputArg, ReplayArgs};
use crate::{BAD_CONFIGURATION, FAILURE};

#[derive(Debug, thiserror::Error)]
pub enum ReplayFailed {
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: std::io::Error },
    #[error("{path} {source}")]
    Journal { path: PathBuf, source: ReplayError },
    #[error("replay diverged at call {0}")]
    Diverged(u64),
}

impl ReplayFailed {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Open { .. } | Self::Journal { .. } => BAD_CONFIGURATION,
            Self::Diverged(_) => FAILURE,
        }
    }
}

pub fn replay(args: &ReplayArgs) -> Result<(), ReplayFailed> {
    let path = || args.file.clone();
    let file =
        File::open(&args.file).map_err(|source| ReplayFailed::Open { path: path(), source })?;
    let replayed = driver::replay(file, args.until.unwrap_or(u64::MAX))
        .map_err(|source| ReplayFailed::Journal { path: path(), source })?;
    let explained = args.explain.as_ref().map(|(namespace, name)| {
        let unknown = || json!({ "error": format!("no Pod {namespace}/{name} is known") });
        replayed.explain(namespace, name).map_or_else(unknown, |it| json!(it))
    });
    match args.output {
        OutputArg::Json => println!("{:#}", as_json(&replayed, explained.as_ref())),
        OutputArg::Text => println!("{}", as_text(&replayed, explained.as_ref())),
    }
    match replayed.divergence {
        Some(divergence) => Err(ReplayFailed::Diverged(divergence.call)),
        None => Ok(()),
    }
}

fn as_text(replayed: &Replayed, explained: Option<&Value>) -> String {
    let Replayed { began, span, calls, events, polls, binds, held, evictions, failures, .. } =
        replayed;
    let seconds = span.as_secs_f64();
    let mut lines = vec![
        format!("journal    from {began}, {seconds:.3} s"),
        format!("calls      {calls}: {events} events, {polls} polls"),
        format!(
            "decisions  {binds} Pods bound, {held} told why they wait, {evictions} steps of evictions"
        ),
    ];
    if *failures > 0 {
        lines.push(format!("failures   {failures} calls on which the engine failed"));
    }
    lines.push(match &replayed.divergence {
        None => "result     identical".to_owned(),
        Some(divergence) => format!("result     diverged at {divergence}"),
    });
    lines.extend(explained.map(|explained| format!("{explained:#}")));
    lines.join("\n")
}

fn as_json(replayed: &Replayed, explained: Option<&Value>) -> Value {
    let Replayed { began, span, calls, events, polls, binds, held, evictions, failures, .. } =
        replayed;
    let divergence = replayed.divergence.as_ref().map(|divergence| {
        let Divergence { call, after, what, recorded, came_out } = divergence;
        json!({
            "call": call, "afterSeconds": after.as_secs_f64(), "what": what, "recorded": recorded,
            "cameOut": came_out,
        })
    });
    json!({
        "began": began.to_string(),
        "spanSeconds": span.as_secs_f64(),
        "calls": calls,
        "events": events,
        "polls": polls,
        "binds": binds,
        "held": held,
        "evictions": evictions,
        "failures": failures,
        "identical": divergence.is_none(),
        "divergence": divergence,
        "explanation": explained,
    })
}
