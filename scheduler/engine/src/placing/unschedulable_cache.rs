//! Why each Node rejects a class of Pods that fits on none, and what preemption would do there. Updated as Nodes
//! change: a Node is evaluated again only when it has changed.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeName, PreemptionPolicy};
use rules::{PreemptionRefusal, Reason, VictimCost, candidates, nodes_available};

use super::FixedMap;
use super::diagnosis::NominatedFit;
use super::log::Position;
use super::pod_classes::PodClass;
use super::rows::{Rows, Slot};
use super::score_cache::Context;
use super::victim_costs::VictimCosts;
use crate::nodes_rejection::{EXAMPLES_MAX, ReasonCount};
use crate::rng::Rng;

#[derive(Debug)]
pub(super) struct UnschedulableCache {
    diagnoses: Vec<SharedDiagnosis>,
    /// The number of each Node's diagnosis.
    of_slot: Vec<u16>,
    /// `None`: preemption helps nowhere.
    costs: Option<VictimCosts>,
    at: Position,
    budgets_at: u64,
}

/// A diagnosis that several Nodes share.
#[derive(Debug)]
struct SharedDiagnosis {
    diagnosis: NodeDiagnosis,
    /// How many.
    nodes: usize,
}

/// Everything that the diagnosis of a class which only requests capacity depends on: Nodes that agree in it share a
/// diagnosis. The group of the Node, what it has, what its Pods take, how many there are and may be, and their lowest priority.
type NodeSignature = (u16, [i64; 3], [i64; 3], i64, i64, i32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeDiagnosis {
    /// Why the Node cannot take the Pod.
    pub reasons: Vec<Reason>,
    pub outcome: PreemptionOutcome,
}

/// What preemption would do on a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PreemptionOutcome {
    /// The Pod fits without.
    NotNeeded,
    /// It may not preempt.
    NotAllowed,
    Refused(PreemptionRefusal),
    Possible,
}

/// Some Nodes that give a reason, with its place among those that they give.
type Examples = BTreeSet<(Slot, usize)>;

/// Of a place without a Node.
const NO_DIAGNOSIS: u16 = u16::MAX;
/// With a reason or two.
const DIAGNOSIS_BYTES: usize = size_of::<SharedDiagnosis>() + 2 * size_of::<Reason>();
/// With more diagnoses than this, nothing is kept.
const DIAGNOSES_MAX: usize = 1 << 12;

impl UnschedulableCache {
    /// `None`: only the plain rules can tell.
    pub fn new(class: &PodClass, context: Context<'_>) -> Option<Self> {
        let index = context.index;
        let places = index.rows.len();
        let mut unschedulable = Self {
            diagnoses: Vec::new(),
            of_slot: vec![NO_DIAGNOSIS; places],
            costs: None,
            at: index.log.end(),
            budgets_at: index.budgets.end(),
        };
        unschedulable.look_at(class, context, index.rows.slots())?;
        unschedulable.costs.iter_mut().for_each(VictimCosts::settle_all);
        Some(unschedulable)
    }

    /// Follows what has changed. `None`: it has to be made anew.
    pub fn follow(&mut self, class: &PodClass, context: Context<'_>) -> Option<()> {
        let index = context.index;
        let mut slots: Vec<Slot> = index.log.since(self.at)?.map(|(slot, _)| slot).collect();
        if self.budgets_at != index.budgets.end() {
            slots.extend(self.concerned_by_budgets(class, context)?);
        }
        slots.sort_unstable();
        slots.dedup();
        let places = index.rows.len();
        if self.costs.as_ref().is_some_and(|it| places > it.capacity()) {
            return None;
        }
        self.of_slot.resize(places, NO_DIAGNOSIS);
        self.look_at(class, context, slots.iter().copied())?;
        for slot in slots {
            self.settle(slot);
        }
        self.at = index.log.end();
        self.budgets_at = index.budgets.end();
        Some(())
    }

