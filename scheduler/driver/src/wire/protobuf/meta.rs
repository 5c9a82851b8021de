use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self, ObjectMeta};
use prost::Message;

use super::filled;
use crate::wire::meta::{SlimMeta, WireTime};
use crate::wire::owned_fields::OwnedFields;

/// `metadata` of a Pod or a Node.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Meta {
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
    #[prost(message, required, tag = "8")]
    creation_timestamp: WireTime,
    #[prost(message, required, tag = "9")]
    deletion_timestamp: WireTime,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(message, repeated, tag = "17")]
    managed_fields: Vec<ManagedFields>,
}

impl From<Meta> for ObjectMeta {
    fn from(meta: Meta) -> Self {
        let names_a_result = meta.managed_fields.iter().any(ManagedFields::names_a_result);
        let slim = SlimMeta {
            name: filled(meta.name),
            namespace: filled(meta.namespace),
            uid: filled(meta.uid),
            resource_version: filled(meta.resource_version),
            generation: Some(meta.generation).filter(|generation| *generation != 0),
            creation_timestamp: meta.creation_timestamp.into_time(),
            deletion_timestamp: meta.deletion_timestamp.into_time(),
            labels: Some(meta.labels).filter(|labels| !labels.is_empty()),
            annotations: Some(meta.annotations).filter(|annotations| !annotations.is_empty()),
            owner_references: meta.owner_references.into_iter().map(Into::into).collect(),
            managed_fields: OwnedFields { names_a_result },
        };
        slim.into_meta()
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
