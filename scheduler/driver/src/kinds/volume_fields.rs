//! Fields that PersistentVolumes and their claims have in common.

use std::collections::BTreeMap;

use model::Quantity;

use super::meta::ObjectMeta;

/// The class of a volume or claim, before it was a field.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Its value, if the annotation is present.
pub(super) fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The amount of storage; zero if there is none. The API server accepts nothing that cannot be read.
pub(super) fn quantity(amounts: &BTreeMap<String, String>) -> Quantity {
    amounts.get("storage").and_then(|text| text.parse().ok()).unwrap_or_default()
}
