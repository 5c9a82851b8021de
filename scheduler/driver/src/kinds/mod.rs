//! The watched kinds: one file for each, and one list of them.
//!
//! The file of a kind has its wire type, and what its changes mean to the engine. Pods and Nodes are too large for that:
//! their wire types are in `wire/`, their translation in `translate/`.

mod attestation_policy;
pub(crate) mod corridor;
mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod device_class;
mod lease;
pub(crate) mod memory_bundle;
mod namespace;
mod node;
mod owner;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod replica_set;
mod replication_controller;
mod reservable;
mod resource_claim;
mod resource_slice;
mod selector_evaluations;
mod service;
mod stateful_set;
pub(crate) mod storage_class;
mod volume_attachment;
mod volume_fields;
mod watch_state;

use engine::{Event, WatchedKind};
use k8s_openapi::api::resource::v1 as k8s;
use tokio::sync::mpsc::Sender;

pub(crate) use self::persistent_volume::WireVolumeObject;
pub(crate) use self::persistent_volume_claim::{SELECTED_NODE, WireClaim};
pub(crate) use self::reservable::WireObjectCondition;
pub(crate) use self::watch_state::WatchState;
use crate::run::Driver;
use crate::tracker::{Gone, key};
use crate::translate::{label_selector, labels, raw_node_terms};
use crate::watch::{Reading, Unreadable, WatchEvent, Watches};
use crate::wire::{Wire, WireNode, WireNodeSelector, WirePod, WireSelector, kube_resource, meta};
pub(crate) use selector_evaluations::SelectorEvaluations;

/// A resource that is listed, then watched.
pub(crate) trait WatchedResource: Wire {
    const KIND: WatchedKind;
    /// It comes with a CRD or with newer API servers. Without it, only Pods that refer to it wait.
    const MAY_BE_ABSENT: bool = false;

    /// The event for an object that was added or modified, if it changes anything.
    fn seen(self, watched: &mut WatchState) -> Option<Event>;

    fn gone(gone: Gone, watched: &mut WatchState) -> Option<Event>;

    /// It exists, and this version of it cannot be read.
    fn unreadable(_: &Unreadable) -> Option<Event> {
        None
    }

    /// Another object has its name now. Most are known by name, so that the event for the new object suffices.
    fn replaced(_: Gone, _: &mut WatchState) -> Option<Event> {
        None
    }

    /// Takes in a change of its watch.
    fn take(event: WatchEvent<Self>, driver: &mut Driver) {
        driver.take_event_of(event);
    }
}

/// What is done with every kind.
macro_rules! watched_kinds {
    ($($kind:ident($wire:ty)),+ $(,)?) => {
        /// A change in the watch of any kind.
        #[derive(Debug)]
        pub(crate) enum AnyWatchEvent {
            $($kind(WatchEvent<$wire>)),+
        }

        impl AnyWatchEvent {
            pub fn hand_to(self, driver: &mut Driver) {
                match self {
                    $(Self::$kind(event) => <$wire>::take(event, driver)),+
                }
            }
        }

        /// Starts the watch of every kind.
        pub(crate) fn follow_all<T>(watches: &mut Watches, reading: &Reading, sender: &Sender<T>)
        where
            T: From<AnyWatchEvent> + Send + 'static,
        {
            $(watches.follow(reading, sender, AnyWatchEvent::$kind);)+
        }

        /// Every kind, with the name of its resource.
        pub(crate) const NAMES: [(WatchedKind, &str); WatchedKind::ALL.len()] =
            [$((<$wire>::KIND, <$wire>::NAME)),+];
    };
}

watched_kinds!(
    Pod(WirePod),
    Node(WireNode),
    Corridor(corridor::WireCorridor),
    Bundle(memory_bundle::WireBundle),
    Policy(attestation_policy::WirePolicy),
    Namespace(namespace::WireNamespace),
    Budget(pod_disruption_budget::WireBudget),
    Service(service::WireService),
    ReplicationController(replication_controller::WireReplicationController),
    ReplicaSet(replica_set::WireReplicaSet),
    StatefulSet(stateful_set::WireStatefulSet),
    Volume(WireVolumeObject),
    Claim(WireClaim),
    StorageClass(storage_class::WireStorageClass),
    CsiNode(csi_node::WireCsiNode),
    CsiDriver(csi_driver::WireCsiDriver),
    CsiStorageCapacity(csi_storage_capacity::WireCapacity),
    VolumeAttachment(volume_attachment::WireAttachment),
    DeviceClass(k8s::DeviceClass),
    ResourceSlice(k8s::ResourceSlice),
    ResourceClaim(k8s::ResourceClaim),
    Lease(lease::WireLease),
);

#[cfg(test)]
pub(crate) fn seen<K: WatchedResource>(
    watched: &mut WatchState,
    object: serde_json::Value,
) -> Option<Event> {
    serde_json::from_value::<K>(object).unwrap().seen(watched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_waits_for_the_kinds_that_are_watched() {
        let mut watched = NAMES.map(|(kind, _)| kind);
        watched.sort_unstable();
        assert_eq!(watched, WatchedKind::ALL);
    }
}
