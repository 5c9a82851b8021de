//! A Node that names no zone and no region takes any volume.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::Labels;

use super::ZoneConditions;
use crate::reason::{Reason, unless};
use crate::trial::Trial;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

pub(super) const KEYS: [&str; 4] = [BETA_ZONE, BETA_REGION, ZONE, REGION];

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let labels = &trial.node.node.labels;
    unless(are_zones_met(&trial.state.volume_zones, labels), Reason::VOLUME_ZONE)
}

pub(crate) fn are_zones_met(conditions: &ZoneConditions, labels: &Labels) -> bool {
    let is_anywhere = !KEYS.iter().any(|key| labels.contains_key(*key));
    is_anywhere || conditions.iter().all(|(key, values)| has_one_of(labels, key, values))
}

pub(super) fn has_one_of(labels: &Labels, key: &str, values: &BTreeSet<Arc<str>>) -> bool {
    let value = labels.get(key).or_else(|| labels.get(present_key(key)));
    value.is_some_and(|value| values.contains(value))
}

/// The key of today for a beta one; not the other way round.
fn present_key(key: &str) -> &str {
    match key {
        BETA_ZONE => ZONE,
        BETA_REGION => REGION,
        key => key,
    }
}
