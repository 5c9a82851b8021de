//! Affinity and anti-affinity between Pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, SelectorError};

/// Which Pods to be near, or away from, and what "near" means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WeightedPodAffinityTerm {
    pub weight: i32,
    pub term: PodAffinityTerm,
}

/// Terms that stand in one list.
pub trait AffinityTerms {
    /// The list, or nothing when one of its terms cannot be parsed: kube-scheduler gives up such
    /// a list of a Pod that is already on a Node as a whole.
    fn usable(&self) -> &Self;
}

impl AffinityTerms for [PodAffinityTerm] {
    fn usable(&self) -> &Self {
        if self.iter().any(|term| term.error().is_some()) { &[] } else { self }
    }
}

impl AffinityTerms for [WeightedPodAffinityTerm] {
    fn usable(&self) -> &Self {
        if self.iter().any(|weighted| weighted.term.error().is_some()) { &[] } else { self }
    }
}

/// `podAffinity` and `podAntiAffinity` of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    pub required: Vec<PodAffinityTerm>,
    pub preferred: Vec<WeightedPodAffinityTerm>,
    pub anti_required: Vec<PodAffinityTerm>,
    pub anti_preferred: Vec<WeightedPodAffinityTerm>,
}

impl PodAffinity {
    pub fn is_empty(&self) -> bool {
        let Self { required, preferred, anti_required, anti_preferred } = self;
        required.is_empty()
            && preferred.is_empty()
            && anti_required.is_empty()
            && anti_preferred.is_empty()
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
        assert_eq!(affinity.required.usable().len(), 0);
        assert_eq!(affinity.anti_required.usable().len(), 1);
    }
}
