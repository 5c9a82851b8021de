//! Why a kind of Pod fits nowhere, and who would have to go so that it does.

use model::{ClusterPod, NodeName, NodeSelector, PodUid, PreemptionPolicy};
use rules::{Candidate, Ineligible, Reason, candidates, has_leaving_victims};

use super::kinds::{Kind, KindId, KindKey};
use super::outlook::{Outcome, Outlook, Told, outcome_of};
use super::rows::Slot;
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
    /// To be asked after `choose` has found nothing, of a Pod that was promised a Node and does not fit there, or of
    /// any of its kind that was promised nothing. `None`: only the plain rules can tell.
    pub fn why_nowhere(
        &mut self,
        view: View<'_>,
        key: &KindKey,
        promised: Option<&ClusterPod>,
        rng: &mut Rng,
    ) -> Option<WhyNowhere> {
        if few_named(view.rules, key).is_some() {
            return None;
        }
        let id = self.ready(view, key)?;
        if let Some(pod) = promised {
            let instead = self.on_promised(id, view, pod)?.own();
            return self.with_outlook(id, view, |kind, outlook, basis| {
                outlook.with(instead, |outlook, own| kind.why(outlook, basis, own, rng))
            });
        }
        let now = self.ground.log.end();
        let known = self.kinds.get(id)?.nowhere.as_ref();
        if let Some((_, why)) = known.filter(|(at, _)| *at == now) {
            return Some(why.clone());
        }
        let why = self
            .with_outlook(id, view, |kind, outlook, basis| kind.why(outlook, basis, None, rng))?;
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
        answer: impl FnOnce(&Kind, &mut Outlook, Basis<'_>) -> Option<T>,
    ) -> Option<T> {
        let Self { ground, statics, kinds, standing_bytes, .. } = self;
        let kind = kinds.get_mut(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        let known = kind.outlook.take().filter(|_| kind.constraints.are_soft());
        let followed = known.and_then(|mut it| it.follow(kind, basis).map(|()| it));
        let is_new = followed.is_none();
        let mut outlook = match followed {
            Some(outlook) => outlook,
            None => Outlook::new(kind, basis)?,
        };
        let answer = answer(kind, &mut outlook, basis)?;
        // Most kinds that fit nowhere are asked about once; and what takes no time to find out is not worth keeping.
        let is_kept = std::mem::replace(&mut kind.was_asked_why, true) || outlook.is_costly();
        if is_kept && kind.constraints.are_soft() {
            if is_new {
                *standing_bytes += outlook.bytes();
            }
            kind.outlook = Some(outlook);
        }
        Some(answer)
    }

    /// What the Node that the Pod was promised says to this very Pod: its own promise is not in its way. `None`: only
    /// the plain rules can tell.
    fn on_promised(&self, id: KindId, view: View<'_>, pod: &ClusterPod) -> Option<Promised> {
        let kind = self.kinds.get(id)?;
        let required = pod.node_affinity.required.as_ref();
        let names_nodes = required.and_then(NodeSelector::named_nodes).is_some();
        // Other Nodes then tell what the promised one said.
        if names_nodes || !kind.constraints.are_soft() {
            return None;
        }
        let name = pod.nominated_node.as_ref()?;
        let Some(node) = view.cluster.nodes.get(name) else {
            return Some(Promised::Gone);
        };
        let slot = self.ground.rows.slot_of(name)?;
        let reasons = rules::filter(view.rules, view.cluster, pod, node);
        let is_hopeless = reasons.iter().any(Reason::is_unresolvable);
        let waits = !is_hopeless && has_leaving_victims(view.cluster, pod, name);
        let found = if is_hopeless {
            Err(rules::Refusal::NotHelpful)
        } else {
            let one = std::iter::once(name);
            let (mut found, mut refused) = candidates(view.rules, view.cluster, pod, one)?;
            let refused = refused.remove(name).map(Err);
            found.remove(name).map(Ok).or(refused)?
        };
        Some(Promised::There(Own { slot, waits, reasons, found }))
    }

    /// What one Node is to the kind. `None`: only the plain rules can tell.
    pub fn chance_on(&mut self, view: View<'_>, key: &KindKey, node: &NodeName) -> Option<Chance> {
        if let Some(mut named) = few_named(view.rules, key) {
            return (!named.any(|it| it == node)).then_some(Chance::None);
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
        promised: Option<&ClusterPod>,
    ) -> Option<Vec<(NodeName, Vec<PodUid>)>> {
        let id = self.ready(view, key)?;
        let instead = match promised {
            Some(pod) => self.on_promised(id, view, pod)?.own(),
            None => None,
        };
        self.with_outlook(id, view, |kind, outlook, basis| {
            outlook.with(instead, |outlook, own| {
                let slots = outlook.all_least().into_iter();
                slots.map(|slot| kind.clearing(slot, basis, own)).collect()
            })
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
    /// What one Node says. `None`: only the plain rules can tell.
    fn told(&self, slot: Slot, basis: Basis<'_>) -> Option<Told> {
        let mut reasons = Vec::new();
        self.reasons(slot, basis, &mut reasons);
        let (outcome, _) = match self.outcome(slot, basis, &reasons) {
            Some(outcome) => outcome,
            None => outcome_of(self.candidate(slot, basis)?.map(|candidate| candidate.loss)),
        };
        Some(Told { reasons, outcome })
    }

    fn why(
        &self,
        outlook: &Outlook,
        basis: Basis<'_>,
        own: Option<&Own>,
        rng: &mut Rng,
    ) -> Option<WhyNowhere> {
        let preemption = self.remedy(outlook, basis, own, rng)?;
        Some(WhyNowhere { reasons: outlook.reasons(&basis.ground.rows), preemption })
    }

    /// The smallest loss, or why there is no way. `None`: only the plain rules can tell.
    fn remedy(
        &self,
        outlook: &Outlook,
        basis: Basis<'_>,
        own: Option<&Own>,
        rng: &mut Rng,
    ) -> Option<Remedy> {
        if basis.view.rules.switched_off.preemption {
            return Some(Remedy::NotTried);
        }
        if self.pod.preemption_policy == PreemptionPolicy::Never {
            return Some(Remedy::NotEligible(Ineligible::PolicyNever));
        }
        if own.is_some_and(|own| own.waits) {
            return Some(Remedy::NotEligible(Ineligible::VictimsTerminating));
        }
        let Some(slot) = outlook.any_least(rng) else {
            return Some(Remedy::NotHelpful(outlook.not_helpful(basis.ground.rows.nodes())));
        };
        let (node, victims) = self.clearing(slot, basis, own)?;
        Some(Remedy::Possible(node, victims))
    }

    /// Who would have to leave a Node where preemption helps.
    fn clearing(
        &self,
        slot: Slot,
        basis: Basis<'_>,
        own: Option<&Own>,
    ) -> Option<(NodeName, Vec<PodUid>)> {
        let candidate = match own.filter(|own| own.slot == slot) {
            Some(own) => own.found.as_ref().ok()?.clone(),
            None => self.candidate(slot, basis)?.ok()?,
        };
        Some((basis.ground.rows.name(slot)?.clone(), candidate.victims))
    }

    fn candidate(&self, slot: Slot, basis: Basis<'_>) -> Option<Result<Candidate, rules::Refusal>> {
        let by_room = self.victims_by_room(slot, basis).map(|it| it.map(Candidate::from));
        by_room.or_else(|| {
            let node = basis.ground.rows.name(slot)?;
            let view = basis.view;
            let (mut found, mut refused) =
                candidates(view.rules, view.cluster, &self.pod, std::iter::once(node))?;
            let refused = refused.remove(node).map(Err);
            found.remove(node).map(Ok).or(refused)
        })
    }
}

/// The Node that a Pod was promised.
enum Promised {
    Gone,
    There(Own),
}

impl Promised {
    fn own(self) -> Option<Own> {
        match self {
            Self::Gone => None,
            Self::There(own) => Some(own),
        }
    }
}

/// What a Pod has at the Node that it was promised.
pub(super) struct Own {
    pub slot: Slot,
    /// For those to leave whom it has sent away.
    waits: bool,
    pub reasons: Vec<Reason>,
    pub found: Result<Candidate, rules::Refusal>,
}
