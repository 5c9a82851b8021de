//! The annotation `corridoros.io/grant`: the ledger entry that a Pod carries.

use model::{Amount, Grant, Granted};
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct GrantText {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    corridor: Option<CorridorText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<BundleText>,
}

#[derive(Serialize, Deserialize)]
struct CorridorText {
    uid: String,
    #[serde(rename = "milliGbps")]
    milli_gbps: u64,
}

#[derive(Serialize, Deserialize)]
struct BundleText {
    uid: String,
    #[serde(rename = "milliGBs")]
    milli_gbs: u64,
}

/// The annotation's text, compact and in a fixed order.
pub(crate) fn grant_text(grant: &Grant) -> String {
    let text = GrantText {
        v: VERSION,
        corridor: grant.corridor.as_ref().map(|granted| CorridorText {
            uid: granted.uid.to_string(),
            milli_gbps: granted.amount.milli(),
        }),
        bundle: grant.bundle.as_ref().map(|granted| BundleText {
            uid: granted.uid.to_string(),
            milli_gbs: granted.amount.milli(),
        }),
    };
    serde_json::to_string(&text).unwrap_or_default()
}

/// `None` for a text that is not a grant of a version we know.
pub(crate) fn parse_grant(text: &str) -> Option<Grant> {
    let text: GrantText = serde_json::from_str(text).ok()?;
    if text.v != VERSION {
        return None;
    }
    // More than any Pod can ask for was not written by this scheduler. It counts as much as it can without
    // spoiling the sum for the others.
    let granted = |uid: &str, milli| Granted {
        uid: uid.into(),
        amount: Amount::from_milli(milli).min(Amount::ASK_MAX),
    };
    Some(Grant {
        corridor: text.corridor.map(|part| granted(&part.uid, part.milli_gbps)),
        bundle: text.bundle.map(|part| granted(&part.uid, part.milli_gbs)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_promised_form_and_reads_its_own() {
        let granted =
            |uid: &str, whole| Some(Granted { uid: uid.into(), amount: Amount::from_whole(whole) });
        let mut grant = Grant { corridor: granted("u-1", 40), bundle: None };
        let text = grant_text(&grant);
        assert_eq!(text, r#"{"v":1,"corridor":{"uid":"u-1","milliGbps":40000}}"#);
        assert_eq!(parse_grant(&text), Some(grant.clone()));
        grant.bundle = granted("u-2", 0);
        let text = grant_text(&grant);
        assert!(text.ends_with(r#","bundle":{"uid":"u-2","milliGBs":0}}"#), "{text}");
        assert_eq!(parse_grant(&text), Some(grant));
    }

    #[test]
    fn what_is_no_grant_is_none() {
        for bad in
            ["", "{}", "[]", r#"{"v":2}"#, r#"{"v":1,"corridor":{"uid":"x","milliGbps":-1}}"#]
        {
            assert_eq!(parse_grant(bad), None, "{bad}");
        }
    }
}
