//! Objects besides Nodes and Pods that plugins read. Which ones is a list beside the registry of plugins.

use model::{LabelSelector, PodDisruptionBudget};

use crate::device_change::DeviceChange;
use crate::volume_change::VolumeChange;

/// What a change of such an object means to Pods that are decided or wait.
#[derive(Clone, Copy, Debug)]
pub enum ObjectEffect<'a> {
    /// Labels of a Namespace: other Pods may be meant by terms, wherever they are.
    Namespaces,
    /// The selector of a Service or controller: Pods may be spread among others.
    Selectors { before: Option<&'a LabelSelector>, after: Option<&'a LabelSelector> },
    /// Preemption may cost something else. No Node becomes feasible by it.
    Budgets { before: Option<&'a PodDisruptionBudget>, after: Option<&'a PodDisruptionBudget> },
    /// A Node may take a Pod with volumes now that it rejected.
    Volumes(VolumeChange<'a>),
    /// A Node may take a Pod with ResourceClaims now that it rejected.
    Devices(DeviceChange<'a>),
    /// Nothing.
    Unchanged,
    /// Any Node may take a Pod now that it rejected. So it is for a kind whose entry says nothing else.
    Feasibility,
}

/// Defines the store of these objects, and the types by which they come, go and change. A kind is one entry: what an
/// object of it is known by, what is read of it, and what its change means.
macro_rules! cluster_objects {
    (@effect) => {
        |_, _| ObjectEffect::Feasibility
    };
    (@effect $effect:expr) => {
        $effect
    };
    ($($(#[$doc:meta])* $field:ident: $kind:ident($key:ty => $value:ty) $(, $effect:expr)?;)+) => {
        /// By kind, what is known of each object.
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct ClusterObjects {
            $($(#[$doc])*
            #[serde(with = "model::pairs")]
            pub $field: std::collections::BTreeMap<$key, $value>,)+
        }

        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        pub enum ClusterObjectKind {
            $($kind,)+
        }

        impl ClusterObjectKind {
            pub const ALL: &[Self] = &[$(Self::$kind,)+];
        }

        /// An object as it is now.
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum ClusterObject {
            $($kind($key, $value),)+
        }

        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum ClusterObjectId {
            $($kind($key),)+
        }

        /// An object before and after its last change.
        #[derive(Clone, Debug)]
        pub enum ClusterObjectChange {
            $($kind { before: Option<$value>, after: Option<$value> },)+
        }

        impl ClusterObjects {
            pub(crate) fn into_each(self) -> impl Iterator<Item = ClusterObject> {
                let Self { $($field),+ } = self;
                let none = std::iter::empty();
                $(let none = none.chain($field.into_iter().map(|(key, value)| ClusterObject::$kind(key, value)));)+
                none
            }

            /// Returns the change, if this was not known.
            pub(crate) fn insert(&mut self, object: ClusterObject) -> Option<ClusterObjectChange> {
                match object {
                    $(ClusterObject::$kind(key, value) => {
                        if self.$field.get(&key) == Some(&value) {
                            return None;
                        }
                        let after = Some(value.clone());
                        let before = self.$field.insert(key, value);
                        Some(ClusterObjectChange::$kind { before, after })
                    })+
                }
            }

            /// Returns the change, if there was such an object.
            pub(crate) fn remove(&mut self, id: &ClusterObjectId) -> Option<ClusterObjectChange> {
                match id {
                    $(ClusterObjectId::$kind(key) => {
                        let before = Some(self.$field.remove(key)?);
                        Some(ClusterObjectChange::$kind { before, after: None })
                    })+
                }
            }
        }

        impl ClusterObjectChange {
            pub fn effect(&self) -> ObjectEffect<'_> {
                match self {
                    $(Self::$kind { before, after } => {
                        type Effect = for<'a> fn(Option<&'a $value>, Option<&'a $value>) -> ObjectEffect<'a>;
                        let effect: Effect = cluster_objects!(@effect $($effect)?);
                        effect(before.as_ref(), after.as_ref())
                    })+
                }
            }
        }
    };
}
pub(crate) use cluster_objects;
