//! API objects with only the fields that scheduling needs. The rest is skipped while decoding:
//! a full Pod takes 50 KB of memory, one of these a few hundred bytes.
//!
//! Never write one of these back: the skipped fields would be lost.

mod bundle;
mod corridor;
mod lease;
mod meta;
mod namespace;
mod node;
mod object_condition;
mod pod;
mod policy;

pub(crate) use bundle::WireBundle;
pub(crate) use corridor::WireCorridor;
pub(crate) use lease::WireLease;
pub(crate) use namespace::WireNamespace;
pub(crate) use node::{WireNode, WireTaint};
pub(crate) use object_condition::WireObjectCondition;
pub(crate) use pod::{WireContainer, WirePod, WirePodSpec, WireResourceLists, WireToleration};
pub(crate) use policy::WirePolicy;

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
