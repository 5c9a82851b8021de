//! API objects into the engine's words, once. Past this point there is no string to interpret.

mod grant;
mod needs;
mod node;
mod objects;
mod pod;
mod requests;
mod unsupported;

pub(crate) use grant::grant_text;
pub(crate) use node::node;
pub(crate) use objects::{allowed_tenants, bundle, corridor};
pub(crate) use pod::pod;

use crate::tracker::key;

pub(crate) fn labels(map: std::collections::BTreeMap<String, String>) -> model::Labels {
    map.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}
