//! API objects into the engine's words, once. Past this point there is no string to interpret.

mod corridor;
mod grant;
mod needs;
mod node;
mod pod;
mod requests;
mod unsupported;

pub(crate) use corridor::corridor;
pub(crate) use grant::grant_text;
pub(crate) use node::node;
pub(crate) use pod::pod;

use model::ObjectKey;

/// Namespace and name; an object without them cannot come from an API server.
fn key(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> ObjectKey {
    ObjectKey::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

fn labels(map: std::collections::BTreeMap<String, String>) -> model::Labels {
    map.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}
