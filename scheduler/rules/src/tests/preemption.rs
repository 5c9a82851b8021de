//! Victims, and the Node they are on.

use model::{ClusterPod, PreemptionPolicy};
use model::{Deletion, Effect, LabelSelector, ObjectKey, PodDisruptionBudget, PodUid};

use crate::testkit::{
    PodBuilder, cluster, hard, insert_budget, node, pod, rejected, selector, term,
};
use crate::{Candidate, Cluster, Ineligible, Preemption, Rules, preempt};

fn tried(cluster: &Cluster, pod: PodBuilder) -> Preemption {
    preempt(&Rules::default(), cluster, &pod.build())
}

fn candidate(cluster: &Cluster, pod: PodBuilder, node: &str) -> Candidate {
    match tried(cluster, pod) {
        Preemption::Possible { candidates, .. } => candidates[&node.into()].clone(),
        other => panic!("no candidate: {other:?}"),
    }
}

fn victims(names: &[&str]) -> Vec<PodUid> {
    names.iter().map(|name| PodUid::new(&format!("team-a/{name}"))).collect()
}

fn best(cluster: &Cluster, pod: PodBuilder) -> Vec<String> {
    match tried(cluster, pod) {
        Preemption::Possible { best, .. } => best.iter().map(ToString::to_string).collect(),
        other => panic!("no candidate: {other:?}"),
    }
}

fn message(cluster: &Cluster, pod: &ClusterPod) -> String {
    let preemption = preempt(&Rules::default(), cluster, pod);
    let whole = rejected(cluster, pod).message_with(&preemption);
    let (_, after) = whole.split_once(". ").expect("it says something of preemption");
    after.to_owned()
}

fn budget(pods: &str, disruptions_allowed: i32) -> PodDisruptionBudget {
    PodDisruptionBudget {
        key: ObjectKey::new("team-a", "budget"),
        selector: selector(pods),
        disruptions_allowed,
        disrupted_pods: std::collections::BTreeSet::new(),
    }
}

#[test]
fn the_most_important_stay_where_they_can() {
    let cluster = cluster(
        [node("n").cpu(1000)],
        [pod("low").on("n").priority(1).asks(500, 0), pod("mid").on("n").priority(2).asks(400, 0)],
    );
    let found = candidate(&cluster, pod("p").priority(9).asks(500, 0), "n");
    assert_eq!((found.victims, found.budget_violations), (victims(&["low"]), 0));
    let whole = candidate(&cluster, pod("p").priority(9).asks(1000, 0), "n");
    assert_eq!(whole.victims, victims(&["mid", "low"]), "the most important first");
}

#[test]
fn among_equals_the_longer_running_stays_and_a_pod_that_has_not_started_goes() {
    let cluster = cluster(
        [node("n").cpu(1000)],
        [
            pod("a-new").on("n").asks(300, 0),
            pod("b-old").on("n").started(100).asks(300, 0),
            pod("c-young").on("n").started(200).asks(300, 0),
        ],
    );
    let gone = |cpu| candidate(&cluster, pod("p").priority(1).asks(cpu, 0), "n").victims;
    assert_eq!(gone(400), victims(&["a-new"]));
    assert_eq!(gone(700), victims(&["c-young", "a-new"]));
}

#[test]
fn equals_are_never_victims() {
    let cluster = cluster([node("n").cpu(1000)], [pod("x").on("n").priority(5).asks(800, 0)]);
    let asks = pod("p").priority(5).asks(500, 0).build();
    assert_eq!(
        message(&cluster, &asks),
        "no new claims to deallocate, preemption: 0/1 nodes are available: \
         1 No preemption victims found for incoming pod."
    );
}

#[test]
fn a_node_that_stays_unfit_tells_the_filters_reason() {
    let cluster = cluster(
        [node("n")],
        [pod("high").on("n").priority(9).port("", 80), pod("low").on("n").port("", 81)],
    );
    let asks = pod("p").priority(5).port("", 80).build();
    assert_eq!(
        message(&cluster, &asks),
        "no new claims to deallocate, preemption: 0/1 nodes are available: \
         1 node(s) didn't have free ports for the requested pod ports."
    );
}