    /// Nodes with possible victims in a budget that has changed.
    fn concerned_by_budgets(&self, class: &PodClass, context: Context<'_>) -> Option<Vec<Slot>> {
        let rows = &context.index.rows;
        let changes = context.index.budgets.since(self.budgets_at)?;
        let possible = rows.slots().filter(|slot| {
            self.diagnosis(*slot)
                .is_some_and(|diagnosis| diagnosis.outcome == PreemptionOutcome::Possible)
        });
        let is_concerned = |slot: &Slot| {
            let pods = rows.name(*slot).map(|name| context.view.cluster.pods_on(name));
            let mut lesser =
                pods.into_iter().flatten().filter(|it| it.priority < class.pod.priority);
            lesser.any(|pod| changes.clone().any(|change| change.concerns(pod)))
        };
        Some(possible.filter(is_concerned).collect())
    }

    fn look_at(
        &mut self,
        class: &PodClass,
        context: Context<'_>,
        slots: impl Iterator<Item = Slot>,
    ) -> Option<()> {
        let mut for_plain_rules: BTreeMap<NodeName, (Slot, Vec<Reason>)> = BTreeMap::new();
        let asks_for_room = class.asks_for_room_only();
        let mut by_signature: FixedMap<NodeSignature, u16> = FixedMap::default();
        let mut last: Option<(NodeSignature, u16)> = None;
        for slot in slots {
            let Some(name) = context.index.rows.name(slot) else {
                self.forget(slot);
                continue;
            };
            let signature = asks_for_room.then(|| signature_of(slot, context)).flatten();
            let same = last.filter(|(it, _)| Some(*it) == signature).map(|(_, number)| number);
            if let Some(number) = same.or_else(|| by_signature.get(&signature?).copied()) {
                last = signature.map(|signature| (signature, number));
                self.put(slot, number, None);
                continue;
            }
            let mut reasons = Vec::new();
            class.reasons(slot, context, &mut reasons);
            if let Some(outcome) = class.quick_outcome(slot, context, &reasons) {
                let number = self.write(slot, NodeDiagnosis { reasons, outcome }, None)?;
                last = signature.map(|signature| (signature, number));
                by_signature.extend(last);
                continue;
            }
            match class.outcome(slot, context, &reasons) {
                Some((outcome, cost)) => {
                    self.write(slot, NodeDiagnosis { reasons, outcome }, cost)?;
                }
                None => drop(for_plain_rules.insert(name.clone(), (slot, reasons))),
            }
        }
        if for_plain_rules.is_empty() {
            return Some(());
        }
        // The Pod of the class has no claims.
        if class.has_claims() {
            return None;
        }
        let view = context.view;
        let (mut found, mut refusals) =
            candidates(view.rules, view.cluster, &class.pod, for_plain_rules.keys())?;
        for (name, (slot, reasons)) in for_plain_rules {
            let found = found.remove(&name).ok_or_else(|| refusals.remove(&name));
            let (outcome, cost) = match found {
                Ok(candidate) => (PreemptionOutcome::Possible, Some(candidate.cost)),
                Err(refusal) => (PreemptionOutcome::Refused(refusal?), None),
            };
            self.write(slot, NodeDiagnosis { reasons, outcome }, cost)?;
        }
        Some(())
    }

    fn forget(&mut self, slot: Slot) {
        self.put(slot, NO_DIAGNOSIS, None);
    }

    /// Returns the number of the diagnosis. `None`: there are too many.
    fn write(
        &mut self,
        slot: Slot,
        diagnosis: NodeDiagnosis,
        cost: Option<VictimCost>,
    ) -> Option<u16> {
        let known = self.of_slot[slot as usize];
        if self.diagnoses.get(usize::from(known)).is_some_and(|it| it.diagnosis == diagnosis) {
            self.put(slot, known, cost);
            return Some(known);
        }
        let number = match self.diagnoses.iter().position(|it| it.diagnosis == diagnosis) {
            Some(number) => number,
            None if self.diagnoses.len() < DIAGNOSES_MAX => {
                self.diagnoses.push(SharedDiagnosis { diagnosis, nodes: 0 });
                self.diagnoses.len() - 1
            }
            None => {
                // One that no Node has any more.
                let number = self.diagnoses.iter().position(|it| it.nodes == 0)?;
                self.diagnoses[number].diagnosis = diagnosis;
                number
            }
        };
        let number = u16::try_from(number).ok()?;
        self.put(slot, number, cost);
        Some(number)
    }

