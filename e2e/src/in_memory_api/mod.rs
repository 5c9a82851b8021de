//! The in-memory API beside the real one: the same random calls to both, and the same replies from both.
//!
//! A sequence is chosen by its seed and by the replies, so the same seed plays the same sequence. It ends
//! at the first reply that differs: what comes after would only repeat it.

mod allowed;
mod call;
mod generator;
mod kinds;
mod normal;
mod reading;
mod side;

use std::collections::BTreeMap;
use std::fmt;

use kube::Client;
use serde_json::{Value, json};

use call::{Call, JSON, MERGE_PATCH, Subject};
use generator::{Generator, object_path};
use kinds::{EVENTS, KINDS, NAMESPACES};
use side::Side;

use crate::error::Result;

pub use allowed::{ALLOWED, Allowed};

/// Watches at the end of a sequence, side by side: one second for all of them.
const WATCHES: usize = 8;
/// What is shown of a difference.
const PLACES_MAX: usize = 12;

#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    pub sequences: usize,
    /// In each sequence.
    pub calls: usize,
}

/// What was compared.
#[derive(Debug, Default)]
pub struct Figures {
    pub sequences: usize,
    pub calls: usize,
    pub codes: BTreeMap<u16, usize>,
    pub events: usize,
    pub differing: Vec<Difference>,
}

/// The first reply of a sequence that differs.
#[derive(Debug)]
pub struct Difference {
    pub seed: u64,
    pub index: usize,
    pub call: String,
    /// The calls before it that named the same object.
    pub earlier: Vec<String>,
    pub real: Value,
    pub model: Value,
}

/// Plays sequences against both servers.
pub async fn play(real: &Client, model: &Client, options: &Options) -> Result<Figures> {
    let mut figures = Figures::default();
    make_alike(real, model).await?;
    for offset in 0..options.sequences {
        let seed = options.seed + offset as u64;
        let mut play = Play::new(real, model, seed);
        let difference = play.sequence(options.calls, &mut figures).await?;
        figures.sequences += 1;
        figures.differing.extend(difference);
        play.clean_up().await?;
    }
    Ok(figures)
}

/// Pages and versions that both servers have forgotten. `forget` makes them, given the latest version of
/// the real one. Events it is, because the real server keeps no cache of them beside etcd.
pub async fn play_forgotten(
    real: &Client,
    model: &Client,
    seed: u64,
    forget: impl AsyncFnOnce(String) -> Result<()>,
) -> Result<Figures> {
    let mut figures = Figures { sequences: 1, ..Figures::default() };
    let mut play = Play::new(real, model, seed);
    let [namespace, _] = play.generator.namespaces();
    let events = KINDS[EVENTS].collection(&namespace);
    let mut calls = play.generator.opening();
    for name in ["a", "b", "c"] {
        calls.push(Call::new("POST", events.clone(), JSON, kinds::event_named(name, &namespace)));
    }
    let first = calls.len();
    calls.push(Call::get(format!("{events}?limit=1")));
    calls.push(Call::new("POST", events.clone(), JSON, kinds::event_named("bb", &namespace)));
    calls.push(Call::get(events.clone()));
    let expired = calls.len();
    calls.push(Call::get(format!("{events}?limit=2&continue=«continue {first}»")));
    calls.push(Call::get(format!("{events}?limit=2&continue=«continue {expired}»")));
    calls.push(Call::get(format!(
        "{events}?resourceVersion=«rv {first}»&resourceVersionMatch=Exact"
    )));
    calls.push(Call::get(format!("{events}?limit=5&resourceVersion=«rv {first}»")));
    let mut forget = Some(forget);
    for (index, call) in calls.iter().enumerate() {
        if index == expired
            && let Some(forget) = forget.take()
        {
            let latest = call::filled(&format!("«rv {}»", expired - 1), &play.real.replies);
            forget(latest).await?;
        }
        if let Some(difference) = play.step(index, call, &mut figures).await? {
            figures.differing.push(difference);
            break;
        }
    }
    play.clean_up().await?;
    Ok(figures)
}

/// The real server has namespaces of its own.
async fn make_alike(real: &Client, model: &Client) -> Result<()> {
    let path = KINDS[NAMESPACES].collection("");
    let (real, model) = (Side::new(real), Side::new(model));
    let there = real.ask(&Call::get(path.clone())).await?;
    for namespace in there.body["items"].as_array().into_iter().flatten() {
        let (name, labels) = (&namespace["metadata"]["name"], &namespace["metadata"]["labels"]);
        let namespace = json!({ "metadata": { "name": name, "labels": labels } });
        model.ask(&Call::new("POST", path.clone(), JSON, namespace)).await?;
    }
    Ok(())
}

struct Play {
    generator: Generator,
    real: Side,
    model: Side,
    /// Every call with its subject.
    made: Vec<(Option<Subject>, String)>,
    seed: u64,
}

impl Play {
    fn new(real: &Client, model: &Client, seed: u64) -> Self {
        Self {
            generator: Generator::new(seed),
            real: Side::new(real),
            model: Side::new(model),
            made: Vec::new(),
            seed,
        }
    }

    /// Makes one call to both, and compares what they say.
    async fn step(
        &mut self,
        index: usize,
        call: &Call,
        figures: &mut Figures,
    ) -> Result<Option<Difference>> {
        if call.is_loose_list() {
            self.refresh(call).await?;
        }
        let (real, model) = tokio::join!(self.real.make(call), self.model.make(call));
        real.and(model)?;
        Ok(self.compare(index, call, figures))
    }

