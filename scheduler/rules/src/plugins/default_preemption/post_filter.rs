//! Preemption: the victims on each Node, and the Nodes where they cost least.
//!
//! Every Node that may help is tried. kube-scheduler stops early in clusters with more than 100
//! such Nodes, at a random place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use model::{
    ClusterPod, Deletion, LabelSelector, NodeName, ObjectKey, PodDisruptionBudget, PodUid,
    PreemptionPolicy,
};

use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext};
use crate::decide::{Decision, decide};
use crate::failure::Failure;
use crate::reason::Reason;
use crate::rejection::{Rejection, counts, nodes_available};
use crate::rules::Rules;
use crate::trial::{Trial, TrialChange};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// The Pod fits without it, cannot be understood, or there are no Nodes.
    NotTried,
    /// The Pod was rejected as a whole, before kube-scheduler had looked at its ResourceClaims.
    /// It then fails on the missing result and does not try preemption.
    ClaimsNotFound,
    NotEligible(Ineligible),
    /// No Node can be made to fit; why, for each.
    NotHelpful(BTreeMap<NodeName, PreemptionRefusal>),
    Possible {
        /// Never empty.
        candidates: BTreeMap<NodeName, Candidate>,
        /// The Nodes where the cost is lowest. kube-scheduler takes any of them.
        best: BTreeSet<NodeName>,
    },
}

impl Preemption {
    pub fn candidates(&self) -> Option<&BTreeMap<NodeName, Candidate>> {
        match self {
            Self::Possible { candidates, .. } => Some(candidates),
            _ => None,
        }
    }

    /// What kube-scheduler adds to the message of the rejection.
    pub fn message(&self) -> Option<String> {
        let outcome = match self {
            Self::NotTried | Self::Possible { .. } => return None,
            Self::ClaimsNotFound => return Some(CLAIMS_NOT_FOUND.to_owned()),
            Self::NotEligible(why) => why.to_string(),
            Self::NotHelpful(nodes) => {
                let reasons = nodes.values().flat_map(PreemptionRefusal::reasons);
                if let Some(failure) = Failure::among(reasons) {
                    return Some(format!("preemption: {failure}"));
                }
                let texts = nodes.values().flat_map(PreemptionRefusal::texts);
                nodes_available(nodes.len(), &counts(texts))
            }
        };
        Some(format!("{PREEMPTION}{outcome}"))
    }
}

/// What kube-scheduler says when it has not looked at the Pod's ResourceClaims.
pub const CLAIMS_NOT_FOUND: &str = "not found";
/// In front of what it says of preemption: it tries to deallocate ResourceClaims first, and says so.
pub const PREEMPTION: &str = "no new claims to deallocate, preemption: ";

/// Why the Pod may not preempt at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ineligible {
    PolicyNever,
    /// Those that it preempted before are still on their way out.
    VictimsTerminating,
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PolicyNever => "not eligible due to preemptionPolicy=Never.",
            Self::VictimsTerminating => {
                "not eligible due to a terminating pod on the nominated node."
            }
        })
    }
}

/// Why preemption on a Node does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreemptionRefusal {
    /// The Node was rejected for a reason that has nothing to do with other Pods.
    NotHelpful,
    /// No Pod there has a lower priority.
    NoVictims,
    /// Even without them, the Pod does not fit.
    StillRejected(Vec<Reason>),
}

impl PreemptionRefusal {
    fn reasons(&self) -> &[Reason] {
        match self {
            Self::NotHelpful | Self::NoVictims => &[],
            Self::StillRejected(reasons) => reasons,
        }
    }

    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::NotHelpful => vec!["Preemption is not helpful for scheduling".to_owned()],
            Self::NoVictims => vec!["No preemption victims found for incoming pod".to_owned()],
            Self::StillRejected(reasons) => reasons.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The victims on one Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The most important first. Never empty.
    pub victims: Vec<PodUid>,
    /// Victims whose disruption a budget does not allow.
    pub budget_violations: usize,
    pub cost: VictimCost,
}

/// The same while the Pods are at hand: most often only the cost is needed.
#[derive(Clone, Debug)]
pub struct Victims<'a> {
    pods: Vec<&'a ClusterPod>,
    budget_violations: usize,
    pub cost: VictimCost,
}

impl From<Victims<'_>> for Candidate {
    fn from(victims: Victims<'_>) -> Self {
        let Victims { pods, budget_violations, cost } = victims;
        let victims = pods.iter().map(|victim| victim.uid.clone()).collect();
        Self { victims, budget_violations, cost }
    }
}

