//! What every Node says of a kind of Pod that fits nowhere, and what sending others away would do there. Kept as
//! Nodes change: a Node is asked again only when something about it is new.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeName, PreemptionPolicy};
use rules::{Loss, Reason, Refusal, candidates, nodes_available};

use super::FixedMap;
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
    /// `None`: preemption helps nowhere.
    losses: Option<Losses>,
    at: Position,
    budgets_at: u64,
}

/// What some Nodes say alike.
#[derive(Debug)]
struct Answer {
    told: Told,
    /// How many.
    nodes: usize,
}

/// Everything that a kind looks at which asks only for room: Nodes that agree in it say the same. The verdict on the Node
/// itself, what it has, what its Pods hold, how many there are and may be, and their lowest priority.
type RoomClass = (u16, [i64; 3], [i64; 3], i64, i64, i32);

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
/// With a reason or two.
const ANSWER_BYTES: usize = size_of::<Answer>() + 2 * size_of::<Reason>();
/// More answers than this are not told apart: everything is found anew each time.
const ANSWERS_MAX: usize = 1 << 12;

impl Outlook {
    /// `None`: only the plain rules can tell.
    pub fn new(kind: &Kind, basis: Basis<'_>) -> Option<Self> {
        let ground = basis.ground;
        let places = ground.rows.len();
        let mut outlook = Self {
            answers: Vec::new(),
            of_slot: vec![NO_ANSWER; places],
            losses: None,
            at: ground.log.end(),
            budgets_at: ground.budgets.end(),
        };
        outlook.look_at(kind, basis, ground.rows.slots())?;
        outlook.losses.iter_mut().for_each(Losses::settle_all);
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
        if self.losses.as_ref().is_some_and(|it| places > it.capacity()) {
            return None;
        }
        self.of_slot.resize(places, NO_ANSWER);
        self.look_at(kind, basis, slots.iter().copied())?;
        for slot in slots {
            self.settle(slot);
        }
        self.at = ground.log.end();
        self.budgets_at = ground.budgets.end();
        Some(())
    }

    /// Where some of those who might have to go are in a budget that has changed.
    fn concerned_by_budgets(&self, kind: &Kind, basis: Basis<'_>) -> Option<Vec<Slot>> {
        let rows = &basis.ground.rows;
        let changes = basis.ground.budgets.since(self.budgets_at)?;
        let possible = rows
            .slots()
            .filter(|slot| self.told(*slot).is_some_and(|told| told.outcome == Outcome::Possible));
        let is_concerned = |slot: &Slot| {
            let pods = rows.name(*slot).map(|name| basis.view.cluster.pods_on(name));
            let mut lesser =
                pods.into_iter().flatten().filter(|it| it.priority < kind.pod.priority);
            lesser.any(|pod| changes.clone().any(|change| change.concerns(pod)))
        };
        Some(possible.filter(is_concerned).collect())
    }

