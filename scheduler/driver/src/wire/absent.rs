//! Fields that Go writes as `null` when they are empty.

use serde::{Deserialize, Deserializer};

/// For lists without `omitempty`: one `null` among ten thousand objects must not end the watch.
pub(super) fn null_as_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(from).map(Option::unwrap_or_default)
}
