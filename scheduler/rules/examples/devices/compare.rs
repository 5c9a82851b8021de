//! Our answer beside kube-scheduler's, on each Node of a case.

use std::collections::BTreeMap;
use std::fmt;

use random_clusters::devices::checker::complaints;
use rules::{AllocationFailure, AllocatorInput, STEPS_MAX, allocate};
use serde_json::Value;

use crate::named::{self, Scene};
use crate::oracle::Told;
use crate::outcome::{Outcome, parts, repeats_configs};
use crate::translate::{Cluster, items};

/// More than any search here takes: what is to be compared is where it ends.
const STEP_LIMIT: u32 = 300_000;

/// What came of one Node.
pub struct Verdict {
    pub node: String,
    pub ours: Outcome,
    pub judged: Judged,
    /// The scheduler would have given up before.
    pub is_long: bool,
    /// What the independent checker says of our allocation.
    pub refused: Vec<String>,
    /// kube-scheduler repeats configurations.
    pub repeats_configs: bool,
}

pub enum Judged {
    Same,
    /// One of them gave the search up.
    NotCompared,
    Named(&'static str),
    Differs(Vec<Difference>),
}

/// What both have said.
pub struct Difference {
    about: &'static str,
    ours: String,
    real: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, ours, real } = self;
        write!(f, "{about}\n  ours:           {ours}\n  kube-scheduler: {real}")
    }
}

/// What is left out is left out of what we read, not of what the checker reads.
pub fn judge(
    case: &Value,
    told: &BTreeMap<String, Told>,
    without: Option<&str>,
) -> Result<Vec<Verdict>, String> {
    let cluster = Cluster::of(&without.map_or(case.clone(), |it| without_member(case, it)));
    let input = AllocatorInput {
        pools: &cluster.pools,
        classes: &cluster.classes,
        selectors: &cluster.verdicts,
        taken: &cluster.taken,
        step_limit: STEPS_MAX,
    };
    let patient = AllocatorInput { step_limit: STEP_LIMIT, ..input };
    let claims: Vec<_> = cluster.claims.iter().collect();
    let mut verdicts = vec![];
    for (node, written) in cluster.nodes.iter().zip(items(&case["nodes"])) {
        let name = node.name.as_str().to_owned();
        let told = told.get(&name).ok_or_else(|| format!("no answer for the Node {name}"))?;
        let mut ours = allocate(&input, node, &claims);
        let is_long = matches!(ours, Err(AllocationFailure::StepLimit { .. }));
        if is_long {
            ours = allocate(&patient, node, &claims);
        }
        let verdict = verdict(case, written, name, Outcome::ours(&ours), &Outcome::real(told));
        verdicts.push(Verdict { is_long, ..verdict });
    }
    Ok(verdicts)
}

fn without_member(value: &Value, name: &str) -> Value {
    match value {
        Value::Object(members) => {
            let left = members.iter().filter(|(member, _)| *member != name);
            Value::Object(
                left.map(|(it, value)| (it.clone(), without_member(value, name))).collect(),
            )
        }
        Value::Array(all) => all.iter().map(|it| without_member(it, name)).collect(),
        other => other.clone(),
    }
}

fn verdict(case: &Value, node: &Value, name: String, ours: Outcome, real: &Outcome) -> Verdict {
    let refused = match &ours {
        Outcome::Fits(allocations) => complaints(case, node, allocations),
        _ => vec![],
    };
    let differences = differences(&ours, real);
    let judged = if differences.is_empty() {
        Judged::Same
    } else if matches!((&ours, real), (Outcome::GaveUp, _) | (_, Outcome::GaveUp)) {
        Judged::NotCompared
    } else {
        let scene = Scene::new(case, node, &ours, real);
        named::name(&scene).map_or(Judged::Differs(differences), Judged::Named)
    };
    Verdict {
        node: name,
        judged,
        is_long: false,
        refused: refused.iter().map(ToString::to_string).collect(),
        repeats_configs: real.allocations().iter().any(repeats_configs),
        ours,
    }
}

fn differences(ours: &Outcome, real: &Outcome) -> Vec<Difference> {
    let whole =
        || vec![Difference { about: "outcome", ours: ours.to_string(), real: real.to_string() }];
    match (ours, real) {
        (Outcome::Fits(ours), Outcome::Fits(real)) if ours.len() == real.len() => {
            let pairs = ours
                .iter()
                .zip(real)
                .flat_map(|(ours, real)| parts(ours).into_iter().zip(parts(real)));
            let different = pairs.filter(|((_, ours), (_, real))| ours != real);
            different.map(|((about, ours), (_, real))| Difference { about, ours, real }).collect()
        }
        _ if ours.to_string() == real.to_string() => vec![],
        _ => whole(),
    }
}
