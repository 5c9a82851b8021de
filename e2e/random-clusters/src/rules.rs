//! What random clusters and Pods make use of. Each family can be left out, to find out which one
//! makes a difference.

use std::collections::BTreeSet;
use std::str::FromStr;

/// A family of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    Unschedulable,
    Taints,
    NodeSelector,
    NodeAffinity,
    Ports,
    Resources,
    InitContainers,
    Overhead,
    PodResources,
    ExtendedResources,
    Resizing,
    Spread,
    DefaultSpread,
    PodAffinity,
    Features,
    Gates,
    Images,
    Preemption,
    Volumes,
}

const ALL: [(Rule, &str); 19] = [
    (Rule::Unschedulable, "unschedulable"),
    (Rule::Taints, "taints"),
    (Rule::NodeSelector, "node-selector"),
    (Rule::NodeAffinity, "node-affinity"),
    (Rule::Ports, "ports"),
    (Rule::Resources, "resources"),
    (Rule::InitContainers, "init-containers"),
    (Rule::Overhead, "overhead"),
    (Rule::PodResources, "pod-resources"),
    (Rule::ExtendedResources, "extended-resources"),
    (Rule::Resizing, "resizing"),
    (Rule::Spread, "spread"),
    (Rule::DefaultSpread, "default-spread"),
    (Rule::PodAffinity, "pod-affinity"),
    (Rule::Features, "features"),
    (Rule::Gates, "gates"),
    (Rule::Images, "images"),
    (Rule::Preemption, "preemption"),
    (Rule::Volumes, "volumes"),
];

impl FromStr for Rule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = ALL.iter().find(|(_, known)| *known == name);
        known.map(|(rule, _)| *rule).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(_, name)| *name).collect();
            format!("no such rule; there are {}", names.join(", "))
        })
    }
}

/// What clusters and Pods are made of.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The families that are made use of.
    families: BTreeSet<Rule>,
    is_unchecked: bool,
}

impl Rules {
    /// All families but volumes: those are asked for, and hide much of the rest.
    pub fn all() -> Self {
        Self::only(ALL.map(|(rule, _)| rule)).without(&[Rule::Volumes])
    }

    /// For clusters with volumes: most are about little else, because the first filter that rejects a Node hides
    /// the others.
    #[must_use]
    pub fn beside_volumes(mut self, seed: u64) -> Self {
        let few = match seed % 4 {
            0 => return self,
            1 => &[Rule::Volumes, Rule::Preemption, Rule::Resources][..],
            _ => &[Rule::Volumes, Rule::Preemption],
        };
        self.families.retain(|rule| few.contains(rule));
        self
    }

    #[must_use]
    pub fn with_volumes(mut self) -> Self {
        self.families.insert(Rule::Volumes);
        self
    }

    pub fn only(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { families: rules.into_iter().collect(), is_unchecked: false }
    }

    #[must_use]
    pub fn without(mut self, rules: &[Rule]) -> Self {
        self.families.retain(|rule| !rules.contains(rule));
        self
    }

    /// Also what an API server refuses, and what it cannot be brought to hold: values that cannot be parsed,
    /// Pods in a namespace that is gone, a state of a Pod that only its kubelet writes.
    #[must_use]
    pub fn unchecked(self) -> Self {
        Self { is_unchecked: true, ..self }
    }

    pub fn has(&self, rule: Rule) -> bool {
        self.families.contains(&rule)
    }

    pub(crate) fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }

    /// One of two: the first if objects are unchecked.
    pub(crate) fn if_unchecked<T>(&self, unchecked: T, checked: T) -> T {
        if self.is_unchecked { unchecked } else { checked }
    }

    /// What a single Pod makes use of.
    pub(crate) fn chosen(&self, mut is_chosen: impl FnMut(Rule) -> bool) -> Self {
        let chosen = self.iter().filter(|rule| is_chosen(*rule)).collect();
        Self { families: chosen, is_unchecked: self.is_unchecked }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Rule> {
        self.families.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_one_name() {
        for (rule, name) in ALL {
            assert_eq!(name.parse(), Ok(rule));
        }
        assert_eq!(Rules::all().with_volumes().iter().count(), ALL.len());
        assert!("ressources".parse::<Rule>().unwrap_err().contains("there are unschedulable, "));
    }
}
