//! Ours beside kube-scheduler's, pair by pair.

use std::collections::BTreeMap;
use std::fmt;

use device_selectors::Expression;
use model::{DeviceType, SelectorVerdict};

use crate::allowed;
use crate::generate::{self, DEVICES_EACH};
use crate::oracle::{Answer, Oracle, Verdict};

/// So many expressions are in memory at a time.
const BATCH: usize = 5_000;
/// More would only say the same again.
const SHOWN_MAX: usize = 12;

/// An expression and a device, of which the two say something else.
#[derive(Debug)]
pub struct Difference<'a> {
    pub expression: &'a str,
    pub device: Option<&'a DeviceType>,
    pub ours: String,
    pub theirs: String,
    /// It was another one when kube-scheduler evaluated it again.
    pub unstable: bool,
    /// Its evaluation changed the device.
    pub changed: bool,
    /// As the API server estimates it.
    pub cost: u64,
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}", self.expression)?;
        writeln!(f, "    ours:   {}", self.ours)?;
        writeln!(f, "    theirs: {}", self.theirs)?;
        match self.device {
            Some(device) => writeln!(f, "    {}", shown(device)),
            None => Ok(()),
        }
    }
}

fn shown(device: &DeviceType) -> String {
    let attributes = device.attributes.iter().map(|(name, value)| format!("{name}={value:?}"));
    let capacity = device.capacity.iter().map(|(name, value)| format!("{name}={}", value.text));
    let all: Vec<String> = attributes.chain(capacity).collect();
    format!("shared={} {}", device.allow_multiple_allocations, all.join(" "))
}

/// Expressions and devices by what was said of them.
#[derive(Debug, Default)]
pub struct Tally {
    pub pairs: usize,
    pub outcomes: BTreeMap<&'static str, usize>,
    pub allowed: BTreeMap<&'static str, usize>,
    pub different: usize,
    /// The first differences.
    pub shown: Vec<String>,
}

pub fn run(oracle: &Oracle, pairs: usize, first_seed: u64) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut seed = first_seed;
    while tally.pairs < pairs {
        let count = BATCH.min((pairs - tally.pairs).div_ceil(DEVICES_EACH));
        let seeds: Vec<u64> = (0..count)
            .map(|_| {
                seed = seed.wrapping_add(1);
                seed - 1
            })
            .collect();
        let questions: Vec<_> = seeds.iter().map(|seed| generate::question(*seed)).collect();
        let answers = oracle.ask(&questions)?;
        for ((seed, question), answer) in seeds.iter().zip(&questions).zip(&answers) {
            tally.judge(*seed, &question.expression, &question.devices, answer);
        }
        eprintln!("{} of {pairs} pairs, {} differ", tally.pairs, tally.different);
    }
    Ok(tally)
}

impl Tally {
    pub fn judge(&mut self, seed: u64, expression: &str, devices: &[DeviceType], answer: &Answer) {
        let compiled = Expression::compile(expression);
        let verdicts = answer.verdicts.as_deref().unwrap_or_default();
        self.pairs += devices.len();
        if !answer.refused.is_empty() {
            self.count("compile error", devices.len());
            // The API server has the same opinion, so that no such expression is ever evaluated.
            let name = if compiled.is_ok() { allowed::REFUSED_BY_API_SERVER } else { return };
            *self.allowed.entry(name).or_default() += devices.len();
            return;
        }
        for (device, theirs) in devices.iter().zip(verdicts) {
            self.count(outcome(theirs), 1);
            let ours = match &compiled {
                Ok(compiled) => described(&compiled.evaluate(device)),
                Err(why) => format!("compile error: {why}"),
            };
            let difference = Difference {
                expression,
                device: Some(device),
                ours,
                theirs: described_theirs(theirs),
                unstable: theirs.unstable,
                changed: theirs.changed,
                cost: answer.cost,
            };
            if kind(&difference.ours) != kind(&difference.theirs) {
                self.differs(seed, &difference);
            }
        }
    }

    fn count(&mut self, outcome: &'static str, times: usize) {
        *self.outcomes.entry(outcome).or_default() += times;
    }

    fn differs(&mut self, seed: u64, difference: &Difference<'_>) {
        if let Some(entry) = allowed::find(difference) {
            *self.allowed.entry(entry.name).or_default() += 1;
            return;
        }
        self.different += 1;
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(format!("seed {seed} differs:\n{difference}"));
        }
    }
}

fn outcome(theirs: &Verdict) -> &'static str {
    match (theirs.failed.is_empty(), theirs.matches) {
        (false, _) => "runtime error",
        (true, true) => "true",
        (true, false) => "false",
    }
}

fn described(ours: &SelectorVerdict) -> String {
    match ours {
        SelectorVerdict::Matches => "true".into(),
        SelectorVerdict::DoesNotMatch => "false".into(),
        SelectorVerdict::Fails(why) => format!("runtime error: {why}"),
    }
}

fn described_theirs(theirs: &Verdict) -> String {
    match outcome(theirs) {
        "runtime error" => format!("runtime error: {}", theirs.failed),
        other => other.into(),
    }
}

/// Texts differ, which is no matter.
fn kind(described: &str) -> &str {
    described.split(':').next().unwrap_or(described)
}
