use std::collections::BTreeMap;

use jiff::Timestamp;
pub(crate) use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use prost::Message;
use serde::{Deserialize, Deserializer};

use super::owned_fields::OwnedFields;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SlimMeta {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub generation: Option<i64>,
    pub creation_timestamp: Option<Time>,
    pub deletion_timestamp: Option<Time>,
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub owner_references: Vec<OwnerReference>,
    pub managed_fields: OwnedFields,
}

impl SlimMeta {
    pub fn into_meta(self) -> ObjectMeta {
        let ours = |annotations: BTreeMap<String, String>| {
            annotations.into_iter().filter(|(key, _)| key.starts_with(OUR_PREFIX)).collect()
        };
        let mut owners = self.owner_references;
        owners.retain(|owner| owner.controller == Some(true));
        ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            creation_timestamp: self.creation_timestamp,
            deletion_timestamp: self.deletion_timestamp,
            labels: self.labels,
            annotations: self.annotations.map(ours),
            owner_references: Some(owners).filter(|owners| !owners.is_empty()),
            // Of all that is told there, only whether a hand has written what Bindings write.
            managed_fields: self.managed_fields.names_a_result.then(Vec::new),
            ..ObjectMeta::default()
        }
    }
}

/// A time without its nanoseconds: JSON has none. Not there and never set are the same.
#[derive(Clone, Copy, PartialEq, Deserialize, Message)]
#[serde(from = "Option<Time>")]
pub(crate) struct WireTime {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
}

impl From<Option<Time>> for WireTime {
    fn from(time: Option<Time>) -> Self {
        Self { seconds: time.map(|time| time.0.as_second()) }
    }
}

impl WireTime {
    pub fn into_time(self) -> Option<Time> {
        let seconds = self.seconds?;
        // Years beyond 9999: that there is a time counts more than which.
        let farthest = if seconds > 0 { Timestamp::MAX } else { Timestamp::MIN };
        Some(Time(Timestamp::from_second(seconds).unwrap_or(farthest)))
    }

    pub fn unix_s(self) -> Option<i64> {
        self.into_time().map(|time| time.0.as_second())
    }
}

/// The only annotations that the scheduler reads.
const OUR_PREFIX: &str = "corridoros.io/";

/// Labels, our annotations, and of the owners the one that controls the Pod. `managedFields` is there,
/// and empty, if it names a manager of a result annotation.
pub(super) fn of_pod<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    SlimMeta::deserialize(from).map(SlimMeta::into_meta)
}

/// Labels, owners, and the annotations by which volumes, claims and CSINodes are described.
pub(crate) fn of_volume<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let mut slim = SlimMeta::deserialize(from)?;
    let annotations = slim.annotations.take().map(|mut all| {
        all.retain(|key, _| VOLUME_PREFIXES.iter().any(|prefix| key.starts_with(prefix)));
        all
    });
    Ok(ObjectMeta { annotations, managed_fields: None, ..slim.into_meta() })
}

/// `volume.kubernetes.io/`, `volume.beta.kubernetes.io/`, `pv.kubernetes.io/`, `storage.alpha.kubernetes.io/`.
const VOLUME_PREFIXES: [&str; 3] = ["volume.", "pv.kubernetes.io/", "storage.alpha.kubernetes.io/"];

/// Metadata without labels, for kinds that are not selected by them.
pub(crate) fn identity<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let meta = of_pod(from)?;
    Ok(ObjectMeta { labels: None, owner_references: None, managed_fields: None, ..meta })
}

/// Metadata with labels and without annotations.
pub(crate) fn with_labels<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    of_pod(from).map(labelled)
}

pub(super) fn labelled(meta: ObjectMeta) -> ObjectMeta {
    ObjectMeta { annotations: None, owner_references: None, managed_fields: None, ..meta }
}
