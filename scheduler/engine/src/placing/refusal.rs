//! Why a kind of Pod fits nowhere, and who would have to go so that it does.

use std::collections::BTreeMap;

use model::{ClusterPod, NodeName, PodUid, PreemptionPolicy};
use oracle::{Candidate, Ineligible, Reason, Rehearsal, candidate_by, candidates, nodes_available};

use super::asks::{Asks, Missing};
use super::kinds::{Kind, KindId, KindKey};
use super::rows::{Extras, Row, Slot, count};
use super::standing::Basis;
use super::{Placing, View, few_named};
use crate::rejection::ReasonCount;

/// What all Nodes say.
#[derive(Clone, Debug)]
pub(crate) struct WhyNowhere {
    pub reasons: Vec<ReasonCount>,
    pub preemption: Remedy,
}

/// What sending others away would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The profile does without.
    NotTried,
    NotEligible(Ineligible),
    /// kube-scheduler's words for it.
    NotHelpful(String),
    /// The Nodes where the loss is smallest, with who would have to leave. Never empty.
    Possible(Vec<(NodeName, Vec<PodUid>)>),
}

/// What a Node is to a kind of Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    Feasible,
    /// After a preemption.
    Preemptible,
    None,
}

impl Placing {
    /// To be asked after `choose` has found nothing. `None`: only the oracle can tell.
    pub fn why_nowhere(&mut self, view: View<'_>, key: &KindKey) -> Option<WhyNowhere> {
        if few_named(view.rules, key).is_some() {
            return None;
        }
        let id = self.ready(view, key)?;
        let now = self.ground.log.end();
        let known = self.kinds.get(id)?.nowhere.as_ref();
        if let Some((_, why)) = known.filter(|(at, _)| *at == now) {
            return Some(why.clone());
        }
        let why = self.look_why(id, view)?;
        // Who has to go depends on budgets, too.
        if !matches!(why.preemption, Remedy::Possible(_)) {
            self.kinds.get_mut(id)?.nowhere = Some((now, why.clone()));
        }
        Some(why)
    }

    fn look_why(&self, id: KindId, view: View<'_>) -> Option<WhyNowhere> {
        let kind = self.kinds.get(id)?;
        let basis = Basis { view, ground: &self.ground, of: self.statics.of(kind.of) };
        let mut tally = Tally::default();
        let mut hopeful = Vec::new();
        let mut reasons = Vec::new();
        for slot in self.ground.rows.slots() {
            let Some(name) = self.ground.rows.name(slot) else { continue };
            reasons.clear();
            kind.reasons(slot, basis, &mut reasons);
            for reason in &reasons {
                tally.add(reason, name);
            }
            if reasons.iter().any(Reason::is_unresolvable) {
                tally.not_helpful += 1;
            } else if self.ground.rows.row(slot).lowest_priority >= kind.pod.priority {
                tally.no_victims += 1;
            } else {
                hopeful.push(slot);
            }
        }
        let preemption = if view.rules.switched_off.preemption {
            Remedy::NotTried
        } else if kind.pod.preemption_policy == PreemptionPolicy::Never {
            Remedy::NotEligible(Ineligible::PolicyNever)
        } else {
            remedy(kind, basis, &hopeful, tally.refusals())?
        };
        Some(WhyNowhere { reasons: tally.reasons, preemption })
    }

    /// What one Node is to the kind. `None`: only the oracle can tell.
    pub fn chance_on(&mut self, view: View<'_>, key: &KindKey, node: &NodeName) -> Option<Chance> {
        if let Some(mut named) = few_named(view.rules, key) {
            return (!named.any(|it| it == node)).then_some(Chance::None);
        }
        let id = self.ready(view, key)?;
        let kind = self.kinds.get(id)?;
        let Some(slot) = self.ground.rows.slot_of(node) else { return Some(Chance::None) };
        let basis = Basis { view, ground: &self.ground, of: self.statics.of(kind.of) };
        kind.chance(slot, basis)
    }

    /// The same of all Nodes that have one.
    pub fn chances(&mut self, view: View<'_>, key: &KindKey) -> Option<Vec<(NodeName, Chance)>> {
        if few_named(view.rules, key).is_some() {
            return None;
        }
        let id = self.ready(view, key)?;
        let kind = self.kinds.get(id)?;
        let basis = Basis { view, ground: &self.ground, of: self.statics.of(kind.of) };
        let mut chances = Vec::new();
        for slot in self.ground.rows.slots() {
            let Some(name) = self.ground.rows.name(slot) else { continue };
            match kind.chance(slot, basis)? {
                Chance::None => {}
                chance => chances.push((name.clone(), chance)),
            }
        }
        Some(chances)
    }
}

impl Kind {
    fn chance(&self, slot: Slot, basis: Basis<'_>) -> Option<Chance> {
        let mut reasons = Vec::new();
        self.reasons(slot, basis, &mut reasons);
        if reasons.is_empty() {
            return Some(Chance::Feasible);
        }
        let Basis { view, ground, .. } = basis;
        let may_preempt = self.pod.preemption_policy != PreemptionPolicy::Never
            && !view.rules.switched_off.preemption
            && ground.rows.row(slot).lowest_priority < self.pod.priority;
        if !may_preempt || reasons.iter().any(Reason::is_unresolvable) {
            return Some(Chance::None);
        }
        let Some(node) = ground.rows.name(slot) else { return Some(Chance::None) };
        let outcome = if let Some(outcome) = self.candidate_by_room(slot, basis) {
            outcome.is_ok()
        } else {
            let found = candidates(view.rules, view.cluster, &self.pod, std::iter::once(node))?;
            !found.0.is_empty()
        };
        Some(if outcome { Chance::Preemptible } else { Chance::None })
    }

