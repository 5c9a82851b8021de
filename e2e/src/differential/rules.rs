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
}

const ALL: [(Rule, &str); 18] = [
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

/// The families that are made use of.
#[derive(Debug, Clone)]
pub struct Rules(BTreeSet<Rule>);

impl Rules {
    pub fn all() -> Self {
        Self(ALL.iter().map(|(rule, _)| *rule).collect())
    }

    pub fn only(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self(rules.into_iter().collect())
    }

    #[must_use]
    pub fn without(mut self, rules: &[Rule]) -> Self {
        self.0.retain(|rule| !rules.contains(rule));
        self
    }

    pub fn has(&self, rule: Rule) -> bool {
        self.0.contains(&rule)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Rule> {
        self.0.iter().copied()
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
        assert_eq!(Rules::all().iter().count(), ALL.len());
        assert!("ressources".parse::<Rule>().unwrap_err().contains("there are unschedulable, "));
    }
}
