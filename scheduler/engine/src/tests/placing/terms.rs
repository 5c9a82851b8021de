//! What Pods ask of other Pods, at random.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    LabelSelector, Labels, NodeInclusionPolicy, PodAffinityTerm, RawRequirement,
    TopologySpreadConstraint, WhenUnsatisfiable,
};

use super::story::{INDEXES, NAMESPACES, Story, labels};
use crate::placing::PodClassKey;

impl Story {
    pub fn term(&mut self) -> PodAffinityTerm {
        let key = ["zone", "rack", "kubernetes.io/hostname"][self.below(3)];
        let selector = self.selector();
        let namespaces = match self.below(6) {
            0 => Some(LabelSelector::EVERYTHING),
            1 => Some(LabelSelector::of_labels(&labels(&[("team", "b".to_owned())]))),
            _ => None,
        };
        let own: Arc<str> = NAMESPACES[self.below(2)].into();
        PodAffinityTerm::new(&own, key, selector, BTreeSet::new(), namespaces)
    }

    /// Most read one label, of another few read it now and then.
    fn selector(&mut self) -> LabelSelector {
        let app = labels(&[("app", format!("a{}", self.below(3)))]);
        let index = format!("{}", self.below(INDEXES));
        let raw = match self.below(16) {
            0 => RawRequirement::new("index", "In", &[&index, "1"]),
            1 => RawRequirement::new("index", "NotIn", &[&index]),
            2 => RawRequirement::new("index", ["Exists", "DoesNotExist"][self.below(2)], &[]),
            _ => return LabelSelector::of_labels(&app),
        };
        LabelSelector::parse(&Labels::new(), &[raw])
    }

    /// Another Pod of this kind, but for a label that few selectors read.
    pub fn one_like(&mut self, class: &PodClassKey) -> PodClassKey {
        let mut scheduling = (*class.scheduling).clone();
        match self.below(4) {
            0 => drop(scheduling.labels.remove("index")),
            1 => return class.clone(),
            _ => {
                let index = format!("{}", self.below(INDEXES));
                scheduling.labels.extend(labels(&[("index", index)]));
            }
        }
        PodClassKey { scheduling: Arc::new(scheduling), ..class.clone() }
    }

    pub fn spread(&mut self) -> TopologySpreadConstraint {
        let key = ["zone", "rack", "kubernetes.io/hostname"][self.below(3)];
        let when = [WhenUnsatisfiable::DoNotSchedule, WhenUnsatisfiable::ScheduleAnyway];
        let selector = if self.one_in(8) { LabelSelector::EVERYTHING } else { self.selector() };
        let when = when[self.below(2)];
        let skew = i32::try_from(1 + self.below(3)).unwrap();
        let mut constraint = TopologySpreadConstraint::new(key, skew, when, selector);
        if self.one_in(4) {
            constraint.node_taints_policy = NodeInclusionPolicy::Honor;
        }
        if self.one_in(4) {
            constraint.node_affinity_policy = NodeInclusionPolicy::Ignore;
        }
        if self.one_in(4) {
            constraint.min_domains = Some(3);
        }
        if self.one_in(6) {
            constraint.match_label_keys.push("index".into());
        }
        constraint
    }
}
