//! Affinity and anti-affinity between Pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{LabelSelector, SelectorError};

/// Which Pods to be near, or away from, and what "near" means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinityTerm {
    /// Nodes with the same value of this label are one place.
    pub topology_key: Arc<str>,
    /// With `matchLabelKeys` and `mismatchLabelKeys` merged in, as the API server stores it
    /// (see [`LabelSelector::with_label_keys`]); kube-scheduler does not look at the keys.
    pub selector: LabelSelector,
    /// The namespaces named; the Pod's own when the term says nothing about namespaces.
    pub namespaces: BTreeSet<Arc<str>>,
    /// `Nothing` when absent, everything for `{}`.
    pub namespace_selector: LabelSelector,
}

impl PodAffinityTerm {
    pub fn new(
        own_namespace: &Arc<str>,
        topology_key: &str,
        selector: LabelSelector,
        namespaces: BTreeSet<Arc<str>>,
        namespace_selector: Option<LabelSelector>,
    ) -> Self {
        let says_nothing = namespaces.is_empty() && namespace_selector.is_none();
        Self {
            topology_key: topology_key.into(),
            selector,
            namespaces: if says_nothing { [own_namespace.clone()].into() } else { namespaces },
            namespace_selector: namespace_selector.unwrap_or_default(),
        }
    }

    pub fn error(&self) -> Option<&SelectorError> {
        self.selector.error().or(self.namespace_selector.error())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightedPodAffinityTerm {
    pub weight: i32,
    pub term: PodAffinityTerm,
}

/// `podAffinity` and `podAntiAffinity` of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinity {
    pub required: Vec<PodAffinityTerm>,
    pub preferred: Vec<WeightedPodAffinityTerm>,
    pub anti_required: Vec<PodAffinityTerm>,
    pub anti_preferred: Vec<WeightedPodAffinityTerm>,
}

impl PodAffinity {
    /// The same, without the lists of which a term cannot be parsed: kube-scheduler gives up
    /// such a list of a Pod that is already on a Node as a whole.
    #[must_use]
    pub fn without_invalid_lists(&self) -> Self {
        let required = |terms: &Vec<PodAffinityTerm>| {
            if terms.iter().any(|it| it.error().is_some()) { Vec::new() } else { terms.clone() }
        };
        let preferred = |terms: &Vec<WeightedPodAffinityTerm>| {
            let invalid = terms.iter().any(|it| it.term.error().is_some());
            if invalid { Vec::new() } else { terms.clone() }
        };
        Self {
            required: required(&self.required),
            preferred: preferred(&self.preferred),
            anti_required: required(&self.anti_required),
            anti_preferred: preferred(&self.anti_preferred),
        }
    }

    pub fn error(&self) -> Option<&SelectorError> {
        let Self { required, preferred, anti_required, anti_preferred } = self;
        let weighted = preferred.iter().chain(anti_preferred).map(|weighted| &weighted.term);
        required.iter().chain(anti_required).chain(weighted).find_map(PodAffinityTerm::error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Labels, RawRequirement};

    #[test]
    fn a_term_without_namespaces_means_its_own() {
        let own: Arc<str> = "team-a".into();
        let term = |names: &[&str], selector| {
            let names = names.iter().map(|name| Arc::from(*name)).collect();
            PodAffinityTerm::new(&own, "zone", LabelSelector::EVERYTHING, names, selector)
        };
        assert!(term(&[], None).namespaces.contains("team-a"));
        assert!(!term(&["team-b"], None).namespaces.contains("team-a"));
        let all = term(&[], Some(LabelSelector::EVERYTHING));
        assert!(all.namespaces.is_empty() && all.namespace_selector.is_everything());
    }

    #[test]
    fn one_invalid_term_gives_up_its_list_only() {
        let own: Arc<str> = "team-a".into();
        let bad = LabelSelector::parse(&Labels::new(), &[RawRequirement::new("a", "In", &[])]);
        let term =
            |selector| PodAffinityTerm::new(&own, "zone", selector, BTreeSet::default(), None);
        let affinity = PodAffinity {
            required: vec![term(LabelSelector::EVERYTHING), term(bad)],
            anti_required: vec![term(LabelSelector::EVERYTHING)],
            ..PodAffinity::default()
        };
        assert!(affinity.error().is_some());
        let kept = affinity.without_invalid_lists();
        assert_eq!((kept.required.len(), kept.anti_required.len()), (0, 1));
    }
}