pub fn preempt(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Preemption {
    match decide(rules, cluster, pod) {
        Decision::Rejected(rejection) if !rejection.nodes.is_empty() => {
            preempt_after(rules, cluster, pod, &rejection)
        }
        Decision::Rejected(_) | Decision::Placed(_) | Decision::Failed(_) => Preemption::NotTried,
    }
}

/// The same, when the rejection is known already.
pub fn preempt_after(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    rejection: &Rejection,
) -> Preemption {
    if rules.switched_off.preemption {
        return Preemption::NotTried;
    }
    if rejection.whole_pod.is_some() {
        return Preemption::ClaimsNotFound;
    }
    if let Some(why) = ineligible(cluster, pod, rejection) {
        return Preemption::NotEligible(why);
    }
    let resolvable: BTreeSet<&NodeName> = rejection.resolvable().collect();
    let Some((candidates, mut refusals)) =
        candidates(rules, cluster, pod, resolvable.iter().copied())
    else {
        return Preemption::NotTried;
    };
    let hopeless = cluster.nodes.keys().filter(|name| !resolvable.contains(name));
    refusals.extend(hopeless.map(|name| (name.clone(), PreemptionRefusal::NotHelpful)));
    let Some(smallest) = candidates.values().map(|candidate| candidate.cost).min() else {
        return Preemption::NotHelpful(refusals);
    };
    let best = candidates.iter().filter(|(_, candidate)| candidate.cost == smallest);
    let best = best.map(|(name, _)| name.clone()).collect();
    Preemption::Possible { candidates, best }
}

/// What preemption on each of these Nodes would cost, or why it does not help there. `None`: the Pod cannot be
/// understood.
pub fn candidates<'a>(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    nodes: impl Iterator<Item = &'a NodeName>,
) -> Option<(BTreeMap<NodeName, Candidate>, BTreeMap<NodeName, PreemptionRefusal>)> {
    let context = PodContext { rules, cluster, pod };
    let state = context.pre_filter().ok()?;
    let (mut candidates, mut refusals) = (BTreeMap::new(), BTreeMap::new());
    for node in nodes.filter_map(|name| cluster.nodes.get(name)) {
        let name = node.node.name.clone();
        match candidate(context.on(node, &state)) {
            Ok(candidate) => drop(candidates.insert(name, candidate)),
            Err(refusal) => drop(refusals.insert(name, refusal)),
        }
    }
    Some((candidates, refusals))
}

/// Whether the Pod may preempt now: while its victims are on their way out, it waits for them.
pub(crate) fn may_preempt(context: PodContext<'_>, state: &CycleState) -> bool {
    let PodContext { rules, cluster, pod } = context;
    let nominated = pod.nominated_node.as_ref().and_then(|name| cluster.nodes.get(name));
    let waits = nominated.is_some_and(|node| {
        let reasons = context.on(node, state).rejections();
        let may_still_help = !reasons.iter().any(Reason::is_unresolvable);
        may_still_help && has_leaving_victims(cluster, pod, &node.node.name)
    });
    let may_ever =
        pod.preemption_policy != PreemptionPolicy::Never && !rules.switched_off.preemption;
    may_ever && !waits
}

/// Whether victims of such a Pod are still terminating on the Node.
pub fn has_leaving_victims(cluster: &Cluster, pod: &ClusterPod, node: &NodeName) -> bool {
    cluster.pods_on(node).any(|other| {
        other.priority < pod.priority && other.deletion == Deletion::TerminatingByPreemption
    })
}

fn ineligible(cluster: &Cluster, pod: &ClusterPod, rejection: &Rejection) -> Option<Ineligible> {
    if pod.preemption_policy == PreemptionPolicy::Never {
        return Some(Ineligible::PolicyNever);
    }
    let nominated = pod.nominated_node.as_ref()?;
    let may_still_help = rejection.resolvable().any(|name| name == nominated);
    let leaving = has_leaving_victims(cluster, pod, nominated);
    (may_still_help && leaving).then_some(Ineligible::VictimsTerminating)
}

/// Removes all Pods of lower priority, then reprieves those that can stay: first those that a budget
/// protects, then the others, the most important first.
pub(crate) fn candidate(trial: Trial<'_>) -> Result<Candidate, PreemptionRefusal> {
    let (cluster, priority) = (trial.cluster, trial.pod.priority);
    let on_node = cluster.pods_on(&trial.node.node.name);
    victims_by(trial, on_node.filter(|other| other.priority < priority), &cluster.objects.budgets)
        .map(Candidate::from)
}

/// A dry run: a Node from which Pods are removed and put back without effect on the cluster.
pub trait PreemptionDryRun<'a> {
    fn take_away(&mut self, pod: &'a ClusterPod);
    fn put_back(&mut self, pod: &'a ClusterPod);
    /// Why the Pod for which room is made does not fit now; empty when it does.
    fn rejections(&self) -> Vec<Reason>;
    fn fits(&self) -> bool {
        self.rejections().is_empty()
    }
}

impl<'a> PreemptionDryRun<'a> for Trial<'a> {
    fn take_away(&mut self, pod: &'a ClusterPod) {
        self.changes.push(TrialChange::Remove(pod));
    }

    fn put_back(&mut self, pod: &'a ClusterPod) {
        self.changes.push(TrialChange::Add(pod));
    }

    fn rejections(&self) -> Vec<Reason> {
        Trial::rejections(self)
    }
}