    fn look_at(
        &mut self,
        kind: &Kind,
        basis: Basis<'_>,
        slots: impl Iterator<Item = Slot>,
    ) -> Option<()> {
        let mut for_plain_rules: BTreeMap<NodeName, (Slot, Vec<Reason>)> = BTreeMap::new();
        let asks_for_room = kind.constraints.are_soft() && kind.asks.look_at_rows_only();
        let mut classes: FixedMap<RoomClass, u16> = FixedMap::default();
        let mut last: Option<(RoomClass, u16)> = None;
        for slot in slots {
            let Some(name) = basis.ground.rows.name(slot) else {
                self.forget(slot);
                continue;
            };
            let class = asks_for_room.then(|| room_class(slot, basis)).flatten();
            let same = last.filter(|(it, _)| Some(*it) == class).map(|(_, number)| number);
            if let Some(number) = same.or_else(|| classes.get(&class?).copied()) {
                last = class.map(|class| (class, number));
                self.put(slot, number, None);
                continue;
            }
            let mut reasons = Vec::new();
            kind.reasons(slot, basis, &mut reasons);
            if let Some(outcome) = kind.outcome_by_class(slot, basis, &reasons) {
                let number = self.write(slot, Told { reasons, outcome }, None)?;
                last = class.map(|class| (class, number));
                classes.extend(last);
                continue;
            }
            match kind.outcome(slot, basis, &reasons) {
                Some((outcome, loss)) => {
                    self.write(slot, Told { reasons, outcome }, loss)?;
                }
                None => drop(for_plain_rules.insert(name.clone(), (slot, reasons))),
            }
        }
        if for_plain_rules.is_empty() {
            return Some(());
        }
        let view = basis.view;
        let (mut found, mut refusals) =
            candidates(view.rules, view.cluster, &kind.pod, for_plain_rules.keys())?;
        for (name, (slot, reasons)) in for_plain_rules {
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
        self.put(slot, NO_ANSWER, None);
    }

    /// Returns the number of the answer. `None`: there are too many.
    fn write(&mut self, slot: Slot, told: Told, loss: Option<Loss>) -> Option<u16> {
        let known = self.of_slot[slot as usize];
        if self.answers.get(usize::from(known)).is_some_and(|it| it.told == told) {
            self.put(slot, known, loss);
            return Some(known);
        }
        let number = match self.answers.iter().position(|it| it.told == told) {
            Some(number) => number,
            None if self.answers.len() < ANSWERS_MAX => {
                self.answers.push(Answer { told, nodes: 0 });
                self.answers.len() - 1
            }
            None => {
                // One that no Node gives any more.
                let number = self.answers.iter().position(|it| it.nodes == 0)?;
                self.answers[number].told = told;
                number
            }
        };
        let number = u16::try_from(number).ok()?;
        self.put(slot, number, loss);
        Some(number)
    }

    fn put(&mut self, slot: Slot, number: u16, loss: Option<Loss>) {
        let before = std::mem::replace(&mut self.of_slot[slot as usize], number);
        if before != number {
            if let Some(answer) = self.answers.get_mut(usize::from(before)) {
                answer.nodes -= 1;
            }
            if let Some(answer) = self.answers.get_mut(usize::from(number)) {
                answer.nodes += 1;
            }
        }
        if loss.is_some() && self.losses.is_none() {
            self.losses = Some(Losses::new(self.of_slot.len()));
        }
        if let Some(losses) = &mut self.losses {
            losses.put(slot, loss);
        }
    }

    fn settle(&mut self, slot: Slot) {
        if let Some(losses) = &mut self.losses {
            losses.settle(slot);
        }
    }

    /// Answers a question of a Pod to which one Node says something else than to others of its kind.
    pub fn with<T>(
        &mut self,
        own: Option<Own>,
        answer: impl FnOnce(&Self, Option<&Own>) -> Option<T>,
    ) -> Option<T> {
        let Some(own) = own else { return answer(self, None) };
        let loss = self.losses.as_ref().and_then(|it| it.get(own.slot));
        let told = self.told(own.slot)?.clone();
        let (outcome, own_loss) = outcome_of(own.found.clone().map(|candidate| candidate.loss));
        self.write(own.slot, Told { reasons: own.reasons.clone(), outcome }, own_loss)?;
        self.settle(own.slot);
        let answer = answer(self, Some(&own));
        self.write(own.slot, told, loss)?;
        self.settle(own.slot);
        answer
    }

    /// What the Node says, if there is one.
    pub fn told(&self, slot: Slot) -> Option<&Told> {
        let number = self.of_slot.get(slot as usize).copied()?;
        self.answers.get(usize::from(number)).map(|it| &it.told)
    }

    /// One of the Nodes where the loss is smallest.
    pub fn any_least(&self, rng: &mut Rng) -> Option<Slot> {
        self.losses.as_ref()?.any_least(rng)
    }

    #[cfg(test)]
    pub fn all_least(&self) -> Vec<Slot> {
        self.losses.as_ref().map(Losses::all_least).unwrap_or_default()
    }

    /// kube-scheduler's words for why preemption helps nowhere.
    pub fn not_helpful(&self, nodes: usize) -> String {
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for answer in self.answers.iter().filter(|it| it.nodes > 0) {
            let Outcome::Refused(refusal) = &answer.told.outcome else { continue };
            for text in refusal.texts() {
                *refused.entry(text).or_default() += answer.nodes;
            }
        }
        nodes_available(nodes, &refused)
    }

    /// Why the Nodes cannot take the Pod, in the order of the first that says so.
    pub fn reasons(&self, rows: &Rows) -> Vec<ReasonCount> {
        let mut found: Vec<(&Reason, usize, Examples)> = Vec::new();
        for (Answer { told, nodes }, slots) in self.answers.iter().zip(self.examples()) {
            for (place, reason) in told.reasons.iter().enumerate().filter(|_| *nodes > 0) {
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

    /// The first Nodes that give each answer.
    fn examples(&self) -> Vec<Vec<Slot>> {
        let mut examples = vec![Vec::new(); self.answers.len()];
        let mut missing: usize =
            self.answers.iter().map(|answer| answer.nodes.min(EXAMPLES_MAX)).sum();
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
        self.losses.is_some()
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let losses = self.losses.as_ref().map_or(0, Losses::bytes);
        losses + self.of_slot.len() * size_of::<u16>() + self.answers.len() * ANSWER_BYTES
    }
}

/// `None`: there are Pods that were promised the Node, and the class does not tell what they take.
fn room_class(slot: Slot, basis: Basis<'_>) -> Option<RoomClass> {
    let row = basis.ground.rows.row(slot);
    let number = basis.of.number(slot);
    let class = (number, row.allocatable, row.held, row.pods, row.pods_max, row.lowest_priority);
    (row.nominated == 0).then_some(class)
}

impl Kind {
    /// What preemption would do on the Node, which rejects the Pod for these reasons, if that takes no look at its
    /// Pods.
    fn outcome_by_class(
        &self,
        slot: Slot,
        basis: Basis<'_>,
        reasons: &[Reason],
    ) -> Option<Outcome> {
        let is_switched_off = self.pod.preemption_policy == PreemptionPolicy::Never
            || basis.view.rules.switched_off.preemption;
        if reasons.is_empty() {
            Some(Outcome::NotNeeded)
        } else if is_switched_off {
            Some(Outcome::NotAllowed)
        } else if reasons.iter().any(Reason::is_unresolvable) {
            Some(Outcome::Refused(Refusal::NotHelpful))
        } else if basis.ground.rows.row(slot).lowest_priority >= self.pod.priority {
            Some(Outcome::Refused(Refusal::NoVictims))
        } else {
            None
        }
    }

    /// The same with a look at them. `None`: only the plain rules can tell.
    pub fn outcome(
        &self,
        slot: Slot,
        basis: Basis<'_>,
        reasons: &[Reason],
    ) -> Option<(Outcome, Option<Loss>)> {
        if let Some(outcome) = self.outcome_by_class(slot, basis, reasons) {
            return Some((outcome, None));
        }
        let found = self.victims_by_room(slot, basis)?;
        Some(outcome_of(found.map(|victims| victims.loss)))
    }
}

pub(super) fn outcome_of(found: Result<Loss, Refusal>) -> (Outcome, Option<Loss>) {
    match found {
        Ok(loss) => (Outcome::Possible, Some(loss)),
        Err(refusal) => (Outcome::Refused(refusal), None),
    }
}
