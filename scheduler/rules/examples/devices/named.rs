//! Where ours is to differ from kube-scheduler v1.36.4, and why. Each is known by what the two answers show, not by
//! what a case could lead to: an allocation of kube-scheduler that the independent checker refuses, or one of ours that
//! the checker accepts and that has what kube-scheduler keeps back. Places are in the package
//! `structured/internal/incubating` of `k8s.io/dynamic-resource-allocation`.

use std::collections::BTreeMap;

use random_clusters::devices::checker::{Rule, complaints};
use random_clusters::devices::milli;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::translate::items;

/// What a difference is looked for in.
pub struct Scene<'a> {
    case: &'a Value,
    ours: &'a Outcome,
    real: &'a Outcome,
    /// What kube-scheduler's allocation breaks.
    broken: Vec<Rule>,
    /// Whether the checker accepts ours.
    is_accepted: bool,
}

impl<'a> Scene<'a> {
    pub fn new(case: &'a Value, node: &Value, ours: &'a Outcome, real: &'a Outcome) -> Self {
        let broken = |outcome: &Outcome| match outcome {
            Outcome::Fits(allocations) => complaints(case, node, allocations),
            _ => vec![],
        };
        let is_accepted = matches!(ours, Outcome::Fits(_)) && broken(ours).is_empty();
        let broken = broken(real).iter().map(|it| it.rule).collect();
        Self { case, ours, real, broken, is_accepted }
    }
}

pub struct Named {
    pub name: &'static str,
    pub why: &'static str,
    #[expect(dead_code, reason = "for whoever reads this list")]
    source: &'static str,
    covers: fn(&Scene) -> bool,
}

pub const NAMED: [Named; 0] = [];

/// The first that explains all of it.
pub fn name(scene: &Scene) -> Option<&'static str> {
    NAMED.iter().find(|it| (it.covers)(scene)).map(|it| it.name)
}