#[test]
fn what_preemption_cannot_help_is_not_tried() {
    let cluster = cluster(
        [node("taint").taint("t", Effect::NoSchedule), node("small").cpu(100)],
        [pod("low").on("taint").asks(100, 0), pod("too").on("small").asks(100, 0)],
    );
    let asks = pod("p").priority(9).asks(500, 0).build();
    assert_eq!(
        message(&cluster, &asks),
        "no new claims to deallocate, preemption: 0/2 nodes are available: \
         2 Preemption is not helpful for scheduling."
    );
}

#[test]
fn a_pod_that_may_not_preempt_says_so() {
    let cluster = cluster([node("n").cpu(1000)], [pod("low").on("n").asks(800, 0)]);
    let meek = pod("p").priority(9).asks(500, 0);
    let meek = meek.with(|pod| pod.preemption_policy = PreemptionPolicy::Never).build();
    assert_eq!(
        message(&cluster, &meek),
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    );
}

#[test]
fn earlier_victims_are_waited_for_unless_their_node_is_beyond_help() {
    let leaving = |pod: &mut ClusterPod| pod.deletion = Deletion::TerminatingByPreemption;
    let victim = || pod("victim").on("n").asks(800, 0);
    let again = || pod("p").priority(9).asks(500, 0).nominated("n");
    let waiting = cluster([node("n").cpu(1000)], [victim().with(leaving)]);
    let expected = Preemption::NotEligible(Ineligible::VictimsTerminating);
    assert_eq!(tried(&waiting, again()), expected);
    assert_eq!(
        message(&waiting, &again().build()),
        "no new claims to deallocate, preemption: \
         not eligible due to a terminating pod on the nominated node."
    );
    // It leaves for another reason, or the Node was cordoned meanwhile: look elsewhere.
    let other = |pod: &mut ClusterPod| pod.deletion = Deletion::Terminating;
    let elsewhere = cluster([node("n").cpu(1000)], [victim().with(other)]);
    assert!(tried(&elsewhere, again()).candidates().is_some());
    let cordoned = cluster([node("n").cordoned().cpu(1000)], [victim().with(leaving)]);
    assert!(matches!(tried(&cordoned, again()), Preemption::NotHelpful(_)));
}

#[test]
fn those_that_a_budget_protects_are_spared_first() {
    let mut cluster = cluster(
        [node("n").cpu(1000)],
        [
            pod("old").on("n").started(100).asks(400, 0).labels("app=web"),
            pod("young").on("n").started(200).asks(400, 0).labels("app=db"),
        ],
    );
    let asks = || pod("p").priority(9).asks(500, 0);
    assert_eq!(candidate(&cluster, asks(), "n").victims, victims(&["young"]));
    insert_budget(&mut cluster, budget("app=db", 0));
    assert_eq!(candidate(&cluster, asks(), "n").victims, victims(&["old"]));
    insert_budget(&mut cluster, budget("app=db", 1));
    assert_eq!(candidate(&cluster, asks(), "n").victims, victims(&["young"]));
    let disrupted_pods = ["young".into()].into();
    insert_budget(&mut cluster, PodDisruptionBudget { disrupted_pods, ..budget("app=db", 0) });
    assert_eq!(candidate(&cluster, asks(), "n").victims, victims(&["young"]), "counted already");
    let everybody = PodDisruptionBudget { selector: LabelSelector::EVERYTHING, ..budget("", 0) };
    insert_budget(&mut cluster, everybody);
    assert_eq!(candidate(&cluster, asks(), "n").victims, victims(&["young"]), "{{}} protects none");
}

#[test]
fn a_budget_is_a_preference_only() {
    let mut cluster = cluster(
        [node("n").cpu(1000)],
        [
            pod("a").on("n").priority(2).asks(500, 0).labels("app=web"),
            pod("b").on("n").priority(1).asks(500, 0).labels("app=web"),
        ],
    );
    insert_budget(&mut cluster, budget("app=web", 1));
    let found = candidate(&cluster, pod("p").priority(9).asks(1000, 0), "n");
    assert_eq!(found.victims, victims(&["a", "b"]));
    assert_eq!(found.budget_violations, 1, "the more important one had the disruption allowed");
}

