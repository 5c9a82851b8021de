//! The annotations by which a Pod asks for a Corridor.

use std::collections::BTreeMap;

use crds::annotations::{
    CORRIDOR_GBPS, CORRIDOR_REF, FAILURE_POLICY, MEMORY_BUNDLE_GBS, MEMORY_BUNDLE_REF,
};
use model::{CorridorNeed, FailurePolicy, Gbps, Hold, ObjectKey};

/// What the annotations ask for, or what is wrong with them.
pub(super) fn corridor_need(
    annotations: &BTreeMap<String, String>,
) -> Result<Option<CorridorNeed>, Hold> {
    for bundle in [MEMORY_BUNDLE_REF, MEMORY_BUNDLE_GBS] {
        if annotations.contains_key(bundle) {
            let field = format!("metadata.annotations[{bundle}]");
            return Err(Hold::UnsupportedFeature { field });
        }
    }
    let failure_policy = match annotations.get(FAILURE_POLICY).map(String::as_str) {
        None | Some("Queue") => FailurePolicy::Queue,
        Some("FailFast") => FailurePolicy::FailFast,
        Some(_) => return Err(invalid(FAILURE_POLICY, "expected Queue or FailFast")),
    };
    let amount = annotations
        .get(CORRIDOR_GBPS)
        .map(|text| text.parse::<Gbps>().map_err(|why| invalid(CORRIDOR_GBPS, &why.to_string())))
        .transpose()?;
    let Some(reference) = annotations.get(CORRIDOR_REF) else {
        return match amount {
            None => Ok(None),
            Some(_) => Err(invalid(CORRIDOR_GBPS, &format!("needs {CORRIDOR_REF} beside it"))),
        };
    };
    let corridor = parse_reference(reference)
        .ok_or_else(|| invalid(CORRIDOR_REF, "expected <namespace>/<name>"))?;
    Ok(Some(CorridorNeed { corridor, amount, failure_policy }))
}

fn invalid(key: &str, why: &str) -> Hold {
    Hold::InvalidAnnotation { key: key.to_owned(), why: why.to_owned() }
}

/// Names of Kubernetes objects are no longer than this.
const NAME_BYTES_MAX: usize = 253;

fn parse_reference(text: &str) -> Option<ObjectKey> {
    let (namespace, name) = text.split_once('/')?;
    let is_name = |part: &str| {
        (1..=NAME_BYTES_MAX).contains(&part.len())
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
    };
    (is_name(namespace) && is_name(name)).then(|| ObjectKey::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(pairs: &[(&str, &str)]) -> Result<Option<CorridorNeed>, Hold> {
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        corridor_need(&map.collect())
    }

    #[test]
    fn reads_reference_amount_and_policy() {
        let pairs = [(CORRIDOR_REF, "a/c1"), (CORRIDOR_GBPS, "2.5"), (FAILURE_POLICY, "FailFast")];
        let expected = CorridorNeed {
            corridor: ObjectKey::new("a", "c1"),
            amount: Some(Gbps::from_milli(2500)),
            failure_policy: FailurePolicy::FailFast,
        };
        assert_eq!(need(&pairs), Ok(Some(expected)));
        assert_eq!(need(&[]), Ok(None));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let cases: [(&[(&str, &str)], &str); 7] = [
            (&[(CORRIDOR_REF, "c1")], "invalid annotation corridoros.io/corridorRef: expected"),
            (&[(CORRIDOR_REF, "a/b/c")], "invalid annotation corridoros.io/corridorRef: expected"),
            (&[(CORRIDOR_REF, "a/..%2f")], "invalid annotation corridoros.io/corridorRef: "),
            (&[(CORRIDOR_REF, "a/\u{7}")], "invalid annotation corridoros.io/corridorRef: "),
            (
                &[(CORRIDOR_REF, "a/c"), (CORRIDOR_GBPS, "0")],
                "invalid annotation corridoros.io/corridorGbps: must be greater than 0",
            ),
            (
                &[(CORRIDOR_GBPS, "4")],
                "invalid annotation corridoros.io/corridorGbps: needs corridoros.io/corridorRef",
            ),
            (
                &[(MEMORY_BUNDLE_REF, "a/b")],
                "UnsupportedFeature: metadata.annotations[corridoros.io/memoryBundleRef]",
            ),
        ];
        for (pairs, message) in cases {
            let hold = need(pairs).unwrap_err().to_string();
            assert!(hold.starts_with(message), "{pairs:?}: {hold}");
        }
    }
}
