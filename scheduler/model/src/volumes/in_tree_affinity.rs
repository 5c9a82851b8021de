//! The node affinity of an in-tree volume by the labels of the CSI driver that took over.

use crate::{Labels, NodeSelector, RawNodeTerm, RawRequirement};

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
pub(super) const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Between the zones of a label.
pub(super) const ZONES_DELIMITER: &str = "__";

/// Zones are asked for by the driver's label. A volume whose affinity names no zone takes those of its own label.
pub(super) fn translate_affinity(
    zone_key: &str,
    labels: &Labels,
    terms: Option<&[RawNodeTerm]>,
) -> Option<NodeSelector> {
    let mut translated = terms.map(<[RawNodeTerm]>::to_vec);
    let (zone, region) = zone_and_region_keys(labels, terms.unwrap_or_default());
    if names_values(terms.unwrap_or_default(), zone) {
        rename(translated.as_deref_mut().unwrap_or_default(), zone, zone_key);
    } else if let Some(zones) = labels.get(zone) {
        add_zones(&mut translated, zone_key, zones);
    }
    // A Node of today has no beta label.
    if region == BETA_REGION && names_values(terms.unwrap_or_default(), region) {
        rename(translated.as_deref_mut().unwrap_or_default(), region, REGION);
    }
    translated.as_deref().map(NodeSelector::parse)
}

/// The keys that the volume uses: those of its affinity before those of its labels, the present ones before beta.
fn zone_and_region_keys(labels: &Labels, terms: &[RawNodeTerm]) -> (&'static str, &'static str) {
    let is_asked_for = |key| expressions(terms).any(|it| it.key == key);
    let is_beta = if is_asked_for(ZONE) {
        false
    } else if is_asked_for(BETA_ZONE) {
        true
    } else {
        !labels.contains_key(ZONE) && labels.contains_key(BETA_ZONE)
    };
    if is_beta { (BETA_ZONE, BETA_REGION) } else { (ZONE, REGION) }
}

fn expressions(terms: &[RawNodeTerm]) -> impl Iterator<Item = &RawRequirement> {
    terms.iter().flat_map(|term| &term.expressions)
}

fn names_values(terms: &[RawNodeTerm], key: &str) -> bool {
    expressions(terms).any(|it| it.key == key && !it.values.is_empty())
}

fn rename(terms: &mut [RawNodeTerm], from: &str, to: &str) {
    for expression in terms.iter_mut().flat_map(|term| &mut term.expressions) {
        if expression.key == from {
            to.clone_into(&mut expression.key);
        }
    }
}

/// To every term, or to a first one.
fn add_zones(terms: &mut Option<Vec<RawNodeTerm>>, key: &str, zones: &str) {
    let mut zones: Vec<_> =
        zones.split(ZONES_DELIMITER).map(str::trim).filter(|zone| !zone.is_empty()).collect();
    zones.sort_unstable();
    zones.dedup();
    if zones.is_empty() {
        return;
    }
    let terms = terms.get_or_insert_default();
    if terms.is_empty() {
        terms.push(RawNodeTerm::default());
    }
    for term in terms {
        term.expressions.push(RawRequirement::new(key, "In", &zones));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVER_ZONE: &str = "topology.ebs.csi.aws.com/zone";

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn term(key: &str, operator: &str, values: &[&str]) -> RawNodeTerm {
        let expressions = vec![RawRequirement::new(key, operator, values)];
        RawNodeTerm { expressions, fields: Vec::new() }
    }

    fn accepts(
        volume_labels: &[(&str, &str)],
        terms: Option<&[RawNodeTerm]>,
        node: &[(&str, &str)],
    ) -> bool {
        let translated = translate_affinity(DRIVER_ZONE, &labels(volume_labels), terms);
        translated.is_none_or(|it| it.matches_labels(&labels(node)))
    }

    #[test]
    fn zones_are_asked_for_by_the_label_of_the_driver() {
        for key in [ZONE, BETA_ZONE] {
            let terms = [term(key, "In", &["a"])];
            assert!(accepts(&[], Some(&terms), &[(DRIVER_ZONE, "a")]), "{key}");
            assert!(!accepts(&[], Some(&terms), &[(key, "a")]), "{key}");
        }
    }

    #[test]
    fn without_a_zone_in_its_affinity_a_volume_takes_those_of_its_label() {
        let zones = [(ZONE, "a__b")];
        assert!(accepts(&zones, None, &[(DRIVER_ZONE, "b")]));
        assert!(!accepts(&zones, None, &[(ZONE, "b")]));
        let terms = [term("disk", "In", &["ssd"])];
        assert!(accepts(&zones, Some(&terms), &[(DRIVER_ZONE, "a"), ("disk", "ssd")]));
        assert!(!accepts(&zones, Some(&terms), &[("disk", "ssd")]), "both must hold");
        let exists = [term(ZONE, "Exists", &[])];
        assert!(accepts(&zones, Some(&exists), &[(DRIVER_ZONE, "a"), (ZONE, "x")]));
        assert!(!accepts(&zones, Some(&exists), &[(ZONE, "x")]), "it names no zone");
    }

    #[test]
    fn a_beta_region_becomes_the_present_one_only_beside_a_beta_zone() {
        let region = term(BETA_REGION, "In", &["r"]);
        assert!(!accepts(&[], Some(std::slice::from_ref(&region)), &[(REGION, "r")]));
        assert!(accepts(
            &[(BETA_ZONE, "a")],
            Some(&[region]),
            &[(REGION, "r"), (DRIVER_ZONE, "a")]
        ));
    }

    #[test]
    fn a_label_without_zones_adds_nothing() {
        assert!(accepts(&[(ZONE, "__")], None, &[]));
        assert!(!accepts(&[(ZONE, "a")], Some(&[]), &[]), "no terms become one");
    }
}
