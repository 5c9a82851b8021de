//! The quick way to a Node gives the plain rules' answers: on random clusters, through random changes, asked again
//! and again for the same kinds of Pods.

mod anew;
mod budgets;
mod story;
mod terms;

use std::collections::BTreeMap;

use model::{ClusterPod, NodeName};
use proptest::prelude::*;
use rules::{Chances, Decision, Preemption, decide};

use self::story::{NODES, Story};
use crate::placing::{Chance, Choice, PodClassKey, PreemptionResult, View};
use crate::rejection::NodesRejection;

impl Story {
    fn ask(&mut self) {
        let class = self.classes[self.random.below(self.classes.len())].clone();
        let class = self.one_like(&class);
        let view = View { rules: &self.rules, cluster: &self.cluster };
        let choice = self.placing.choose(view, &class, &mut self.random);
        let decision = decide(&self.rules, &self.cluster, &class.as_pod());
        match (&choice, &decision) {
            (Choice::On(node), Decision::Placed(placement)) => {
                self.placed += 1;
                assert!(
                    placement.best.contains(node),
                    "{node} has {:?}, the best are {:?} of {:?} for {class:?}",
                    placement.scores.get(node),
                    placement.best,
                    placement.scores,
                );
            }
            (Choice::Nowhere, Decision::Rejected(rejection)) => {
                self.nowhere += 1;
                self.ask_why(&class, &class.as_pod(), rejection);
            }
            (Choice::Unknown, _) => self.unknown += 1,
            _ => panic!("{choice:?}, but the plain rules say {decision:?} of {class:?}"),
        }
    }

    /// Of a Pod that waits nominated for a Node.
    fn ask_nominated(&mut self) {
        let pods = self.cluster.pods().values().filter(|pod| pod.node.is_none());
        let mut waiting: Vec<_> = pods.cloned().collect();
        waiting.sort_by(|one, other| one.uid.cmp(&other.uid));
        if waiting.is_empty() {
            return;
        }
        let pod = waiting.swap_remove(self.random.below(waiting.len()));
        let (namespace, scheduling) = (pod.namespace().clone(), pod.scheduling.clone());
        let class = PodClassKey {
            profile: "p".into(),
            namespace,
            scheduling,
            reach: Vec::new(),
            volumes: None,
            devices: None,
        };
        let view = View { rules: &self.rules, cluster: &self.cluster };
        let Decision::Rejected(rejection) = decide(&self.rules, &self.cluster, &pod) else {
            return;
        };
        if self.placing.choose(view, &class, &mut self.random) == Choice::Nowhere {
            self.ask_why(&class, &pod, &rejection);
        }
    }

    fn ask_why(&mut self, class: &PodClassKey, pod: &ClusterPod, rejection: &rules::Rejection) {
        let view = View { rules: &self.rules, cluster: &self.cluster };
        let nominated = Some(pod).filter(|pod| pod.nominated_node.is_some());
        let why = self.placing.diagnose(view, class, nominated, &mut self.random);
        let Some(why) = why else {
            assert!(nominated.is_some(), "it has just been answered");
            return;
        };
        self.nominated += usize::from(nominated.is_some());
        let told = NodesRejection::of_counts(why.reasons, None);
        let told: BTreeMap<String, usize> =
            told.reasons.into_iter().map(|(text, count)| (text, count.nodes)).collect();
        assert_eq!(told, rejection.counts(), "{class:?}");
        let preemption = rules::preempt_after(&self.rules, &self.cluster, pod, rejection);
        match (why.preemption, preemption) {
            (PreemptionResult::NotTried, Preemption::NotTried) => {}
            (PreemptionResult::NotEligible(ours), Preemption::NotEligible(theirs)) => {
                assert_eq!(ours, theirs);
            }
            (PreemptionResult::NotHelpful(ours), theirs @ Preemption::NotHelpful(_)) => {
                assert!(theirs.message().unwrap().ends_with(&ours), "{ours}: {theirs:?}");
            }
            (
                PreemptionResult::Possible(node, victims),
                Preemption::Possible { mut candidates, best },
            ) => {
                self.remedies += 1;
                self.violations += usize::from(candidates[&node].budget_violations > 0);
                let view = View { rules: &self.rules, cluster: &self.cluster };
                let ours = self.placing.all_preemptions(view, class, nominated).unwrap();
                assert!(ours.contains(&(node, victims)), "one of the best is chosen");
                let theirs: BTreeMap<_, _> = best
                    .into_iter()
                    .map(|node| (node.clone(), candidates.remove(&node).unwrap().victims))
                    .collect();
                assert_eq!(ours.into_iter().collect::<BTreeMap<_, _>>(), theirs);
            }
            (ours, theirs) => panic!("{ours:?}, but the plain rules say {theirs:?} of {class:?}"),
        }
    }

    /// What each Node is to a kind, by itself and together.
    fn ask_chances(&mut self) {
        let class = self.classes[self.random.below(self.classes.len())].clone();
        let class = self.one_like(&class);
        let expected = Chances::of(&self.rules, &self.cluster, &class.as_pod());
        let view = View { rules: &self.rules, cluster: &self.cluster };
        let Some(all) = self.placing.chances(view, &class) else { return };
        let of = |node: &NodeName| match () {
            () if expected.feasible.contains(node) => Chance::Feasible,
            () if expected.preemptible.contains(node) => Chance::Preemptible,
            () => Chance::None,
        };
        assert_eq!(all.len(), expected.feasible.len() + expected.preemptible.len(), "{class:?}");
        for (node, chance) in all {
            assert_eq!(chance, of(&node), "{node} for {class:?}");
        }
        let node = NodeName::new(&format!("n{}", self.random.below(NODES)));
        let view = View { rules: &self.rules, cluster: &self.cluster };
        assert_eq!(self.placing.chance_on(view, &class, &node), Some(of(&node)), "{class:?}");
    }

    fn play(seed: u64, steps: usize) -> Self {
        let mut story = Self::new(seed);
        for _ in 0..steps {
            for _ in 0..=story.below(3) {
                story.step();
            }
            story.ask();
            if story.one_in(2) {
                story.ask_nominated();
            }
            if story.one_in(4) {
                story.ask_chances();
            }
        }
        story
    }
}

proptest! {
    #[test]
    fn the_quick_way_gives_the_plain_rules_answers(seed in any::<u64>(), steps in 1..120_usize) {
        Story::play(seed, steps);
    }
}

#[test]
fn most_questions_are_answered_the_quick_way() {
    let stories = (0..80).map(|seed| Story::play(seed, 100));
    let (mut placed, mut nowhere, mut unknown) = (0, 0, 0);
    let (mut remedies, mut violations, mut nominated) = (0, 0, 0);
    for story in stories {
        remedies += story.remedies;
        violations += story.violations;
        nominated += story.nominated;
        // Where many are nominated for a Node, only the plain rules know what Pods with hard constraints can do.
        if !story.has_many_nominated() {
            placed += story.placed;
            nowhere += story.nowhere;
            unknown += story.unknown;
        }
    }
    assert!(placed > 1000 && nowhere > 500, "{placed} placed, {nowhere} nowhere");
    assert!(remedies > 150, "{remedies} remedies");
    assert!(nominated > 40, "{nominated} of nominated Pods");
    assert!(violations > 20, "{violations} remedies violate a budget");
    assert!(unknown * 4 < placed + nowhere, "{unknown} unknown of {}", placed + nowhere);
}
