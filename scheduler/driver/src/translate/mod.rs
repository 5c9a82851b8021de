//! API objects into the engine's words, once. Past this point there is no string to interpret.

mod affinity;
mod devices;
mod grant;
mod kubelet_rejection;
mod needs;
mod node;
mod pod;
mod pod_claims;
mod requests;
mod scheduling_spec;
mod selector;
mod spread;
mod unknown_annotation;
mod unsupported;
mod volume;

pub(crate) use affinity::{node_affinity, raw_node_terms};
pub(crate) use devices::{allocation_to_write, device_class, resource_claim, resource_slice};
pub(crate) use grant::{grant_text, parse_grant};
pub(crate) use kubelet_rejection::{kubelet_rejection, kubelet_rejection_reasons};
pub(crate) use needs::needs;
pub(crate) use node::node;
pub(crate) use pod::pod;
pub(crate) use selector::label_selector;
pub(crate) use spread::spread_constraint;

use crate::tracker::key;

pub(crate) fn labels(map: &std::collections::BTreeMap<String, String>) -> model::Labels {
    map.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}
