//! Annotations under our domain that mean nothing: most are a slip of the keyboard, and a Pod that was meant to wait
//! for bandwidth must not be placed without it.

use std::collections::BTreeMap;

use crds::annotations::{DOMAIN, OF_PODS, OVERRIDE, RESULTS};
use model::Hold;

/// Names that are further apart are no slip.
const SIMILARITY_MIN: f64 = 0.8;
/// Keys of annotations may be longer than people want to read.
const KEY_BYTES_MAX: usize = 128;

pub(super) fn unknown_annotation(annotations: &BTreeMap<String, String>) -> Option<Hold> {
    let is_known = |key: &str| OF_PODS.contains(&key) || RESULTS.contains(&key) || key == OVERRIDE;
    let mut ours = annotations.keys().filter(|key| key.starts_with(DOMAIN));
    let unknown = ours.find(|key| !is_known(key))?;
    let why = match nearest(unknown) {
        Some(meant) => format!("no such annotation; did you mean {meant}?"),
        None => format!("no such annotation; those of a Pod are {}", OF_PODS.join(", ")),
    };
    let key = unknown[..unknown.floor_char_boundary(KEY_BYTES_MAX)].to_owned();
    Some(Hold::InvalidAnnotation { key, why })
}

fn nearest(unknown: &str) -> Option<&'static str> {
    let unknown = unknown.to_lowercase();
    let similarity = |known: &str| {
        strsim::jaro_winkler(&unknown[DOMAIN.len()..], &known[DOMAIN.len()..].to_lowercase())
    };
    let known = OF_PODS.into_iter().map(|known| (similarity(known), known));
    let nearest = known.max_by(|one, other| one.0.total_cmp(&other.0));
    nearest.filter(|(similarity, _)| *similarity >= SIMILARITY_MIN).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(key: &str) -> Option<String> {
        let annotations = BTreeMap::from([(key.to_owned(), "a/b".to_owned())]);
        unknown_annotation(&annotations).map(|hold| hold.to_string())
    }

    #[test]
    fn a_slip_is_held_with_what_was_meant() {
        for (slip, meant) in [
            ("corridoros.io/corridorref", "corridoros.io/corridorRef"),
            ("corridoros.io/coridorRef", "corridoros.io/corridorRef"),
            ("corridoros.io/corridor-ref", "corridoros.io/corridorRef"),
            ("corridoros.io/memoryBundleGbs", "corridoros.io/memoryBundleGBs"),
            ("corridoros.io/expectedend", "corridoros.io/expectedEnd"),
        ] {
            let expected =
                format!("invalid annotation {slip}: no such annotation; did you mean {meant}?");
            assert_eq!(told(slip), Some(expected));
        }
        let far = told("corridoros.io/zzz").unwrap();
        assert!(far.contains("those of a Pod are corridoros.io/corridorRef, "), "{far}");
        let long = told(&format!("corridoros.io/{}", "ä".repeat(10_000))).unwrap();
        assert!(long.len() < 1000, "{} bytes", long.len());
    }

    #[test]
    fn what_means_something_or_is_not_ours_is_let_be() {
        for key in OF_PODS.into_iter().chain([OVERRIDE, "example.com/corridorref", "corridoros"]) {
            assert_eq!(told(key), None);
        }
    }
}
