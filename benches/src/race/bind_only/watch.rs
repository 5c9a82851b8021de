//! Watches as a scheduler holds them: those that are thrown away, and that of claims.

use e2e::Result;
use serde::Deserialize;
use tokio::sync::mpsc::UnboundedSender;

use super::super::wire::Wire;
use super::claims::Claim;

const WATCH_SECONDS: u32 = 3600;

/// The API server ends watches that cannot keep up for a moment; as a scheduler does, the next goes on where
/// the last ended.
pub async fn watch_and_drop(wire: &Wire, collection: &str, mut from: String) -> Result<()> {
    loop {
        let path = path(collection, &from);
        let note = |piece: &[u8]| {
            if let Some(version) = last_version(piece) {
                from = version;
            }
        };
        wire.read_and_drop(&path, "application/json", note).await?;
    }
}

/// Tells of every claim that is seen bound, perhaps more than once. Ends with an error or not at all.
pub async fn watch_claims(
    wire: &Wire,
    mut from: String,
    bound: UnboundedSender<String>,
) -> Result<()> {
    loop {
        let path = path("/api/v1/persistentvolumeclaims", &from);
        let mut unread = Vec::new();
        let note = |piece: &[u8]| {
            unread.extend_from_slice(piece);
            let Some(end) = unread.iter().rposition(|byte| *byte == b'\n') else { return };
            for line in unread[..end].split(|byte| *byte == b'\n') {
                // What cannot be read is the end of the watch, which says so.
                let Ok(change) = serde_json::from_slice::<Change>(line) else { continue };
                from.clone_from(&change.object.metadata.resource_version);
                if change.object.is_bound() {
                    // Nobody listens once all Pods are bound.
                    let _ = bound.send(change.object.key());
                }
            }
            unread.drain(..=end);
        };
        wire.read_and_drop(&path, "application/json", note).await?;
    }
}

fn path(collection: &str, from: &str) -> String {
    format!("{collection}?watch=true&resourceVersion={from}&timeoutSeconds={WATCH_SECONDS}")
}

#[derive(Deserialize)]
struct Change {
    object: Claim,
}

/// The last version that stands whole in a piece of a watch.
fn last_version(piece: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"\"resourceVersion\":\"";
    let start = piece.windows(BEFORE.len()).rposition(|window| window == BEFORE)? + BEFORE.len();
    let length = piece[start..].iter().position(|byte| *byte == b'"')?;
    String::from_utf8(piece[start..start + length].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_version_is_found() {
        let piece = br#"{"resourceVersion":"7"} {"resourceVersion":"12","#;
        assert_eq!(last_version(piece).as_deref(), Some("12"));
        assert_eq!(last_version(br#"{"resourceVersion":"1"#), None);
    }
}
