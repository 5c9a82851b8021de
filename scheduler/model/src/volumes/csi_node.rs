use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The CSI drivers of the Node of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiNode {
    pub name: Arc<str>,
    /// How many volumes of each can be attached, `allocatable.count`. `None`: no limit.
    pub drivers: BTreeMap<Arc<str>, Option<i32>>,
    /// The annotation `storage.alpha.kubernetes.io/migrated-plugins`.
    pub migrated_plugins: BTreeSet<Arc<str>>,
}

impl CsiNode {
    /// Reads the annotation: names separated by commas.
    pub fn parse_migrated_plugins(annotation: Option<&str>) -> BTreeSet<Arc<str>> {
        let names = annotation.filter(|text| !text.is_empty()).into_iter();
        names.flat_map(|text| text.split(',')).map(Arc::from).collect()
    }
}
