//! The weights of the preferred terms that the Node meets, the Pod's and the profile's.

use model::ClusterNode;

use super::{Answer, Contest, up_to_max};

pub(super) fn score(contest: &Contest<'_>) -> Answer {
    let (own, added) = (&contest.pod.node_affinity, &contest.rules.added_affinity);
    if own.preferred.is_empty() && added.preferred.is_empty() {
        return Answer::Silent;
    }
    if let Some(why) = own.preference_error() {
        return Answer::Unparsable(why.clone());
    }
    let weight = |node: &&ClusterNode| {
        let (name, labels) = (&node.node.name, &node.node.labels);
        added.preference(name, labels).saturating_add(own.preference(name, labels))
    };
    Answer::Scored(up_to_max(contest.feasible.iter().map(weight).collect()))
}
