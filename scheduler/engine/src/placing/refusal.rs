//! Why a kind of Pod fits nowhere, and who would have to go so that it does.

use model::{ClusterPod, NodeName, PodUid, PreemptionPolicy};
use oracle::{Candidate, Ineligible, Reason, Rehearsal, candidate_by, candidates};

use super::asks::{Asks, Missing};
use super::kinds::{Kind, KindId, KindKey};
use super::outlook::{Outcome, Outlook, Told, outcome_of};
use super::rows::{Extras, Row, Slot, count, is_extreme};
use super::standing::Basis;
use super::{Placing, View, few_named};
use crate::rejection::ReasonCount;
use crate::rng::Rng;

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
    /// One of the Nodes where the loss is smallest, with who would have to leave.
    Possible(NodeName, Vec<PodUid>),
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
    pub fn why_nowhere(
        &mut self,
        view: View<'_>,
        key: &KindKey,
        rng: &mut Rng,
    ) -> Option<WhyNowhere> {
        if few_named(view.rules, key).is_some() {
            return None;
        }
        let id = self.ready(view, key)?;
        let now = self.ground.log.end();
        let known = self.kinds.get(id)?.nowhere.as_ref();
        if let Some((_, why)) = known.filter(|(at, _)| *at == now) {
            return Some(why.clone());
        }
        let why = self.with_outlook(id, view, |kind, outlook, basis| {
            let preemption = kind.remedy(outlook, basis, rng)?;
            Some(WhyNowhere { reasons: outlook.reasons(&basis.ground.rows), preemption })
        })?;
        // Who has to go depends on budgets, too.
        if !matches!(why.preemption, Remedy::Possible(..)) {
            self.kinds.get_mut(id)?.nowhere = Some((now, why.clone()));
        }
        Some(why)
    }

    /// Answers a question by what all Nodes say now. That is remembered if what one Node says depends on that
    /// Node alone.
    fn with_outlook<T>(
        &mut self,
        id: KindId,
        view: View<'_>,
        answer: impl FnOnce(&Kind, &Outlook, Basis<'_>) -> Option<T>,
    ) -> Option<T> {
        let Self { ground, statics, kinds, .. } = self;
        let kind = kinds.get_mut(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        let known = kind.outlook.take().filter(|_| kind.constraints.are_soft());
        let followed = known.and_then(|mut it| it.follow(kind, basis).map(|()| it));
        let outlook = match followed {
            Some(outlook) => outlook,
            None => Outlook::new(kind, basis)?,
        };
        let answer = answer(kind, &outlook, basis);
        kind.outlook = kind.constraints.are_soft().then_some(outlook);
        answer
    }

    /// What one Node is to the kind. `None`: only the oracle can tell.
    pub fn chance_on(&mut self, view: View<'_>, key: &KindKey, node: &NodeName) -> Option<Chance> {
        if let Some(named) = few_named(view.rules, key) {
            return (!named.contains(node)).then_some(Chance::None);
        }
        let id = self.ready(view, key)?;
        let Some(slot) = self.ground.rows.slot_of(node) else { return Some(Chance::None) };
        if self.kinds.get(id)?.outlook.is_some() {
            return self.with_outlook(id, view, |_, outlook, _| outlook.told(slot).map(Chance::of));
        }
        let kind = self.kinds.get(id)?;
        let basis = Basis { view, ground: &self.ground, of: self.statics.of(kind.of) };
        kind.told(slot, basis).as_ref().map(Chance::of)
    }

    /// The same of all Nodes that have one.
    pub fn chances(&mut self, view: View<'_>, key: &KindKey) -> Option<Vec<(NodeName, Chance)>> {
        if few_named(view.rules, key).is_some() {
            return None;
        }
        let id = self.ready(view, key)?;
        self.with_outlook(id, view, |_, outlook, basis| {
            let rows = &basis.ground.rows;
            let chance = |slot| Some((rows.name(slot)?, Chance::of(outlook.told(slot)?)));
            let chances = rows.slots().filter_map(chance).filter(|(_, it)| *it != Chance::None);
            Some(chances.map(|(name, chance)| (name.clone(), chance)).collect())
        })
    }

    /// All the Nodes that `why_nowhere` chooses from.
    #[cfg(test)]
    pub fn all_remedies(
        &mut self,
        view: View<'_>,
        key: &KindKey,
    ) -> Option<Vec<(NodeName, Vec<PodUid>)>> {
        let id = self.ready(view, key)?;
        self.with_outlook(id, view, |kind, outlook, basis| {
            outlook.all_least().into_iter().map(|slot| kind.clearing(slot, basis)).collect()
        })
    }
}

impl Chance {
    fn of(told: &Told) -> Self {
        match told.outcome {
            Outcome::NotNeeded => Self::Feasible,
            Outcome::Possible => Self::Preemptible,
            Outcome::NotAllowed | Outcome::Refused(_) => Self::None,
        }
    }
}

impl Kind {
    /// What one Node says. `None`: only the oracle can tell.
    fn told(&self, slot: Slot, basis: Basis<'_>) -> Option<Told> {
        let mut reasons = Vec::new();
        self.reasons(slot, basis, &mut reasons);
        let (outcome, _) = match self.outcome(slot, basis, &reasons) {
            Some(outcome) => outcome,
            None => outcome_of(self.candidate(slot, basis)?),
        };
        Some(Told { reasons, outcome })
    }

    /// The smallest loss, or why there is no way. `None`: only the oracle can tell.
    fn remedy(&self, outlook: &Outlook, basis: Basis<'_>, rng: &mut Rng) -> Option<Remedy> {
        if basis.view.rules.switched_off.preemption {
            return Some(Remedy::NotTried);
        }
        if self.pod.preemption_policy == PreemptionPolicy::Never {
            return Some(Remedy::NotEligible(Ineligible::PolicyNever));
        }
        let Some(slot) = outlook.any_least(rng) else {
            return Some(Remedy::NotHelpful(outlook.not_helpful(basis.ground.rows.nodes())));
        };
        let (node, victims) = self.clearing(slot, basis)?;
        Some(Remedy::Possible(node, victims))
    }

    /// Who would have to leave a Node where preemption helps.
    fn clearing(&self, slot: Slot, basis: Basis<'_>) -> Option<(NodeName, Vec<PodUid>)> {
        let candidate = self.candidate(slot, basis)?.ok()?;
        Some((basis.ground.rows.name(slot)?.clone(), candidate.victims))
    }

    fn candidate(
        &self,
        slot: Slot,
        basis: Basis<'_>,
    ) -> Option<Result<Candidate, oracle::Refusal>> {
        let by_room = self.candidate_by_room(slot, basis);
        by_room.or_else(|| {
            let node = basis.ground.rows.name(slot)?;
            let view = basis.view;
            let (mut found, mut refused) =
                candidates(view.rules, view.cluster, &self.pod, std::iter::once(node))?;
            let refused = refused.remove(node).map(Err);
            found.remove(node).map(Ok).or(refused)
        })
    }

    /// Why the Node cannot take it; nothing when it can.
    pub fn reasons(&self, slot: Slot, basis: Basis<'_>, reasons: &mut Vec<Reason>) {
        let Basis { view, ground, of } = basis;
        if let Some(rejection) = of.rejection(slot) {
            reasons.extend_from_slice(rejection);
            return;
        }
        let Some(room) = self.room_on(slot, basis) else {
            let node = ground.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
            if let Some(node) = node {
                reasons.extend(oracle::filter(view.rules, view.cluster, &self.pod, node));
            }
            return;
        };
        if self.asks.has_conflict(ground.rows.extras(slot)) {
            reasons.push(Reason::HostPorts);
            return;
        }
        match &room {
            Room::AsItIs(row, extras) => missing(&self.asks, row, extras, reasons),
            Room::BesidePromised(room) => missing(&self.asks, &room.row, &room.extras, reasons),
        }
        if reasons.is_empty() {
            reasons.extend(self.constraints.reason(slot, ground));
        }
        let lacks_features = of.group(slot).is_some_and(|it| of.groups()[it].lacks_features);
        if reasons.is_empty() && lacks_features {
            reasons.push(Reason::DeclaredFeatures);
        }
    }

    /// Whether it has room beside those who were promised the Node.
    pub fn fits_beside_promised(&self, slot: Slot, basis: Basis<'_>) -> bool {
        match self.room_on(slot, basis) {
            Some(Room::AsItIs(row, extras)) => self.asks.fits(row, extras),
            Some(Room::BesidePromised(room)) => room.fits(),
            None => {
                let Basis { view, ground, .. } = basis;
                let node = ground.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
                node.is_some_and(|node| {
                    oracle::filter(view.rules, view.cluster, &self.pod, node).is_empty()
                })
            }
        }
    }

    /// What there is on the Node, with those who were promised it and whom the Pod must not push aside: they count
    /// as if they were there. `None`: they take more than room, and only the oracle can tell.
    fn room_on<'a>(&'a self, slot: Slot, basis: Basis<'a>) -> Option<Room<'a>> {
        let Basis { view, ground, .. } = basis;
        let (row, extras) = (ground.rows.row(slot), ground.rows.extras(slot));
        if row.nominated == 0 {
            return Some(Room::AsItIs(row, extras));
        }
        let promised = view.cluster.promised(ground.rows.name(slot)?);
        let mut promised = promised.filter(|it| it.priority >= self.pod.priority).peekable();
        if promised.peek().is_none() {
            return Some(Room::AsItIs(row, extras));
        }
        if !self.constraints.are_soft()
            || !self.asks.ports.is_empty()
            || ground.rows.is_extreme(slot)
        {
            return None;
        }
        let mut room = RoomOn { asks: &self.asks, row: row.clone(), extras: extras.clone() };
        for pod in promised {
            if is_extreme(pod) || !pod.pod_affinity.anti_required.is_empty() {
                return None;
            }
            count(&mut room.row, &mut room.extras, pod, 1);
        }
        Some(Room::BesidePromised(room))
    }

    /// Who would have to go, when room is all that the Node lacks. `None`: other rules have a say.
    pub fn candidate_by_room(
        &self,
        slot: Slot,
        basis: Basis<'_>,
    ) -> Option<Result<Candidate, oracle::Refusal>> {
        let Basis { view, ground, of } = basis;
        let lacks_features = of.group(slot).is_none_or(|it| of.groups()[it].lacks_features);
        if !self.constraints.are_soft()
            || !self.asks.ports.is_empty()
            || lacks_features
            || ground.rows.is_extreme(slot)
        {
            return None;
        }
        let node = match self.room_on(slot, basis)? {
            Room::AsItIs(row, extras) => {
                RoomOn { asks: &self.asks, row: row.clone(), extras: extras.clone() }
            }
            Room::BesidePromised(room) => room,
        };
        let pods = view.cluster.pods_on(ground.rows.name(slot)?);
        let lesser = pods.filter(|other| other.priority < self.pod.priority);
        Some(candidate_by(node, lesser, &view.cluster.budgets))
    }
}

/// What there is on a Node, as far as room goes.
enum Room<'a> {
    AsItIs(&'a Row, &'a Extras),
    BesidePromised(RoomOn<'a>),
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

    fn fits(&self) -> bool {
        let mut fits = true;
        self.asks.missing(&self.row, &self.extras, |_| fits = false);
        fits
    }
}
