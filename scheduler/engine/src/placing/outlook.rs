//! What every Node says of a kind of Pod that fits nowhere, and what sending others away would do there. Kept as
//! Nodes change: a Node is asked again only when something about it is new.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeName, PreemptionPolicy};
use oracle::{Loss, Reason, Refusal, candidates, nodes_available};

use super::kinds::Kind;
use super::log::Position;
use super::losses::Losses;
use super::refusal::Own;
use super::rows::{Rows, Slot};
use super::standing::Basis;
use crate::nodes_rejection::{EXAMPLES_MAX, ReasonCount};
use crate::rng::Rng;

#[derive(Debug)]
pub(super) struct Outlook {
    answers: Vec<Answer>,
    /// The number of each Node's answer.
    of_slot: Vec<u16>,
    losses: Losses,
    at: Position,
    budgets_at: u64,
}

/// What some Nodes say alike.
#[derive(Debug)]
struct Answer {
    told: Told,
    nodes: BTreeSet<Slot>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Why the Node cannot take the Pod.
    pub reasons: Vec<Reason>,
    pub outcome: Outcome,
}

/// What preemption would do there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The Pod fits without.
    NotNeeded,
    /// It may not preempt.
    NotAllowed,
    Refused(Refusal),
    Possible,
}

/// Some Nodes that give a reason, with its place among those that they give.
type Examples = BTreeSet<(Slot, usize)>;

/// Of a place without a Node.
const NO_ANSWER: u16 = u16::MAX;
/// More answers than this are not told apart: everything is found anew each time.
const ANSWERS_MAX: usize = 1 << 12;

impl Outlook {
    /// `None`: only the oracle can tell.
    pub fn new(kind: &Kind, basis: Basis<'_>) -> Option<Self> {
        let ground = basis.ground;
        let places = ground.rows.len();
        let mut outlook = Self {
            answers: Vec::new(),
            of_slot: vec![NO_ANSWER; places],
            losses: Losses::new(places),
            at: ground.log.end(),
            budgets_at: ground.budgets.end(),
        };
        outlook.look_at(kind, basis, ground.rows.slots())?;
        outlook.losses.settle_all();
        Some(outlook)
    }

    /// Follows what has changed. `None`: it has to be made anew.
    pub fn follow(&mut self, kind: &Kind, basis: Basis<'_>) -> Option<()> {
        let ground = basis.ground;
        let mut slots: Vec<Slot> = ground.log.since(self.at)?.map(|(slot, _)| slot).collect();
        if self.budgets_at != ground.budgets.end() {
            slots.extend(self.concerned_by_budgets(kind, basis)?);
        }
        slots.sort_unstable();
        slots.dedup();
        let places = ground.rows.len();
        if places > self.losses.capacity() {
            return None;
        }
        self.of_slot.resize(places, NO_ANSWER);
        self.look_at(kind, basis, slots.iter().copied())?;
        for slot in slots {
            self.losses.settle(slot);
        }
        self.at = ground.log.end();
        self.budgets_at = ground.budgets.end();
        Some(())
    }

    /// Where some of those who might have to go are in a budget that has changed.
    fn concerned_by_budgets(&self, kind: &Kind, basis: Basis<'_>) -> Option<Vec<Slot>> {
        let rows = &basis.ground.rows;
        let changes = basis.ground.budgets.since(self.budgets_at)?;
        let possible = self.answers.iter().filter(|it| it.told.outcome == Outcome::Possible);
        let is_concerned = |slot: &Slot| {
            let pods = rows.name(*slot).map(|name| basis.view.cluster.pods_on(name));
            let mut lesser =
                pods.into_iter().flatten().filter(|it| it.priority < kind.pod.priority);
            lesser.any(|pod| changes.clone().any(|change| change.concerns(pod)))
        };
        Some(possible.flat_map(|it| it.nodes.iter().copied()).filter(is_concerned).collect())
    }

    fn look_at(
        &mut self,
        kind: &Kind,
        basis: Basis<'_>,
        slots: impl Iterator<Item = Slot>,
    ) -> Option<()> {
        let mut for_oracle: BTreeMap<NodeName, (Slot, Vec<Reason>)> = BTreeMap::new();
        for slot in slots {
            let Some(name) = basis.ground.rows.name(slot) else {
                self.forget(slot);
                continue;
            };
            let mut reasons = Vec::new();
            kind.reasons(slot, basis, &mut reasons);
            match kind.outcome(slot, basis, &reasons) {
                Some((outcome, loss)) => self.write(slot, Told { reasons, outcome }, loss)?,
                None => drop(for_oracle.insert(name.clone(), (slot, reasons))),
            }
        }
        if for_oracle.is_empty() {
            return Some(());
        }
        let view = basis.view;
        let (mut found, mut refusals) =
            candidates(view.rules, view.cluster, &kind.pod, for_oracle.keys())?;
        for (name, (slot, reasons)) in for_oracle {
            let found = found.remove(&name).ok_or_else(|| refusals.remove(&name));
            let (outcome, loss) = match found {
                Ok(candidate) => (Outcome::Possible, Some(candidate.loss)),
                Err(refusal) => (Outcome::Refused(refusal?), None),
            };
            self.write(slot, Told { reasons, outcome }, loss)?;
        }
        Some(())
    }