#[test]
fn the_smallest_loss_is_chosen_step_by_step() {
    let asks = || pod("p").priority(9).asks(1000, 0);
    let small = |name| node(name).cpu(1000);
    let on = |name, node| pod(name).on(node).asks(500, 0);
    let mut protected = cluster(
        [small("m"), small("n")],
        [on("1", "m").labels("app=web"), on("2", "n").priority(8)],
    );
    assert_eq!(best(&protected, asks()), ["m"], "the lower of the highest priorities");
    insert_budget(&mut protected, budget("app=web", 0));
    assert_eq!(best(&protected, asks()), ["n"], "fewer violations come first");
    let sums = cluster(
        [small("m"), small("n")],
        [
            on("1", "m").priority(5),
            on("2", "m").priority(3),
            on("3", "n").priority(5),
            on("4", "n").priority(4),
        ],
    );
    assert_eq!(best(&sums, asks()), ["m"], "the lower sum");
    let more = cluster(
        [small("m"), small("n")],
        [on("1", "m").priority(-5), on("2", "m").priority(-9), on("3", "n").priority(-5)],
    );
    assert_eq!(best(&more, asks()), ["n"], "more victims are never less, however low");
    let starts = cluster(
        [small("m"), small("n")],
        [
            on("1", "m").started(100),
            on("2", "m").started(900),
            on("3", "n").started(200),
            on("4", "n").started(300),
        ],
    );
    assert_eq!(best(&starts, asks()), ["n"], "its longest running started last");
    let same =
        cluster([small("m"), small("n")], [on("1", "m").started(1), on("2", "n").started(1)]);
    assert_eq!(best(&same, asks()), ["m", "n"], "kube-scheduler takes any");
}

#[test]
fn a_port_held_twice_is_freed_by_one() {
    let cluster = cluster(
        [node("n")],
        [pod("high").on("n").priority(9).port("", 80), pod("low").on("n").port("", 80)],
    );
    let found = candidate(&cluster, pod("p").priority(5).port("", 80), "n");
    assert_eq!(found.victims, victims(&["low"]), "kube-scheduler keeps a set without counts");
}

#[test]
fn a_terminating_pod_that_never_counted_is_subtracted_from_the_spread() {
    let leaving = |pod: &mut ClusterPod| pod.deletion = Deletion::Terminating;
    let nodes =
        [node("a").labels("zone=a"), node("b").labels("zone=b").taint("t", Effect::NoSchedule)];
    let cluster = cluster(
        nodes,
        [
            pod("high").on("a").priority(9).labels("app=web"),
            pod("low").on("a").labels("app=web").with(leaving),
        ],
    );
    let asks = pod("p").priority(5).labels("app=web").spread(hard("zone", 1, "app=web"));
    assert_eq!(candidate(&cluster, asks, "a").victims, victims(&["low"]));
}

#[test]
fn anti_affinity_of_victims_goes_with_them() {
    let cluster = cluster(
        [node("a").labels("zone=a")],
        [pod("shy").on("a").away_from(term("zone", "app=web")), pod("calm").on("a")],
    );
    let found = candidate(&cluster, pod("p").priority(1).labels("app=web"), "a");
    assert_eq!(found.victims, victims(&["shy"]));
}

#[test]
fn room_nominated_to_others_is_not_made_twice() {
    let cluster = cluster(
        [node("n").cpu(1000)],
        [pod("low").on("n").asks(800, 0), pod("nominated").nominated("n").priority(9).asks(700, 0)],
    );
    let Preemption::NotHelpful(_) = tried(&cluster, pod("p").priority(9).asks(500, 0)) else {
        panic!("the room belongs to the other");
    };
    let above = candidate(&cluster, pod("p").priority(10).asks(500, 0), "n");
    assert_eq!(above.victims, victims(&["low"]));
}

#[test]
fn who_fits_needs_no_victims() {
    let cluster = cluster([node("n")], [pod("low").on("n")]);
    assert_eq!(tried(&cluster, pod("p").priority(9)), Preemption::NotTried);
}
