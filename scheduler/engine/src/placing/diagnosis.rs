//! Why a class of Pods fits on no Node, and which preemption would help (kube-scheduler's Diagnosis and PostFilter).

use model::{ClusterPod, NodeName, NodeSelector, PodUid, PreemptionPolicy};
use rules::{Candidate, Ineligible, Reason, VolumeNeeds, candidates, has_leaving_victims};

use super::pod_classes::{PodClass, PodClassId, PodClassKey};
use super::rows::Slot;
use super::score_cache::Context;
use super::unschedulable_cache::{
    NodeDiagnosis, PreemptionOutcome, UnschedulableCache, outcome_of,
};
use super::{Placing, View, few_named};
use crate::rejection::ReasonCount;
use crate::rng::Rng;

/// Why no Node fits, and what preemption would do.
#[derive(Clone, Debug)]
pub(crate) struct Diagnosis {
    pub reasons: Vec<ReasonCount>,
    pub preemption: PreemptionResult,
}

/// What preemption would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreemptionResult {
    /// Preemption is switched off in the profile.
    NotTried,
    NotEligible(Ineligible),
    /// kube-scheduler's words for it.
    NotHelpful(String),
    /// One of the Nodes where the cost is lowest, with the victims.
    Possible(NodeName, Vec<PodUid>),
}

/// What one Node offers to a class of Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    Feasible,
    /// After a preemption.
    Preemptible,
    None,
}

impl Placing {
    /// To be called after `choose` has found no Node: with a Pod that is nominated for a Node and does not fit there, or
    /// without one, for all Pods of the class that are not nominated. `None`: only the plain rules can tell.
    pub fn diagnose(
        &mut self,
        view: View<'_>,
        key: &PodClassKey,
        nominated: Option<&ClusterPod>,
        rng: &mut Rng,
    ) -> Option<Diagnosis> {
        let is_unknown = |it: &VolumeNeeds| !it.has_known_reasons();
        if few_named(view.rules, key).is_some() || key.volumes.as_deref().is_some_and(is_unknown) {
            return None;
        }
        let id = self.ready(view, key)?;
        if let Some(pod) = nominated {
            let instead = self.on_nominated(id, view, pod)?.own();
            return self.with_unschedulable(id, view, |class, unschedulable, context| {
                unschedulable
                    .with(instead, |unschedulable, own| class.why(unschedulable, context, own, rng))
            });
        }
        let now = self.index.log.end();
        let known = self.classes.get(id)?.diagnosis.as_ref();
        if let Some((_, why)) = known.filter(|(at, _)| *at == now) {
            return Some(why.clone());
        }
        let why = self.with_unschedulable(id, view, |class, unschedulable, context| {
            class.why(unschedulable, context, None, rng)
        })?;
        // The victims depend on budgets, too.
        if !matches!(why.preemption, PreemptionResult::Possible(..)) {
            self.classes.get_mut(id)?.diagnosis = Some((now, why.clone()));
        }
        Some(why)
    }

