//! What must be told apart, and what must not.

use super::super::our_side::{Nodes, Preemption};
use super::*;

const REJECTED: &str = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. no \
                        new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption \
                        victims found for incoming pod, 2 Preemption is not helpful for scheduling.";

fn terms() -> Terms {
    Terms { preemption: true, leaving: BTreeSet::from(["a/leaving".to_owned()]) }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn placed() -> (Outcome, Answer) {
    let totals = Totals::from([("n0".into(), 500), ("n1".into(), 500), ("n2".into(), 410)]);
    let outcome =
        Outcome::Placed { node: "n1".into(), feasible: 3, totals, waits_for_volumes: false };
    let nodes = Nodes { total: 3, feasible: 3, best: names(&["n0", "n1"]) };
    (outcome, Answer { state: "schedulable".into(), nodes, ..Answer::default() })
}

fn rejected() -> (Outcome, Answer) {
    let outcome = Outcome::Rejected { message: REJECTED.into(), preempted: None };
    let said = "0/3 nodes are available: 2 Preemption is not helpful for scheduling, 1 No preemption \
                victims found for incoming pod.";
    let answer = Answer {
        state: "unschedulable".into(),
        message: REJECTED.into(),
        nodes: Nodes { total: 3, ..Nodes::default() },
        preemption: Some(Preemption { message: Some(said.into()), ..Preemption::default() }),
    };
    (outcome, answer)
}

fn preempting() -> (Outcome, Answer) {
    let (_, mut answer) = rejected();
    let message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.";
    let message: String = message.into();
    answer.message.clone_from(&message);
    let preempted = Some(Preempted { node: "n2".into(), victims: names(&["a/p1"]) });
    answer.preemption = Some(Preemption {
        message: None,
        nodes: names(&["n0", "n2"]),
        victims: [("n2".to_owned(), names(&["a/p1", "a/leaving"]))].into(),
    });
    (Outcome::Rejected { message, preempted }, answer)
}

fn told_apart((outcome, answer): (Outcome, Answer)) -> Vec<About> {
    compare(&terms(), &outcome, &answer).iter().map(|difference| difference.about).collect()
}

fn spoiled(mut both: (Outcome, Answer), spoil: impl FnOnce(&mut Answer)) -> Vec<About> {
    spoil(&mut both.1);
    told_apart(both)
}

#[test]
fn answers_that_agree_do_not_differ() {
    for both in [placed(), rejected(), preempting()] {
        assert_eq!(told_apart(both), []);
    }
}

#[test]
fn another_number_of_feasible_nodes_is_noticed() {
    assert_eq!(spoiled(placed(), |ours| ours.nodes.feasible = 2), [About::Feasibility]);
    assert_eq!(spoiled(placed(), |ours| ours.state = "unschedulable".into()), [About::Feasibility]);
    assert_eq!(spoiled(rejected(), |ours| ours.nodes.feasible = 1), [About::Feasibility]);
}

#[test]
fn a_failed_attempt_must_have_failed_at_the_same_plugin() {
    let message = "running PreScore plugin \"NodeAffinity\": [0].values[0]: Invalid value: \"x\"";
    let failed = Outcome::Failed { message: message.into() };
    assert_eq!(told_apart((failed.clone(), placed().1)), [About::Feasibility]);
    assert_eq!(told_apart((failed.clone(), rejected().1)), [About::FailedPlugin]);
    let said = |plugin: &str| format!("{plugin} cannot be applied: \"x\" is not a whole number");
    let mut answer = rejected().1;
    answer.message = said("PodTopologySpread");
    assert_eq!(told_apart((failed.clone(), answer.clone())), [About::FailedPlugin]);
    answer.message = said("NodeAffinity");
    assert_eq!(told_apart((failed, answer.clone())), [About::ErrorText]);
    let message = "running \"VolumeBinding\" filter plugin: no such class";
    let failed = Outcome::Failed { message: message.into() };
    assert_eq!(told_apart((failed.clone(), answer.clone())), [About::FailedPlugin]);
    answer.message = said("VolumeBinding");
    assert_eq!(told_apart((failed, answer)), [About::ErrorText]);
}

#[test]
fn other_best_nodes_are_noticed_in_both_directions() {
    for best in [&["n0"][..], &["n1"], &["n0", "n1", "n2"], &["n2"], &[]] {
        assert_eq!(spoiled(placed(), |ours| ours.nodes.best = names(best)), [About::BestNodes]);
    }
    // A single feasible Node has no score.
    let outcome = Outcome::Placed {
        node: "n1".into(),
        feasible: 1,
        totals: Totals::new(),
        waits_for_volumes: true,
    };
    let mut answer = placed().1;
    answer.nodes = Nodes { total: 3, feasible: 1, best: names(&["n1"]) };
    assert_eq!(told_apart((outcome.clone(), answer.clone())), []);
    answer.nodes.best = names(&["n0"]);
    assert_eq!(told_apart((outcome, answer)), [About::BestNodes]);
}

#[test]
fn other_reasons_and_counts_are_noticed() {
    for message in [
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.",
        "0/3 nodes are available: 2 node(s) were unschedulable, 1 Insufficient memory.",
        "0/4 nodes are available: 2 node(s) were unschedulable, 1 Insufficient cpu.",
        "no nodes available to schedule pods",
    ] {
        let about = spoiled(rejected(), |ours| ours.message = message.into());
        assert_eq!(about, [About::Reasons], "{message}");
    }
}

#[test]
fn the_whole_message_is_compared_word_for_word() {
    let first = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.";
    let turned = "0/3 nodes are available: 2 node(s) were unschedulable, 1 Insufficient cpu.";
    let rest = REJECTED.strip_prefix(first).unwrap();
    let without_claims = rest.replace("no new claims to deallocate, ", "");
    for message in [first.to_owned(), format!("{turned}{rest}"), format!("{first}{without_claims}")]
    {
        let about = spoiled(rejected(), |ours| ours.message.clone_from(&message));
        assert_eq!(about, [About::Message], "{message}");
    }
}

#[test]
fn another_word_about_preemption_is_noticed() {
    assert_eq!(spoiled(rejected(), |ours| ours.preemption = None), [About::Preemption]);
    let other = Preemption { nodes: names(&["n1"]), ..rejected().1.preemption.unwrap() };
    assert_eq!(spoiled(rejected(), |ours| ours.preemption = Some(other)), [About::Preemption]);
    let mut without = terms();
    without.preemption = false;
    let (outcome, answer) = rejected();
    assert_eq!(compare(&without, &outcome, &Answer { preemption: None, ..answer }), []);
}

#[test]
fn another_node_or_other_victims_are_noticed() {
    let change = |change: fn(&mut Preemption)| {
        spoiled(preempting(), |ours| change(ours.preemption.as_mut().unwrap()))
    };
    assert_eq!(change(|ours| ours.nodes = names(&["n0"])), [About::NominatedNode]);
    assert_eq!(change(|ours| ours.victims.clear()), [About::Victims]);
    let other = |ours: &mut Preemption| {
        ours.victims.insert("n2".into(), names(&["a/p1", "a/p2"]));
    };
    assert_eq!(change(other), [About::Victims]);
}
