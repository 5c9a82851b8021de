//! How often what was seen.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the plain rules have no clock; how fast they are compared takes one"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use crate::compare::{Judged, Verdict};
use crate::outcome::Outcome;
use crate::translate::items;

/// More would only say the same again.
const SHOWN_MAX: usize = 5;

pub struct Tally {
    pub cases: u64,
    started: Instant,
    shows_named: bool,
    nodes: u64,
    kinds: BTreeMap<&'static str, u64>,
    fatal: BTreeMap<String, u64>,
    named: BTreeMap<&'static str, u64>,
    /// What allocations that are the same have.
    seen: BTreeMap<&'static str, u64>,
    not_compared: u64,
    long: u64,
    repeated_configs: u64,
    /// Nodes with a difference that has no name.
    different: usize,
    /// Allocations of ours that the checker does not accept.
    refused: usize,
}

impl Tally {
    pub fn new(shows_named: bool) -> Self {
        Self {
            cases: 0,
            started: Instant::now(),
            shows_named,
            nodes: 0,
            kinds: BTreeMap::new(),
            fatal: BTreeMap::new(),
            named: BTreeMap::new(),
            seen: BTreeMap::new(),
            not_compared: 0,
            long: 0,
            repeated_configs: 0,
            different: 0,
            refused: 0,
        }
    }

    pub fn is_clean(&self) -> bool {
        self.different() == 0
    }

    pub fn different(&self) -> usize {
        self.different + self.refused
    }

    pub fn add(&mut self, seed: u64, verdicts: &[Verdict]) {
        self.cases += 1;
        for verdict in verdicts {
            self.add_node(seed, verdict);
        }
    }

    fn add_node(&mut self, seed: u64, verdict: &Verdict) {
        self.nodes += 1;
        *self.kinds.entry(verdict.ours.kind()).or_default() += 1;
        if let Outcome::Fatal(why) = &verdict.ours {
            *self.fatal.entry(sort_of(why)).or_default() += 1;
        }
        self.long += u64::from(verdict.is_long);
        self.repeated_configs += u64::from(verdict.repeats_configs);
        let again = format!("seed {seed}, Node {} (again: --seed {seed} --cases 1)", verdict.node);
        if !verdict.refused.is_empty() {
            self.refused += 1;
            if self.refused <= SHOWN_MAX {
                println!(
                    "{again}: the checker refuses our allocation\n  {}",
                    verdict.refused.join("\n  ")
                );
            }
        }
        match &verdict.judged {
            Judged::Same => {
                for what in verdict.ours.allocations().iter().flat_map(features) {
                    *self.seen.entry(what).or_default() += 1;
                }
            }
            Judged::NotCompared => self.not_compared += 1,
            Judged::Named(name) => {
                let count = self.named.entry(name).or_default();
                *count += 1;
                if self.shows_named && *count == 1 {
                    println!("{again}: {name}");
                }
            }
            Judged::Differs(differences) => {
                self.different += 1;
                if self.different <= SHOWN_MAX {
                    println!("{again} differs");
                    for difference in differences {
                        println!("{difference}");
                    }
                }
            }
        }
    }

    pub fn print(&self) {
        let seconds = self.started.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "it is to be read")]
        let (cases, nodes) = (self.cases as f64, self.nodes as f64);
        #[expect(clippy::cast_precision_loss, reason = "it is to be read")]
        let share = |count: u64| format!("{count:>9} {:>6.2} %", 100.0 * count as f64 / nodes);
        println!("ours, of all Nodes:");
        self.kinds.iter().for_each(|(kind, count)| println!("{}  {kind}", share(*count)));
        println!("what ends the attempt:");
        self.fatal.iter().for_each(|(sort, count)| println!("{}  {sort}", share(*count)));
        println!("claims that got the same of both, with:");
        self.seen.iter().for_each(|(what, count)| println!("{}  {what}", share(*count)));
        println!("differences with a name:");
        for named in &crate::named::NAMED {
            let count = self.named.get(named.name).copied().unwrap_or(0);
            println!("{}  {}: {}", share(count), named.name, named.why);
        }
        println!(
            "{}  configurations repeated, which are compared as a set",
            share(self.repeated_configs)
        );
        println!("{}  search longer than the scheduler makes it", share(self.long));
        println!("{}  search given up, not compared", share(self.not_compared));
        println!(
            "{} cases with {} Nodes, {:.0} cases a second; {} differ, {} allocations refused by the checker",
            self.cases,
            self.nodes,
            cases / seconds,
            self.different,
            self.refused,
        );
    }
}

/// The error without names.
fn sort_of(error: &str) -> String {
    let texts = [
        "CEL runtime error",
        "CEL compile error",
        "currently being updated",
        "currently invalid",
        "claim constraint would not be satisfied",
        "exceeds the claim limit",
        "could not retrieve device class",
        "missing device class name",
        "unsupported count mode",
        "CEL expression empty",
        "empty constraint",
        "failed to parse node selector",
        "unsupported ResourceSlice.NodeSelector",
    ];
    texts.into_iter().find(|text| error.contains(text)).unwrap_or(error).to_owned()
}

/// What is in an allocation.
fn features(allocation: &Value) -> Vec<&'static str> {
    let results = items(&allocation["devices"]["results"]);
    let any = |has: fn(&Value) -> bool| results.iter().any(has);
    let is_on_one_node = allocation["nodeSelector"].to_string().contains("metadata.name");
    let all = [
        ("devices", !results.is_empty()),
        ("several devices", results.len() > 1),
        ("a first alternative", any(|it| it["request"].to_string().contains("/s0"))),
        (
            "a later alternative",
            any(|it| {
                let request = it["request"].to_string();
                request.contains("/s1") || request.contains("/s2")
            }),
        ),
        ("admin access", any(|it| it["adminAccess"] == true)),
        ("a share", any(|it| it["shareID"].is_string())),
        ("consumed capacity", any(|it| it["consumedCapacity"].is_object())),
        ("tolerations", any(|it| it["tolerations"].is_array())),
        ("binding conditions", any(|it| it["bindingConditions"].is_array())),
        ("configurations", !items(&allocation["devices"]["config"]).is_empty()),
        ("one Node", is_on_one_node),
        ("a node selector", !is_on_one_node && allocation["nodeSelector"].is_object()),
        ("every Node", allocation["nodeSelector"].is_null()),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(what, _)| what).collect()
}