    /// Answers a question from the diagnosis of all Nodes. It is kept if the diagnosis of each Node depends on that Node
    /// alone.
    fn with_unschedulable<T>(
        &mut self,
        id: PodClassId,
        view: View<'_>,
        answer: impl FnOnce(&PodClass, &mut UnschedulableCache, Context<'_>) -> Option<T>,
    ) -> Option<T> {
        let Self { index, statics, classes, cache_bytes, .. } = self;
        let class = classes.get_mut(id)?;
        let context = Context { view, index, groups: statics.of(class.static_id) };
        let known = class.unschedulable.take().filter(|_| class.constraints.are_soft());
        let followed = known.and_then(|mut it| it.follow(class, context).map(|()| it));
        let is_new = followed.is_none();
        let mut unschedulable = match followed {
            Some(unschedulable) => unschedulable,
            None => UnschedulableCache::new(class, context)?,
        };
        let answer = answer(class, &mut unschedulable, context)?;
        // Most classes that fit nowhere are diagnosed once, and what is cheap to compute is not worth keeping.
        let is_kept =
            std::mem::replace(&mut class.was_diagnosed, true) || unschedulable.is_costly();
        if is_kept && class.constraints.are_soft() {
            if is_new {
                *cache_bytes += unschedulable.bytes();
            }
            class.unschedulable = Some(unschedulable);
        }
        Some(answer)
    }

    /// The diagnosis of the nominated Node for the nominated Pod itself: its own nomination is not in its way. `None`: only
    /// the plain rules can tell.
    fn on_nominated(
        &self,
        id: PodClassId,
        view: View<'_>,
        pod: &ClusterPod,
    ) -> Option<NominatedNode> {
        let class = self.classes.get(id)?;
        let required = pod.node_affinity.required.as_ref();
        let names_nodes = required.and_then(NodeSelector::named_nodes).is_some();
        // The other Nodes then give the reason of the nominated one.
        if names_nodes || !class.constraints.are_soft() {
            return None;
        }
        let name = pod.nominated_node.as_ref()?;
        let Some(node) = view.cluster.nodes.get(name) else {
            return Some(NominatedNode::Gone);
        };
        let slot = self.index.rows.slot_of(name)?;
        let reasons = rules::filter(view.rules, view.cluster, pod, node);
        let is_hopeless = reasons.iter().any(Reason::is_unresolvable);
        let waits = !is_hopeless && has_leaving_victims(view.cluster, pod, name);
        let found = if is_hopeless {
            Err(rules::PreemptionRefusal::NotHelpful)
        } else {
            let one = std::iter::once(name);
            let (mut found, mut refused) = candidates(view.rules, view.cluster, pod, one)?;
            let refused = refused.remove(name).map(Err);
            found.remove(name).map(Ok).or(refused)?
        };
        Some(NominatedNode::There(NominatedFit { slot, waits, reasons, found }))
    }

    /// What one Node offers to the class. `None`: only the plain rules can tell.
    pub fn chance_on(
        &mut self,
        view: View<'_>,
        key: &PodClassKey,
        node: &NodeName,
    ) -> Option<Chance> {
        if let Some(mut named) = few_named(view.rules, key) {
            return (!named.any(|it| it == node)).then_some(Chance::None);
        }
        let id = self.ready(view, key)?;
        let Some(slot) = self.index.rows.slot_of(node) else { return Some(Chance::None) };
        if self.classes.get(id)?.unschedulable.is_some() {
            return self.with_unschedulable(id, view, |_, unschedulable, _| {
                unschedulable.diagnosis(slot).map(Chance::of)
            });
        }
        let class = self.classes.get(id)?;
        let context =
            Context { view, index: &self.index, groups: self.statics.of(class.static_id) };
        class.diagnosis(slot, context).as_ref().map(Chance::of)
    }

    /// The same of all Nodes that have one.
    pub fn chances(
        &mut self,
        view: View<'_>,
        key: &PodClassKey,
    ) -> Option<Vec<(NodeName, Chance)>> {
        if few_named(view.rules, key).is_some() {
            return None;
        }
        let id = self.ready(view, key)?;
        self.with_unschedulable(id, view, |_, unschedulable, context| {
            let rows = &context.index.rows;
            let chance =
                |slot| Some((rows.name(slot)?, Chance::of(unschedulable.diagnosis(slot)?)));
            let chances = rows.slots().filter_map(chance).filter(|(_, it)| *it != Chance::None);
            Some(chances.map(|(name, chance)| (name.clone(), chance)).collect())
        })
    }

    /// All the Nodes that `diagnose` chooses from.
    #[cfg(test)]
    pub fn all_preemptions(
        &mut self,
        view: View<'_>,
        key: &PodClassKey,
        nominated: Option<&ClusterPod>,
    ) -> Option<Vec<(NodeName, Vec<PodUid>)>> {
        let id = self.ready(view, key)?;
        let instead = match nominated {
            Some(pod) => self.on_nominated(id, view, pod)?.own(),
            None => None,
        };
        self.with_unschedulable(id, view, |class, unschedulable, context| {
            unschedulable.with(instead, |unschedulable, own| {
                let slots = unschedulable.all_cheapest().into_iter();
                slots.map(|slot| class.clearing(slot, context, own)).collect()
            })
        })
    }
}

impl Chance {
    fn of(diagnosis: &NodeDiagnosis) -> Self {
        match diagnosis.outcome {
            PreemptionOutcome::NotNeeded => Self::Feasible,
            PreemptionOutcome::Possible => Self::Preemptible,
            PreemptionOutcome::NotAllowed | PreemptionOutcome::Refused(_) => Self::None,
        }
    }
}

impl PodClass {
    /// The diagnosis of one Node. `None`: only the plain rules can tell.
    fn diagnosis(&self, slot: Slot, context: Context<'_>) -> Option<NodeDiagnosis> {
        let mut reasons = Vec::new();
        self.reasons(slot, context, &mut reasons);
        let (outcome, _) = match self.outcome(slot, context, &reasons) {
            Some(outcome) => outcome,
            None => outcome_of(self.candidate(slot, context)?.map(|candidate| candidate.cost)),
        };
        Some(NodeDiagnosis { reasons, outcome })
    }