    fn put(&mut self, slot: Slot, number: u16, cost: Option<VictimCost>) {
        let before = std::mem::replace(&mut self.of_slot[slot as usize], number);
        if before != number {
            if let Some(shared) = self.diagnoses.get_mut(usize::from(before)) {
                shared.nodes -= 1;
            }
            if let Some(shared) = self.diagnoses.get_mut(usize::from(number)) {
                shared.nodes += 1;
            }
        }
        if cost.is_some() && self.costs.is_none() {
            self.costs = Some(VictimCosts::new(self.of_slot.len()));
        }
        if let Some(costs) = &mut self.costs {
            costs.put(slot, cost);
        }
    }

    fn settle(&mut self, slot: Slot) {
        if let Some(costs) = &mut self.costs {
            costs.settle(slot);
        }
    }

    /// Answers a question of a nominated Pod: its nominated Node has another diagnosis for it than for its class.
    pub fn with<T>(
        &mut self,
        own: Option<NominatedFit>,
        answer: impl FnOnce(&Self, Option<&NominatedFit>) -> Option<T>,
    ) -> Option<T> {
        let Some(own) = own else { return answer(self, None) };
        let cost = self.costs.as_ref().and_then(|it| it.get(own.slot));
        let diagnosis = self.diagnosis(own.slot)?.clone();
        let (outcome, own_cost) = outcome_of(own.found.clone().map(|candidate| candidate.cost));
        self.write(own.slot, NodeDiagnosis { reasons: own.reasons.clone(), outcome }, own_cost)?;
        self.settle(own.slot);
        let answer = answer(self, Some(&own));
        self.write(own.slot, diagnosis, cost)?;
        self.settle(own.slot);
        answer
    }

    /// The diagnosis of the Node, if there is one.
    pub fn diagnosis(&self, slot: Slot) -> Option<&NodeDiagnosis> {
        let number = self.of_slot.get(slot as usize).copied()?;
        self.diagnoses.get(usize::from(number)).map(|it| &it.diagnosis)
    }

    /// One of the Nodes where the cost is lowest.
    pub fn any_cheapest(&self, rng: &mut Rng) -> Option<Slot> {
        self.costs.as_ref()?.any_cheapest(rng)
    }

    #[cfg(test)]
    pub fn all_cheapest(&self) -> Vec<Slot> {
        self.costs.as_ref().map(VictimCosts::all_cheapest).unwrap_or_default()
    }

    /// kube-scheduler's words for why preemption helps nowhere.
    pub fn not_helpful(&self, nodes: usize) -> String {
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for shared in self.diagnoses.iter().filter(|it| it.nodes > 0) {
            let PreemptionOutcome::Refused(refusal) = &shared.diagnosis.outcome else { continue };
            for text in refusal.texts() {
                *refused.entry(text).or_default() += shared.nodes;
            }
        }
        nodes_available(nodes, &refused)
    }

