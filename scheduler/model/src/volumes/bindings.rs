use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ObjectKey;

/// What has to be written before a Pod can be bound to a Node: its claims that are not bound yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodVolumeBindings {
    /// Claims with the PersistentVolume that each takes.
    pub static_bindings: Vec<(ObjectKey, Arc<str>)>,
    /// Claims for which a volume is made on the Node.
    pub dynamic_provisions: Vec<ObjectKey>,
}

impl PodVolumeBindings {
    /// The claims, each once.
    pub fn claims(&self) -> impl Iterator<Item = &ObjectKey> {
        let of_static = self.static_bindings.iter().map(|(claim, _)| claim);
        of_static.chain(&self.dynamic_provisions)
    }

    pub fn is_empty(&self) -> bool {
        self.static_bindings.is_empty() && self.dynamic_provisions.is_empty()
    }
}
