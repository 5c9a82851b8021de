//! The terms that Pods on Nodes carry, each for as long as some Pod does. Which Pods a term matches is computed once;
//! nothing is left of it when its last carrier goes, because decisions must not depend on Pods of the past.

use std::collections::BTreeMap;

use model::{AffinityTerms, PodAffinityTerm, SchedulingSpec, WeightedPodAffinityTerm};

use super::counters::CounterId;

/// A term of a Pod that is on a Node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Carried {
    KeepAway(PodAffinityTerm),
    /// Affinity that was required when it was placed.
    Together(PodAffinityTerm),
    /// A preference; negative when it would rather be away.
    Prefer(PodAffinityTerm, i64),
}

impl Carried {
    pub fn term(&self) -> &PodAffinityTerm {
        match self {
            Self::KeepAway(term) | Self::Together(term) | Self::Prefer(term, _) => term,
        }
    }
}

/// In the order in which terms came. None is given twice: a term that comes again is another.
pub(super) type TermId = u64;

/// How many terms had come and gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TermsAt {
    pub came: TermId,
    pub gone: u64,
}

#[derive(Debug, Default)]
pub(super) struct CarriedTerms {
    all: BTreeMap<TermId, (CounterId, Carried)>,
    at: TermsAt,
}

impl CarriedTerms {
    pub fn at(&self) -> TermsAt {
        self.at
    }

    /// Those that have come since then and are still carried.
    pub fn since(
        &self,
        at: TermsAt,
    ) -> impl Iterator<Item = (TermId, &(CounterId, Carried))> + use<'_> {
        self.all.range(at.came..).map(|(id, term)| (*id, term))
    }

    pub fn contains(&self, id: TermId) -> bool {
        self.all.contains_key(&id)
    }

    pub fn add(&mut self, counter: CounterId, carried: Carried) -> TermId {
        let id = self.at.came;
        self.at.came += 1;
        self.all.insert(id, (counter, carried));
        id
    }

    pub fn remove(&mut self, id: TermId) {
        self.at.gone += u64::from(self.all.remove(&id).is_some());
    }
}

/// The terms that a Pod on a Node carries, but for lists that cannot be parsed.
pub(super) fn carried_by(scheduling: &SchedulingSpec) -> impl Iterator<Item = Carried> + '_ {
    let affinity = &scheduling.pod_affinity;
    let keep_away = affinity.anti_required.usable().iter().cloned().map(Carried::KeepAway);
    let together = affinity.required.usable().iter().cloned().map(Carried::Together);
    let prefer = |sign: i64| {
        move |weighted: &WeightedPodAffinityTerm| {
            Carried::Prefer(weighted.term.clone(), sign * i64::from(weighted.weight))
        }
    };
    let near = affinity.preferred.usable().iter().map(prefer(1));
    let away = affinity.anti_preferred.usable().iter().map(prefer(-1));
    keep_away.chain(together).chain(near).chain(away)
}