    /// Why the Nodes cannot take the Pod, in the order of the first that says so.
    pub fn reasons(&self, rows: &Rows) -> Vec<ReasonCount> {
        let mut found: Vec<(&Reason, usize, Examples)> = Vec::new();
        for (SharedDiagnosis { diagnosis, nodes }, slots) in
            self.diagnoses.iter().zip(self.examples())
        {
            for (place, reason) in diagnosis.reasons.iter().enumerate().filter(|_| *nodes > 0) {
                let examples = slots.iter().map(|slot| (*slot, place));
                match found.iter_mut().find(|known| known.0 == reason) {
                    Some(known) => {
                        known.1 += nodes;
                        known.2.extend(examples);
                    }
                    None => found.push((reason, *nodes, examples.collect())),
                }
            }
        }
        found.sort_by_key(|(_, _, examples)| examples.first().copied());
        let count = |(reason, nodes, examples): (&Reason, usize, Examples)| {
            let examples = examples.iter().take(EXAMPLES_MAX);
            let names = examples.filter_map(|(slot, _)| rows.name(*slot).cloned());
            ReasonCount { reason: reason.clone(), nodes, examples: names.collect() }
        };
        found.into_iter().map(count).collect()
    }

    /// The first Nodes with each diagnosis.
    fn examples(&self) -> Vec<Vec<Slot>> {
        let mut examples = vec![Vec::new(); self.diagnoses.len()];
        let mut missing: usize =
            self.diagnoses.iter().map(|shared| shared.nodes.min(EXAMPLES_MAX)).sum();
        for (slot, number) in (0..).zip(&self.of_slot) {
            if missing == 0 {
                break;
            }
            let answer = examples.get_mut(usize::from(*number));
            if let Some(known) = answer.filter(|known| known.len() < EXAMPLES_MAX) {
                known.push(slot);
                missing -= 1;
            }
        }
        examples
    }

    /// Whether it knows what a preemption costs: that takes long to find out.
    pub fn is_costly(&self) -> bool {
        self.costs.is_some()
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let costs = self.costs.as_ref().map_or(0, VictimCosts::bytes);
        costs + self.of_slot.len() * size_of::<u16>() + self.diagnoses.len() * DIAGNOSIS_BYTES
    }
}

/// `None`: there are Pods that are nominated for the Node, and the class does not tell what they take.
fn signature_of(slot: Slot, context: Context<'_>) -> Option<NodeSignature> {
    let row = context.index.rows.row(slot);
    let number = context.groups.number(slot);
    let signature =
        (number, row.allocatable, row.requested, row.pods, row.pods_max, row.lowest_priority);
    (row.nominated == 0).then_some(signature)
}

impl PodClass {
    /// What preemption would do on the Node, which rejects the Pod for these reasons, if that takes no look at its
    /// Pods.
    fn quick_outcome(
        &self,
        slot: Slot,
        context: Context<'_>,
        reasons: &[Reason],
    ) -> Option<PreemptionOutcome> {
        let is_switched_off = self.pod.preemption_policy == PreemptionPolicy::Never
            || context.view.rules.switched_off.preemption;
        if reasons.is_empty() {
            Some(PreemptionOutcome::NotNeeded)
        } else if is_switched_off {
            Some(PreemptionOutcome::NotAllowed)
        } else if reasons.iter().any(Reason::is_unresolvable) {
            Some(PreemptionOutcome::Refused(PreemptionRefusal::NotHelpful))
        } else if context.index.rows.row(slot).lowest_priority >= self.pod.priority {
            Some(PreemptionOutcome::Refused(PreemptionRefusal::NoVictims))
        } else {
            None
        }
    }

    /// The same with a look at them. `None`: only the plain rules can tell.
    pub fn outcome(
        &self,
        slot: Slot,
        context: Context<'_>,
        reasons: &[Reason],
    ) -> Option<(PreemptionOutcome, Option<VictimCost>)> {
        if let Some(outcome) = self.quick_outcome(slot, context, reasons) {
            return Some((outcome, None));
        }
        let found = self.victims_by_capacity(slot, context)?;
        Some(outcome_of(found.map(|victims| victims.cost)))
    }
}

pub(super) fn outcome_of(
    found: Result<VictimCost, PreemptionRefusal>,
) -> (PreemptionOutcome, Option<VictimCost>) {
    match found {
        Ok(cost) => (PreemptionOutcome::Possible, Some(cost)),
        Err(refusal) => (PreemptionOutcome::Refused(refusal), None),
    }
}