/// The same by any way to find out whether the Pod fits; `lesser` are the Pods of lower priority.
pub fn victims_by<'a>(
    mut node: impl PreemptionDryRun<'a>,
    lesser: impl Iterator<Item = &'a ClusterPod>,
    budgets: &BTreeMap<ObjectKey, PodDisruptionBudget>,
) -> Result<Victims<'a>, PreemptionRefusal> {
    let mut potential: Vec<&ClusterPod> = lesser.collect();
    if potential.is_empty() {
        return Err(PreemptionRefusal::NoVictims);
    }
    for victim in &potential {
        node.take_away(victim);
    }
    let reasons = node.rejections();
    if !reasons.is_empty() {
        return Err(PreemptionRefusal::StillRejected(reasons));
    }
    potential.sort_by_key(|victim| importance(victim));
    let (protected, others) = split_by_budgets(budgets, &potential);
    let mut victims = reprieve(&mut node, &protected);
    let budget_violations = victims.len();
    victims.extend(reprieve(&mut node, &others));
    if budget_violations > 0 {
        // Each part is in order.
        victims.sort_by_key(|victim| importance(victim));
    }
    if victims.is_empty() {
        // All of them fit again, so they were not the reason for the rejection.
        return Err(PreemptionRefusal::NotHelpful);
    }
    let cost = VictimCost::of(&victims, budget_violations);
    Ok(Victims { pods: victims, budget_violations, cost })
}

/// Those that cannot stay.
fn reprieve<'a>(
    node: &mut impl PreemptionDryRun<'a>,
    pods: &[&'a ClusterPod],
) -> Vec<&'a ClusterPod> {
    let mut victims = Vec::new();
    for pod in pods {
        node.put_back(pod);
        if !node.fits() {
            node.take_away(pod);
            victims.push(*pod);
        }
    }
    victims
}

/// Higher priority first, then the longer running. kube-scheduler takes a Pod that has not started
/// as starting now, and leaves equals in any order; here their names decide.
fn importance(pod: &ClusterPod) -> (Reverse<i32>, i64, &ObjectKey) {
    (Reverse(pod.priority), started_at(pod), &pod.key)
}

fn started_at(pod: &ClusterPod) -> i64 {
    pod.started_at_unix_s.unwrap_or(i64::MAX)
}

/// Those whose disruption would violate a budget, and the others. Budgets are used up in the
/// order of importance. A Pod without labels is in no budget, and `{}` protects no Pod.
fn split_by_budgets<'a>(
    budgets: &BTreeMap<ObjectKey, PodDisruptionBudget>,
    pods: &[&'a ClusterPod],
) -> (Vec<&'a ClusterPod>, Vec<&'a ClusterPod>) {
    if budgets.is_empty() {
        return (Vec::new(), pods.to_vec());
    }
    // Of those that count any of these Pods; most budgets are for Pods on other Nodes.
    let mut used: BTreeMap<&ObjectKey, i64> = BTreeMap::new();
    let mut violates = |pod: &ClusterPod| {
        let mut violated = false;
        for budget in budgets_in(budgets, pod.namespace()) {
            if protects(&budget.selector, pod) && !budget.disrupted_pods.contains(&pod.key.name) {
                let used = used.entry(&budget.key).or_default();
                *used += 1;
                violated |= *used > i64::from(budget.disruptions_allowed);
            }
        }
        violated
    };
    pods.iter().copied().partition(|pod| violates(pod))
}

fn budgets_in<'a>(
    budgets: &'a BTreeMap<ObjectKey, PodDisruptionBudget>,
    namespace: &Arc<str>,
) -> impl Iterator<Item = &'a PodDisruptionBudget> {
    let first = ObjectKey { namespace: namespace.clone(), name: Arc::default() };
    let from = budgets.range(first..);
    from.map(|(_, budget)| budget).take_while(move |it| it.key.namespace == *namespace)
}

/// Whether a budget with this selector, in the Pod's namespace, is for the Pod.
pub fn protects(selector: &LabelSelector, pod: &ClusterPod) -> bool {
    !pod.labels.is_empty() && !selector.is_everything() && selector.matches(&pod.labels)
}

/// What preemption on a Node costs, the first difference deciding. Less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VictimCost {
    budget_violations: usize,
    highest_priority: i32,
    /// Each counted from the lowest priority there is, so that more victims are never less.
    priorities: i128,
    victims: usize,
    /// Since when the longest running of the highest priority runs; later is better.
    running_since: Reverse<i64>,
}

impl VictimCost {
    fn of(victims: &[&ClusterPod], budget_violations: usize) -> Self {
        let highest_priority = victims.iter().map(|victim| victim.priority).max().unwrap_or(0);
        let highest = victims.iter().filter(|victim| victim.priority == highest_priority);
        let from_lowest = |victim: &&ClusterPod| i128::from(victim.priority) + (1 << 31);
        Self {
            budget_violations,
            highest_priority,
            priorities: victims.iter().map(from_lowest).sum(),
            victims: victims.len(),
            running_since: Reverse(highest.map(|it| started_at(it)).min().unwrap_or(i64::MAX)),
        }
    }
}