    fn forget(&mut self, slot: Slot) {
        let number = std::mem::replace(&mut self.of_slot[slot as usize], NO_ANSWER);
        if let Some(answer) = self.answers.get_mut(usize::from(number)) {
            answer.nodes.remove(&slot);
        }
        self.losses.put(slot, None);
    }

    /// `None`: there are too many answers.
    fn write(&mut self, slot: Slot, told: Told, loss: Option<Loss>) -> Option<()> {
        let known = usize::from(self.of_slot[slot as usize]);
        if self.answers.get(known).is_none_or(|it| it.told != told) {
            self.forget(slot);
            let number = self.answers.iter().position(|it| it.told == told);
            let number = number.unwrap_or(self.answers.len());
            if number == ANSWERS_MAX {
                return None;
            }
            if number == self.answers.len() {
                self.answers.push(Answer { told, nodes: BTreeSet::new() });
            }
            self.answers[number].nodes.insert(slot);
            self.of_slot[slot as usize] = u16::try_from(number).ok()?;
        }
        self.losses.put(slot, loss);
        Some(())
    }

    /// Answers a question of a Pod to which one Node says something else than to others of its kind.
    pub fn with<T>(
        &mut self,
        own: Option<Own>,
        answer: impl FnOnce(&Self, Option<&Own>) -> Option<T>,
    ) -> Option<T> {
        let Some(own) = own else { return answer(self, None) };
        let (told, loss) = (self.told(own.slot)?.clone(), self.losses.get(own.slot));
        let (outcome, own_loss) = outcome_of(own.found.clone().map(|candidate| candidate.loss));
        self.write(own.slot, Told { reasons: own.reasons.clone(), outcome }, own_loss)?;
        self.losses.settle(own.slot);
        let answer = answer(self, Some(&own));
        self.write(own.slot, told, loss)?;
        self.losses.settle(own.slot);
        answer
    }

    /// What the Node says, if there is one.
    pub fn told(&self, slot: Slot) -> Option<&Told> {
        let number = self.of_slot.get(slot as usize).copied()?;
        self.answers.get(usize::from(number)).map(|it| &it.told)
    }

    /// One of the Nodes where the loss is smallest.
    pub fn any_least(&self, rng: &mut Rng) -> Option<Slot> {
        self.losses.any_least(rng)
    }

    #[cfg(test)]
    pub fn all_least(&self) -> Vec<Slot> {
        self.losses.all_least()
    }

    /// kube-scheduler's words for why preemption helps nowhere.
    pub fn not_helpful(&self, nodes: usize) -> String {
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for answer in self.answers.iter().filter(|it| !it.nodes.is_empty()) {
            let Outcome::Refused(refusal) = &answer.told.outcome else { continue };
            for text in refusal.texts() {
                *refused.entry(text).or_default() += answer.nodes.len();
            }
        }
        nodes_available(nodes, &refused)
    }

    /// Why the Nodes cannot take the Pod, in the order of the first that says so.
    pub fn reasons(&self, rows: &Rows) -> Vec<ReasonCount> {
        let mut found: Vec<(&Reason, usize, Examples)> = Vec::new();
        for Answer { told, nodes } in &self.answers {
            for (place, reason) in told.reasons.iter().enumerate().filter(|_| !nodes.is_empty()) {
                let examples = nodes.iter().take(EXAMPLES_MAX).map(|slot| (*slot, place));
                match found.iter_mut().find(|known| known.0 == reason) {
                    Some(known) => {
                        known.1 += nodes.len();
                        known.2.extend(examples);
                    }
                    None => found.push((reason, nodes.len(), examples.collect())),
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

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.losses.bytes() + self.of_slot.len() * 16
    }
}

impl Kind {
    /// What preemption would do on the Node, which rejects the Pod for these reasons. `None`: only the oracle can
    /// tell.
    pub fn outcome(
        &self,
        slot: Slot,
        basis: Basis<'_>,
        reasons: &[Reason],
    ) -> Option<(Outcome, Option<Loss>)> {
        let outcome = if reasons.is_empty() {
            Outcome::NotNeeded
        } else if self.pod.preemption_policy == PreemptionPolicy::Never
            || basis.view.rules.switched_off.preemption
        {
            Outcome::NotAllowed
        } else if reasons.iter().any(Reason::is_unresolvable) {
            Outcome::Refused(Refusal::NotHelpful)
        } else if basis.ground.rows.row(slot).lowest_priority >= self.pod.priority {
            Outcome::Refused(Refusal::NoVictims)
        } else {
            let found = self.victims_by_room(slot, basis);
            return found.map(|found| outcome_of(found.map(|victims| victims.loss)));
        };
        Some((outcome, None))
    }
}

pub(super) fn outcome_of(found: Result<Loss, Refusal>) -> (Outcome, Option<Loss>) {
    match found {
        Ok(loss) => (Outcome::Possible, Some(loss)),
        Err(refusal) => (Outcome::Refused(refusal), None),
    }
}