    fn why(
        &self,
        unschedulable: &UnschedulableCache,
        context: Context<'_>,
        own: Option<&NominatedFit>,
        rng: &mut Rng,
    ) -> Option<Diagnosis> {
        let preemption = self.preemption(unschedulable, context, own, rng)?;
        Some(Diagnosis { reasons: unschedulable.reasons(&context.index.rows), preemption })
    }

    /// The cheapest preemption, or why there is none. `None`: only the plain rules can tell.
    fn preemption(
        &self,
        unschedulable: &UnschedulableCache,
        context: Context<'_>,
        own: Option<&NominatedFit>,
        rng: &mut Rng,
    ) -> Option<PreemptionResult> {
        if context.view.rules.switched_off.preemption {
            return Some(PreemptionResult::NotTried);
        }
        if self.pod.preemption_policy == PreemptionPolicy::Never {
            return Some(PreemptionResult::NotEligible(Ineligible::PolicyNever));
        }
        if own.is_some_and(|own| own.waits) {
            return Some(PreemptionResult::NotEligible(Ineligible::VictimsTerminating));
        }
        let Some(slot) = unschedulable.any_cheapest(rng) else {
            return Some(PreemptionResult::NotHelpful(
                unschedulable.not_helpful(context.index.rows.nodes()),
            ));
        };
        let (node, victims) = self.clearing(slot, context, own)?;
        Some(PreemptionResult::Possible(node, victims))
    }

    /// The victims on a Node where preemption helps.
    fn clearing(
        &self,
        slot: Slot,
        context: Context<'_>,
        own: Option<&NominatedFit>,
    ) -> Option<(NodeName, Vec<PodUid>)> {
        let candidate = match own.filter(|own| own.slot == slot) {
            Some(own) => own.found.as_ref().ok()?.clone(),
            None => self.candidate(slot, context)?.ok()?,
        };
        Some((context.index.rows.name(slot)?.clone(), candidate.victims))
    }

    fn candidate(
        &self,
        slot: Slot,
        context: Context<'_>,
    ) -> Option<Result<Candidate, rules::PreemptionRefusal>> {
        let by_room = self.victims_by_capacity(slot, context).map(|it| it.map(Candidate::from));
        by_room.or_else(|| {
            // The Pod of the class has no claims.
            if self.has_claims() {
                return None;
            }
            let node = context.index.rows.name(slot)?;
            let view = context.view;
            let (mut found, mut refused) =
                candidates(view.rules, view.cluster, &self.pod, std::iter::once(node))?;
            let refused = refused.remove(node).map(Err);
            found.remove(node).map(Ok).or(refused)
        })
    }
}

/// The nominated Node of a Pod.
enum NominatedNode {
    Gone,
    There(NominatedFit),
}

impl NominatedNode {
    fn own(self) -> Option<NominatedFit> {
        match self {
            Self::Gone => None,
            Self::There(own) => Some(own),
        }
    }
}

/// The diagnosis of its nominated Node for a Pod.
pub(super) struct NominatedFit {
    pub slot: Slot,
    /// Its victims there are still terminating.
    waits: bool,
    pub reasons: Vec<Reason>,
    pub found: Result<Candidate, rules::PreemptionRefusal>,
}