    async fn sequence(
        &mut self,
        calls: usize,
        figures: &mut Figures,
    ) -> Result<Option<Difference>> {
        let opening = self.generator.opening();
        for index in 0..calls {
            let call = opening.get(index).cloned().unwrap_or_else(|| self.generator.next());
            if let Some(difference) = self.step(index, &call, figures).await? {
                return Ok(Some(difference));
            }
        }
        let watches: Vec<Call> =
            (0..WATCHES).map(|_| reading::watch(&mut self.generator)).collect();
        for call in &watches {
            self.refresh(call).await?;
        }
        let real = futures::future::try_join_all(watches.iter().map(|call| self.real.ask(call)));
        let model = futures::future::try_join_all(watches.iter().map(|call| self.model.ask(call)));
        let (real, model) = tokio::join!(real, model);
        for (index, ((call, real), model)) in watches.iter().zip(real?).zip(model?).enumerate() {
            figures.events += real.body["events"].as_array().map_or(0, Vec::len);
            self.real.replies.push(real);
            self.model.replies.push(model);
            if let Some(difference) = self.compare(calls + index, call, figures) {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    /// A consistent list waits until the real server's cache has all that was written before.
    async fn refresh(&self, call: &Call) -> Result<()> {
        let list = call.path.split('?').next().unwrap_or_default();
        self.real.ask(&Call::get(list.to_owned()).with_query("limit=1")).await?;
        Ok(())
    }

    fn compare(&mut self, index: usize, call: &Call, figures: &mut Figures) -> Option<Difference> {
        let real = allowed::smoothed(call, self.real.last());
        let model = allowed::smoothed(call, self.model.last());
        let reply = self.real.replies.last()?;
        figures.calls += 1;
        *figures.codes.entry(reply.code).or_default() += 1;
        self.generator.learn(index, call, reply);
        let named = call.path.split('?').next().unwrap_or_default().to_owned();
        if real == model {
            self.made.push((call.subject.clone(), format!("{index}: {} {call}", reply.code)));
            return None;
        }
        let same = |subject: &Option<Subject>| match (subject, &call.subject) {
            (Some(one), Some(other)) => one == other,
            (Some(one), None) => named.starts_with(&object_path(one)),
            _ => false,
        };
        let earlier = self.made.iter().filter(|(subject, _)| same(subject));
        Some(Difference {
            seed: self.seed,
            index,
            call: call.to_string(),
            earlier: earlier.map(|(_, call)| call.clone()).collect(),
            real,
            model,
        })
    }

    /// Removes the objects of this sequence, so that the next one finds both servers alike.
    async fn clean_up(&self) -> Result<()> {
        for side in [&self.real, &self.model] {
            for (index, kind) in KINDS.iter().enumerate().filter(|(index, _)| *index != NAMESPACES)
            {
                for namespace in self.generator.namespaces() {
                    let list = side.ask(&Call::get(kind.collection(&namespace))).await?;
                    for item in list.body["items"].as_array().into_iter().flatten() {
                        let name = item["metadata"]["name"].as_str().unwrap_or_default();
                        if kind.namespaced || name.starts_with(&namespace) {
                            let subject = Subject {
                                kind: index,
                                namespace: namespace.clone(),
                                name: name.to_owned(),
                            };
                            remove(side, &subject, item).await?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

async fn remove(side: &Side, subject: &Subject, object: &Value) -> Result<()> {
    let path = object_path(subject);
    if object["metadata"].get("finalizers").is_some() {
        let none = json!({ "metadata": { "finalizers": null } });
        side.ask(&Call::new("PATCH", path.clone(), MERGE_PATCH, none)).await?;
    }
    let at_once = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0 });
    side.ask(&Call::new("DELETE", path, JSON, at_once)).await?;
    Ok(())
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sequences, {} calls and {} watch events compared, {} sequences differ; codes {:?}",
            self.sequences,
            self.calls,
            self.events,
            self.differing.len(),
            self.codes,
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, call {}: {}", self.seed, self.index, self.call)?;
        for earlier in &self.earlier {
            writeln!(f, "  after {earlier}")?;
        }
        let mut places = Vec::new();
        differing_places("", &self.real, &self.model, &mut places);
        for (place, real, model) in places.iter().take(PLACES_MAX) {
            writeln!(f, "  at {place}\n    real:  {real}\n    model: {model}")?;
        }
        writeln!(f, "  the real API server: {}", self.real)?;
        writeln!(f, "  the in-memory API:   {}", self.model)
    }
}

type Place = (String, Value, Value);

fn differing_places(place: &str, real: &Value, model: &Value, places: &mut Vec<Place>) {
    match (real, model) {
        (Value::Object(real), Value::Object(model)) => {
            let keys: std::collections::BTreeSet<&String> =
                real.keys().chain(model.keys()).collect();
            for key in keys {
                let (real, model) = (real.get(key), model.get(key));
                let absent = json!("(absent)");
                let (real, model) = (real.unwrap_or(&absent), model.unwrap_or(&absent));
                differing_places(&format!("{place}/{key}"), real, model, places);
            }
        }
        (Value::Array(real), Value::Array(model)) if real.len() == model.len() => {
            for (index, (real, model)) in real.iter().zip(model).enumerate() {
                differing_places(&format!("{place}/{index}"), real, model, places);
            }
        }
        (real, model) if real != model => {
            places.push((place.to_owned(), real.clone(), model.clone()));
        }
        _ => {}
    }
}
