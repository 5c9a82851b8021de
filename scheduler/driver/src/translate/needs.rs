//! The annotations by which a Pod asks for a Corridor and a MemoryBundle.

use std::collections::BTreeMap;

use crds::annotations::{
    CORRIDOR_GBPS, CORRIDOR_REF, FAILURE_POLICY, MEMORY_BUNDLE_GBS, MEMORY_BUNDLE_REF,
};
use model::{Amount, FailurePolicy, Hold, Need, ObjectKey, ObjectKind, ObjectRef};

/// What the annotations ask for: at most one object of each kind, in the order of kinds.
pub(crate) fn needs(annotations: &BTreeMap<String, String>) -> Result<Vec<Need>, Hold> {
    let corridor = need(annotations, ObjectKind::Corridor, CORRIDOR_REF, CORRIDOR_GBPS)?;
    let bundle = need(annotations, ObjectKind::MemoryBundle, MEMORY_BUNDLE_REF, MEMORY_BUNDLE_GBS)?;
    Ok(corridor.into_iter().chain(bundle).collect())
}

pub(super) fn failure_policy(
    annotations: &BTreeMap<String, String>,
) -> Result<Option<FailurePolicy>, Hold> {
    match annotations.get(FAILURE_POLICY).map(String::as_str) {
        None => Ok(None),
        Some("Queue") => Ok(Some(FailurePolicy::Queue)),
        Some("FailFast") => Ok(Some(FailurePolicy::FailFast)),
        Some(_) => Err(invalid(FAILURE_POLICY, "expected Queue or FailFast")),
    }
}

fn need(
    annotations: &BTreeMap<String, String>,
    kind: ObjectKind,
    reference: &str,
    amount: &str,
) -> Result<Option<Need>, Hold> {
    let asked = annotations
        .get(amount)
        .map(|text| text.parse::<Amount>().map_err(|why| invalid(amount, &why.to_string())))
        .transpose()?;
    let Some(text) = annotations.get(reference) else {
        return match asked {
            None => Ok(None),
            Some(_) => Err(invalid(amount, &format!("needs {reference} beside it"))),
        };
    };
    let key =
        parse_reference(text).ok_or_else(|| invalid(reference, "expected <namespace>/<name>"))?;
    Ok(Some(Need { object: ObjectRef { kind, key }, amount: asked }))
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
            && part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.ends_with(|last: char| last.is_ascii_alphanumeric())
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
    };
    (is_name(namespace) && is_name(name)).then(|| ObjectKey::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> Result<Vec<Need>, Hold> {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        failure_policy(&map).and_then(|_| needs(&map))
    }

    #[test]
    fn reads_references_and_amounts_of_both_kinds() {
        let pairs = [(MEMORY_BUNDLE_REF, "a/b1"), (CORRIDOR_REF, "a/c1"), (CORRIDOR_GBPS, "2.5")];
        let need = |kind, name, amount| Need {
            object: ObjectRef { kind, key: ObjectKey::new("a", name) },
            amount,
        };
        let expected = vec![
            need(ObjectKind::Corridor, "c1", Some(Amount::from_milli(2500))),
            need(ObjectKind::MemoryBundle, "b1", None),
        ];
        assert_eq!(asked(&pairs), Ok(expected));
        assert_eq!(asked(&[]), Ok(Vec::new()));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let cases: [(&[(&str, &str)], &str); 9] = [
            (&[(CORRIDOR_REF, "../c1")], "invalid annotation corridoros.io/corridorRef: expected"),
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
                &[(MEMORY_BUNDLE_REF, "a/b"), (MEMORY_BUNDLE_GBS, "-1")],
                "invalid annotation corridoros.io/memoryBundleGBs: expected a number",
            ),
            (
                &[(FAILURE_POLICY, "Maybe")],
                "invalid annotation corridoros.io/failurePolicy: expected Queue or FailFast",
            ),
        ];
        for (pairs, message) in cases {
            let hold = asked(pairs).unwrap_err().to_string();
            assert!(hold.starts_with(message), "{pairs:?}: {hold}");
        }
    }
}
