//! API objects with only the fields that scheduling needs. The rest is skipped while decoding:
//! a full Pod takes 50 KB of memory, one of these a few hundred bytes.
//!
//! Never write one of these back: the skipped fields would be lost.

pub(crate) mod protobuf;

mod absent;
mod affinity;
mod budget;
mod bundle;
mod container;
mod corridor;
mod device_class;
mod lease;
mod meta;
mod namespace;
mod node;
mod object_condition;
mod owned_fields;
mod owner;
mod pod;
mod policy;
mod selector;
mod service;
mod spread;

use serde::de::DeserializeOwned;

pub(crate) use affinity::{
    WireAffinity, WireNodeAffinity, WireNodeSelectorTerm, WirePodAffinity, WirePodTerm,
};
pub(crate) use budget::WireBudget;
pub(crate) use bundle::{WireBundle, WireBundleSpec};
pub(crate) use container::{WireContainer, WireContainerStatus, WireResourceLists, WireVolume};
pub(crate) use corridor::WireCorridor;
pub(crate) use device_class::WireDeviceClass;
pub(crate) use lease::WireLease;
pub(crate) use namespace::WireNamespace;
pub(crate) use node::{WireNode, WireNodeImage, WireTaint};
pub(crate) use object_condition::WireObjectCondition;
pub(crate) use owner::{WireReplicaSet, WireReplicationController, WireStatefulSet};
pub(crate) use pod::{
    DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, WireCondition, WirePod, WirePodSpec, WirePodStatus,
    WireToleration,
};
pub(crate) use policy::WirePolicy;
pub(crate) use selector::{WireRequirement, WireSelector};
pub(crate) use service::WireService;
pub(crate) use spread::WireSpreadConstraint;

/// An object that is listed and watched.
pub(crate) trait Wire:
    kube::Resource<DynamicType = ()> + DeserializeOwned + Send + 'static
{
    /// None: JSON is asked for. Of CRDs there is nothing else.
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = None;
    /// Selects by fields what is listed, as a parameter of a query. What is watched is not selected: of an object that
    /// is not selected any more, the API server shows the version before, which does not say why.
    const LISTED: Option<&'static str> = None;
}

pub(crate) type FromProtobuf<K> = fn(&[u8]) -> Result<K, prost::DecodeError>;

/// As kube-scheduler selects: completed Pods use nothing, and stay until their owner is gone.
pub(crate) const NOT_COMPLETED: &str = "status.phase%21%3DSucceeded,status.phase%21%3DFailed";

impl Wire for WirePod {
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(protobuf::pod);
    const LISTED: Option<&'static str> = Some(NOT_COMPLETED);
}

impl Wire for WireNode {
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(protobuf::node);
}

/// Those of which there are few.
macro_rules! only_json {
    ($($type:ty),+ $(,)?) => {
        $(impl Wire for $type {})+
    };
}

only_json!(
    WireBudget,
    WireBundle,
    WireCorridor,
    WireDeviceClass,
    WireLease,
    WireNamespace,
    WirePolicy,
    WireReplicaSet,
    WireReplicationController,
    WireService,
    WireStatefulSet,
);

/// Implements `kube::Resource`, so that kube's watcher can fetch the type.
macro_rules! kube_resource {
    ($type:ty, $kind:literal, $group:literal, $version:literal, $plural:literal, $scope:ty) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(
                &mut self,
            ) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
use kube_resource;
