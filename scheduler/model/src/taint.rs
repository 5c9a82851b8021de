//! Taints and tolerations, as kube-scheduler v1.36 compares them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl Effect {
    /// Whether a taint of this effect keeps Pods off the Node (the other kind only scores).
    pub fn repels(self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    pub key: Arc<str>,
    pub value: Arc<str>,
    pub effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    Equal,
    Exists,
    /// `Gt` and `Lt` match nothing while their feature gate is off, and so does any newer operator.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// Empty matches every key.
    pub key: Arc<str>,
    pub operator: TolerationOperator,
    pub value: Arc<str>,
    /// `None` matches every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = self.key.is_empty() || self.key == taint.key;
        let value = match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => self.value == taint.value,
            TolerationOperator::Unknown => false,
        };
        effect && key && value
    }
}

/// The first taint that keeps the Pod off the Node.
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|taint| taint.effect.repels())
        .find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(effect: Effect) -> Taint {
        Taint { key: "gpu".into(), value: "a100".into(), effect }
    }

    fn toleration(key: &str, operator: TolerationOperator, value: &str) -> Toleration {
        Toleration { key: key.into(), operator, value: value.into(), effect: None }
    }

    #[test]
    fn follows_the_table_of_the_kubernetes_docs() {
        use TolerationOperator::{Equal, Exists, Unknown};
        let cases = [
            (toleration("gpu", Equal, "a100"), true),
            (toleration("gpu", Equal, "h100"), false),
            (toleration("gpu", Exists, ""), true),
            (toleration("", Exists, ""), true),
            (toleration("other", Exists, ""), false),
            (toleration("gpu", Unknown, "1"), false),
        ];
        for (toleration, expected) in cases {
            assert_eq!(
                toleration.tolerates(&taint(Effect::NoSchedule)),
                expected,
                "{toleration:?}"
            );
        }
    }

    #[test]
    fn an_effect_narrows_a_toleration() {
        let mut only_no_execute = toleration("gpu", TolerationOperator::Exists, "");
        only_no_execute.effect = Some(Effect::NoExecute);
        assert!(only_no_execute.tolerates(&taint(Effect::NoExecute)));
        assert!(!only_no_execute.tolerates(&taint(Effect::NoSchedule)));
    }

    #[test]
    fn a_preference_repels_no_pod() {
        assert_eq!(first_untolerated(&[taint(Effect::PreferNoSchedule)], &[]), None);
        assert!(first_untolerated(&[taint(Effect::NoExecute)], &[]).is_some());
    }
}
