//! kube-scheduler's outcome beside our answer.

use std::collections::BTreeSet;
use std::fmt;

use crate::differential::kube_side::{Outcome, Preempted};
use crate::differential::log::Totals;
use crate::differential::message::{Said, preemption_text};
use crate::differential::our_side::Answer;

/// What can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Whether it can be placed at all, and on how many Nodes.
    Feasibility,
    /// kube-scheduler's Node is none of our best, or ours are not its best.
    BestNodes,
    /// What the Nodes say, and how many say it.
    Reasons,
    /// The same is said, in other words or in another order.
    Message,
    /// Whether preemption is possible, and why not.
    Preemption,
    NominatedNode,
    Victims,
    /// Which plugin could not be applied.
    FailedPlugin,
    /// The words for why it could not.
    ErrorText,
    /// A Pod behind a gate was not left alone.
    Gate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub about: About,
    pub ours: String,
    pub real: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, ours, real } = self;
        write!(f, "{about:?}\n  ours:           {ours}\n  kube-scheduler: {real}")
    }
}

/// What besides the two answers decides whether they agree.
#[derive(Debug, Clone, Default)]
pub(in crate::differential) struct Terms {
    /// Whether the cases are about preemption.
    pub preemption: bool,
    /// `namespace/name` of Pods that are being deleted anyway: neither scheduler deletes them again.
    pub leaving: BTreeSet<String>,
}

/// All that differs; nothing if they agree.
pub(in crate::differential) fn compare(
    terms: &Terms,
    outcome: &Outcome,
    answer: &Answer,
) -> Vec<Difference> {
    let mut findings = Findings(vec![]);
    match outcome {
        Outcome::Placed { node, feasible, totals, waits_for_volumes: _ } => {
            let ours = (answer.state.as_str(), answer.nodes.feasible);
            if findings.same(&ours, &("schedulable", *feasible), answer, node) {
                findings.best_nodes(node, totals, answer);
            }
        }
        Outcome::Rejected { message, preempted } => {
            let ours = (answer.state.as_str(), answer.nodes.feasible);
            let real = ("unschedulable", 0);
            if findings.same(&ours, &real, answer, message) {
                let (ours, real) = (Said::parse(&answer.message), Said::parse(message));
                let (ours_nodes, real_nodes) = (ours.about_nodes(), real.about_nodes());
                if ours_nodes != real_nodes {
                    findings.add(About::Reasons, answer.message.clone(), message.clone());
                } else if answer.message != *message {
                    findings.add(About::Message, answer.message.clone(), message.clone());
                }
                if terms.preemption {
                    findings.preemption(terms, &real.preemption, preempted.as_ref(), answer);
                }
            }
        }
        Outcome::Failed { message } => {
            let state = answer.state.as_str();
            if findings.same(&state, &"unschedulable", answer, message) {
                findings.failure(message, answer);
            }
        }
    }
    findings.0
}

/// All that is said when a Pod is rejected as a whole: of what another plugin has not made.
const NOT_TRIED: &str = "not found";

struct Findings(Vec<Difference>);

impl Findings {
    fn add(&mut self, about: About, ours: String, real: String) {
        self.0.push(Difference { about, ours, real });
    }

    /// Whether it can be placed, with what was said besides.
    fn same<T: PartialEq + fmt::Debug>(
        &mut self,
        ours: &T,
        real: &T,
        answer: &Answer,
        said: &str,
    ) -> bool {
        if ours != real {
            let ours = format!("{ours:?} ({})", answer.message);
            self.add(About::Feasibility, ours, format!("{real:?} ({said})"));
        }
        ours == real
    }

    fn best_nodes(&mut self, node: &str, totals: &Totals, answer: &Answer) {
        let ours: BTreeSet<&str> = answer.nodes.best.iter().map(String::as_str).collect();
        let top = totals.values().max();
        let mut real: BTreeSet<&str> = totals
            .iter()
            .filter(|(_, score)| Some(*score) == top)
            .map(|(node, _)| node.as_str())
            .collect();
        // A single feasible Node is taken without a score.
        real.insert(node);
        if ours != real {
            let real = format!("{real:?}, and took {node}; all scores: {totals:?}");
            self.add(About::BestNodes, format!("{ours:?}"), real);
        }
    }

    fn failure(&mut self, message: &str, answer: &Answer) {
        let ours = answer.message.split_once(" cannot be applied: ");
        let real = failed_plugin(message);
        let about = match (ours, real) {
            (Some((ours, _)), Some((real, _))) if ours == real => About::ErrorText,
            _ => About::FailedPlugin,
        };
        if answer.message != message {
            self.add(about, answer.message.clone(), message.to_owned());
        }
    }

    fn preemption(
        &mut self,
        terms: &Terms,
        said: &str,
        preempted: Option<&Preempted>,
        answer: &Answer,
    ) {
        let ours = answer.preemption.clone().unwrap_or_default();
        let Some(Preempted { node, victims }) = preempted else {
            let text = ours.message.as_deref().unwrap_or_default();
            // In the message, and that is compared: preemption was not tried.
            let said = if said == NOT_TRIED { "" } else { said };
            let (ours_said, real_said) = (Said::parse(preemption_text(text)), Said::parse(said));
            if ours_said != real_said || !ours.nodes.is_empty() {
                self.add(About::Preemption, format!("{ours:?}"), said.to_owned());
            }
            return;
        };
        if !ours.nodes.contains(node) {
            let real = format!("{node}, with the victims {victims:?}");
            self.add(About::NominatedNode, format!("{ours:?}"), real);
            return;
        }
        let deleted: BTreeSet<&String> = victims.iter().collect();
        let would_delete: BTreeSet<&String> =
            ours.victims.get(node).into_iter().flatten().collect();
        let would_delete: BTreeSet<&String> =
            would_delete.into_iter().filter(|victim| !terms.leaving.contains(*victim)).collect();
        if would_delete != deleted {
            self.add(
                About::Victims,
                format!("on {node}: {would_delete:?}"),
                format!("{deleted:?}"),
            );
        }
    }
}

/// `running PreScore plugin "X": why`, or `running "X" filter plugin: why`, taken apart.
fn failed_plugin(message: &str) -> Option<(&str, &str)> {
    let by_point = message.split_once("plugin \"").and_then(|(_, rest)| rest.split_once("\": "));
    by_point.or_else(|| {
        let (_, rest) = message.split_once("running \"")?;
        rest.split_once("\" filter plugin: ")
    })
}

#[cfg(test)]
mod tests;
