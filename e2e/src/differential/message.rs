//! What a scheduler says about a Pod that fits nowhere, taken apart.

use std::collections::BTreeMap;

const NODES: &str = " nodes are available: ";
const PREEMPTION: &str = "preemption: ";

/// `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: …`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// `0/5`; empty for a message of another form.
    pub nodes: String,
    /// How many Nodes say so.
    pub counts: BTreeMap<String, usize>,
    /// What is not said of so many Nodes, word for word.
    pub otherwise: String,
    /// What is said about preemption, with the same words in front.
    pub preemption: String,
}

impl Said {
    pub fn parse(message: &str) -> Self {
        let Some((nodes, rest)) = message.split_once(NODES) else {
            return Self { otherwise: message.to_owned(), ..Self::default() };
        };
        let (reasons, preemption) = split_preemption(rest);
        let mut said =
            Self { nodes: nodes.to_owned(), preemption: preemption.to_owned(), ..Self::default() };
        match counts(reasons) {
            Some(counts) => said.counts = counts,
            None => reasons.clone_into(&mut said.otherwise),
        }
        said
    }

    /// Without what it says about preemption.
    pub fn about_nodes(&self) -> Self {
        Self { preemption: String::new(), ..self.clone() }
    }
}

/// The text about preemption alone, whether or not it is introduced as such.
pub(super) fn preemption_text(text: &str) -> &str {
    text.split_once(PREEMPTION).map_or(text, |(_, after)| after).trim()
}

fn split_preemption(rest: &str) -> (&str, &str) {
    // Reasons hold no full stop before a space.
    let (reasons, after) = rest.split_once(". ").unwrap_or((rest, ""));
    (reasons.trim_end_matches('.'), preemption_text(after))
}

fn counts(reasons: &str) -> Option<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for item in reasons.split(", ") {
        let (count, reason) = item.split_once(' ')?;
        *counts.entry(reason.to_owned()).or_default() += count.parse::<usize>().ok()?;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_whatever_their_order() {
        let said = Said::parse(
            "0/5 nodes are available: 1 Insufficient example.com/gpu, 2 Insufficient cpu. no new \
             claims to deallocate, preemption: 0/5 nodes are available: 3 Preemption is not helpful \
             for scheduling, 2 No preemption victims found for incoming pod.",
        );
        let turned = Said::parse(
            "0/5 nodes are available: 2 Insufficient cpu, 1 Insufficient example.com/gpu.",
        );
        assert_eq!(said.nodes, "0/5");
        assert_eq!(said.about_nodes(), turned);
        assert_eq!(said.counts["Insufficient example.com/gpu"], 1);
        let preemption = Said::parse(&said.preemption);
        assert_eq!(preemption.counts["No preemption victims found for incoming pod"], 2);
    }

    #[test]
    fn other_messages_are_kept_as_they_are() {
        let whole = Said::parse("no nodes available to schedule pods");
        assert_eq!(whole.otherwise, "no nodes available to schedule pods");
        let conflict = Said::parse(
            "0/2 nodes are available: pod affinity terms conflict. preemption: not eligible due to \
             preemptionPolicy=Never.",
        );
        assert_eq!(conflict.otherwise, "pod affinity terms conflict");
        assert_eq!(conflict.preemption, "not eligible due to preemptionPolicy=Never.");
    }
}
