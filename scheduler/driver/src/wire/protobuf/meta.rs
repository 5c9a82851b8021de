use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self, ObjectMeta};
use prost::Message;

use super::{Pair, filled, texts};
use crate::wire::meta::SlimMeta;
use crate::wire::owned_fields::OwnedFields;

/// `metadata` of a Pod.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PodMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(int64, tag = "7")]
    generation: i64,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
    #[prost(message, repeated, tag = "11")]
    labels: Vec<Pair>,
    #[prost(message, repeated, tag = "12")]
    annotations: Vec<Pair>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(message, repeated, tag = "17")]
    managed_fields: Vec<ManagedFields>,
}

impl From<PodMeta> for ObjectMeta {
    fn from(meta: PodMeta) -> Self {
        let has_annotations = !meta.annotations.is_empty();
        let names_a_result = meta.managed_fields.iter().any(ManagedFields::names_a_result);
        let slim = SlimMeta {
            name: filled(meta.name),
            namespace: filled(meta.namespace),
            uid: filled(meta.uid),
            resource_version: filled(meta.resource_version),
            generation: Some(meta.generation).filter(|generation| *generation != 0),
            creation_timestamp: meta.creation_timestamp.and_then(Time::into_wire),
            deletion_timestamp: meta.deletion_timestamp.and_then(Time::into_wire),
            labels: Some(texts(meta.labels)).filter(|labels| !labels.is_empty()),
            annotations: has_annotations.then(|| texts(meta.annotations)),
            owner_references: super::all(meta.owner_references),
            managed_fields: OwnedFields { names_a_result },
        };
        slim.into_meta()
    }
}

/// `metadata` of a Node: its annotations are not read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(int64, tag = "7")]
    generation: i64,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
    #[prost(message, repeated, tag = "11")]
    labels: Vec<Pair>,
}

impl From<NodeMeta> for ObjectMeta {
    fn from(meta: NodeMeta) -> Self {
        Self {
            name: filled(meta.name),
            namespace: filled(meta.namespace),
            uid: filled(meta.uid),
            resource_version: filled(meta.resource_version),
            generation: Some(meta.generation).filter(|generation| *generation != 0),
            creation_timestamp: meta.creation_timestamp.and_then(Time::into_wire),
            deletion_timestamp: meta.deletion_timestamp.and_then(Time::into_wire),
            labels: Some(texts(meta.labels)).filter(|labels| !labels.is_empty()),
            ..Self::default()
        }
    }
}

/// Without its nanoseconds: JSON has none.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Time {
    /// Not there: it was never set.
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
}

impl Time {
    pub fn into_wire(self) -> Option<v1::Time> {
        let seconds = self.seconds?;
        // Years beyond 9999: that there is a time counts more than which.
        let farthest = if seconds > 0 { Timestamp::MAX } else { Timestamp::MIN };
        Some(v1::Time(Timestamp::from_second(seconds).unwrap_or(farthest)))
    }
}

#[derive(Clone, PartialEq, Message)]
struct OwnerReference {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(string, tag = "5")]
    api_version: String,
    #[prost(bool, optional, tag = "6")]
    controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    block_owner_deletion: Option<bool>,
}

impl From<OwnerReference> for v1::OwnerReference {
    fn from(owner: OwnerReference) -> Self {
        Self {
            api_version: owner.api_version,
            block_owner_deletion: owner.block_owner_deletion,
            controller: owner.controller,
            kind: owner.kind,
            name: owner.name,
            uid: owner.uid,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct ManagedFields {
    #[prost(message, required, tag = "7")]
    fields: FieldsV1,
}

impl ManagedFields {
    fn names_a_result(&self) -> bool {
        OwnedFields::entry_names_a_result(&self.fields.raw)
    }
}

/// JSON inside.
#[derive(Clone, PartialEq, Message)]
struct FieldsV1 {
    #[prost(bytes = "vec", tag = "1")]
    raw: Vec<u8>,
}
