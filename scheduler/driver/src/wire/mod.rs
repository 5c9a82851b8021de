//! API objects with only the fields that scheduling needs. The rest is skipped while decoding:
//! a full Pod takes 50 KB of memory, one of these a few hundred bytes.
//!
//! Never write one of these back: the skipped fields would be lost.

pub(crate) mod meta;
pub(crate) mod protobuf;

mod absent;
mod affinity;
mod container;
mod node;
mod owned_fields;
mod pod;
mod selector;
mod spread;
mod volume;

pub(crate) use k8s_openapi::{
    ClusterResourceScope as Cluster, NamespaceResourceScope as Namespaced,
};
use serde::de::DeserializeOwned;

pub(crate) use affinity::{
    WireAffinity, WireNodeAffinity, WireNodeSelector, WireNodeSelectorTerm, WirePodAffinity,
    WirePodTerm,
};
pub(crate) use container::{WireContainer, WireContainerStatus, WireQuantity, WireResourceLists};
pub(crate) use node::{WireNode, WireNodeImage, WireTaint};
pub(crate) use pod::{
    DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, WireCondition, WirePod, WirePodClaim, WirePodSpec,
    WirePodStatus, WireToleration,
};
pub(crate) use selector::{WireRequirement, WireSelector};
pub(crate) use spread::WireSpreadConstraint;
pub(crate) use volume::{WireVolume, WireVolumeSource};

/// An object that is listed and watched.
pub(crate) trait Wire:
    kube::Resource<DynamicType = ()> + DeserializeOwned + Send + 'static
{
    /// As users know the resource: `pods`, `replicasets.apps`.
    const NAME: &'static str;
    /// None: JSON is asked for. Of CRDs there is nothing else.
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = None;
    /// Selects by fields what is listed, as a parameter of a query. What is watched is not selected: of an object that
    /// is not selected any more, the API server shows the version before, which does not say why.
    const LISTED: Option<&'static str> = None;
    /// None: it is listed and watched in the whole cluster.
    const NAMESPACE: Option<&'static str> = None;
}

pub(crate) type FromProtobuf<K> = fn(&[u8]) -> Result<K, prost::DecodeError>;

/// As kube-scheduler selects: completed Pods use nothing, and stay until their owner is gone.
pub(crate) const NOT_COMPLETED: &str = "status.phase%21%3DSucceeded,status.phase%21%3DFailed";

/// Implements `kube::Resource`, and [`Wire`] with the constants in braces.
macro_rules! kube_resource {
    (
        $type:ty, $kind:literal, $group:literal, $version:literal, $plural:literal, $scope:ident
        $(, { $($constants:tt)* })?
    ) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = crate::wire::$scope;

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

            fn meta(&self) -> &crate::wire::meta::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut crate::wire::meta::ObjectMeta {
                &mut self.metadata
            }
        }

        impl crate::wire::Wire for $type {
            const NAME: &'static str =
                if $group.is_empty() { $plural } else { concat!($plural, ".", $group) };
            $($($constants)*)?
        }
    };
}
pub(crate) use kube_resource;