    /// Why the Node cannot take it; nothing when it can.
    fn reasons(&self, slot: Slot, basis: Basis<'_>, reasons: &mut Vec<Reason>) {
        let Basis { view, ground, of } = basis;
        if let Some(rejection) = of.rejection(slot) {
            reasons.extend_from_slice(rejection);
            return;
        }
        let (row, extras) = (ground.rows.row(slot), ground.rows.extras(slot));
        if row.nominated > 0 {
            let node = ground.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
            if let Some(node) = node {
                reasons.extend(oracle::filter(view.rules, view.cluster, &self.pod, node));
            }
            return;
        }
        if self.asks.has_conflict(extras) {
            reasons.push(Reason::HostPorts);
            return;
        }
        missing(&self.asks, row, extras, reasons);
        if reasons.is_empty() {
            reasons.extend(self.constraints.reason(slot, ground));
        }
        let lacks_features = of.group(slot).is_some_and(|it| of.groups()[it].lacks_features);
        if reasons.is_empty() && lacks_features {
            reasons.push(Reason::DeclaredFeatures);
        }
    }

    /// Who would have to go, when room is all that the Node lacks. `None`: other rules have a say.
    fn candidate_by_room(
        &self,
        slot: Slot,
        basis: Basis<'_>,
    ) -> Option<Result<Candidate, oracle::Refusal>> {
        let Basis { view, ground, of } = basis;
        let (row, extras) = (ground.rows.row(slot), ground.rows.extras(slot));
        let lacks_features = of.group(slot).is_none_or(|it| of.groups()[it].lacks_features);
        if !self.constraints.is_empty()
            || !self.asks.ports.is_empty()
            || lacks_features
            || row.nominated > 0
            || ground.rows.is_extreme(slot)
        {
            return None;
        }
        let node = RoomOn { asks: &self.asks, row: row.clone(), extras: extras.clone() };
        let pods = view.cluster.pods_on(ground.rows.name(slot)?);
        let lesser = pods.filter(|other| other.priority < self.pod.priority);
        Some(candidate_by(node, lesser, &view.cluster.budgets))
    }
}

fn missing(asks: &Asks, row: &Row, extras: &Extras, reasons: &mut Vec<Reason>) {
    const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    asks.missing(row, extras, |missing| {
        reasons.push(match missing {
            Missing::Places => Reason::TooManyPods,
            Missing::Standard { index, exceeds_node } => {
                Reason::Insufficient { resource: STANDARD[index].into(), exceeds_node }
            }
            Missing::Scalar { name, exceeds_node } => {
                Reason::Insufficient { resource: name.clone(), exceeds_node }
            }
        });
    });
}

/// A Node on which only room matters.
struct RoomOn<'a> {
    asks: &'a Asks,
    row: Row,
    extras: Extras,
}

impl<'a> Rehearsal<'a> for RoomOn<'_> {
    fn take_away(&mut self, pod: &'a ClusterPod) {
        count(&mut self.row, &mut self.extras, pod, -1);
    }

    fn put_back(&mut self, pod: &'a ClusterPod) {
        count(&mut self.row, &mut self.extras, pod, 1);
    }

    fn rejections(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        missing(self.asks, &self.row, &self.extras, &mut reasons);
        reasons
    }
}

/// The smallest loss, or why there is no way. `None`: only the oracle can tell.
fn remedy(
    kind: &Kind,
    basis: Basis<'_>,
    hopeful: &[Slot],
    mut refused: BTreeMap<String, usize>,
) -> Option<Remedy> {
    let Basis { view, ground, .. } = basis;
    let mut found: Vec<(NodeName, Candidate)> = Vec::new();
    let mut others: Vec<&NodeName> = Vec::new();
    let mut refuse = |refusal: &oracle::Refusal| {
        for text in refusal.texts() {
            *refused.entry(text).or_default() += 1;
        }
    };
    for slot in hopeful {
        let Some(name) = ground.rows.name(*slot) else { continue };
        match kind.candidate_by_room(*slot, basis) {
            Some(Ok(candidate)) => found.push((name.clone(), candidate)),
            Some(Err(refusal)) => refuse(&refusal),
            None => others.push(name),
        }
    }
    if !others.is_empty() {
        let (more, refusals) = candidates(view.rules, view.cluster, &kind.pod, others.into_iter())?;
        found.extend(more);
        refusals.values().for_each(&mut refuse);
    }
    let Some(smallest) = found.iter().map(|(_, candidate)| candidate.loss).min() else {
        return Some(Remedy::NotHelpful(nodes_available(ground.rows.nodes(), &refused)));
    };
    let best = found.into_iter().filter(|(_, candidate)| candidate.loss == smallest);
    Some(Remedy::Possible(best.map(|(node, candidate)| (node, candidate.victims)).collect()))
}

#[derive(Default)]
struct Tally {
    reasons: Vec<ReasonCount>,
    not_helpful: usize,
    no_victims: usize,
}

impl Tally {
    fn add(&mut self, reason: &Reason, node: &NodeName) {
        match self.reasons.iter_mut().find(|known| known.reason == *reason) {
            Some(known) => known.add(node),
            None => self.reasons.push(ReasonCount::of(reason, node)),
        }
    }

    fn refusals(&self) -> BTreeMap<String, usize> {
        let mut refused = BTreeMap::new();
        let counts = [
            (oracle::Refusal::NotHelpful, self.not_helpful),
            (oracle::Refusal::NoVictims, self.no_victims),
        ];
        for (refusal, nodes) in counts.into_iter().filter(|(_, nodes)| *nodes > 0) {
            refused.extend(refusal.texts().into_iter().map(|text| (text, nodes)));
        }
        refused
    }
}
