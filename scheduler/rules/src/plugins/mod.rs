//! The plugins: a folder for each, named as in kube-scheduler, with a file for each extension point, and one entry in
//! the registry below. Names, switches, weights and the configuration's table all derive from that entry.

mod corridor;
mod default_preemption;
mod dynamic_resources;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_balanced_allocation;
mod node_resources_fit;
mod node_unschedulable;
mod node_volume_limits;
mod pod_topology_spread;
mod registration;
mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;

use std::fmt;
use std::sync::Arc;

use model::{
    CsiDriver, CsiNode, CsiStorageCapacity, DeviceClass, LabelSelector, Labels, ObjectKey,
    PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget, ResourceClaim, ResourceSlice,
    StorageClass, VolumeAttachment,
};
use serde::{Deserialize, Serialize};

pub use default_preemption::{
    CLAIMS_NOT_FOUND, Candidate, Ineligible, PREEMPTION, Preemption, PreemptionDryRun,
    PreemptionRefusal, VictimCost, Victims, candidates, has_leaving_victims, preempt,
    preempt_after, protects, victims_by,
};
pub(crate) use default_preemption::{candidate, may_preempt};
pub(crate) use dynamic_resources::DeviceClaims;
pub use dynamic_resources::{
    ClaimToReserve, DeviceFit, DeviceNeeds, DeviceProblem, PREEMPTION_WITH_CLAIMS, find_pod_devices,
};
pub(crate) use inter_pod_affinity::Counts;
pub use inter_pod_affinity::{existing_term_matches, own_term_matches};
pub use node_resources_balanced_allocation::balanced_score;
pub use node_resources_fit::{ResourceUse, fit_score};
pub(crate) use node_volume_limits::claims_over_limit;
pub use node_volume_limits::{Attachable, attach_limits, attached_by, attached_to};
pub(crate) use pod_topology_spread::Spread;
pub use pod_topology_spread::{Constraint, constraints, has_every_key, score_needs_every_key};
pub use registration::{Point, Registration, Role};
pub use volume_binding::find_pod_volumes;
pub(crate) use volume_binding::{
    ClaimsToBind, bound_claims, delayed_claims, immediate_claims, makes_volumes, sort_claims,
};
pub(crate) use volume_restrictions::{ExclusiveClaims, claims_in_use};
pub(crate) use volume_zone::{ZoneConditions, other_zones};

/// What the plugins of volumes know together.
pub(crate) mod volumes {
    pub(crate) use super::node_volume_limits::{Attachable, Attaching};
    pub(crate) use super::volume_binding::{
        VolumeRequest, free_volumes, has_room, makes_volumes, own_volume, publishes_capacity,
    };
    pub(crate) use super::volume_zone::{ZoneConditions, are_zones_met};
}

use crate::cluster_objects::{ObjectEffect, cluster_objects};
use crate::device_change::DeviceChange;
use crate::reason::reasons;
use crate::volume_change::VolumeChange;
use Point::{Bind, PreEnqueue, QueueSort};

/// Defines [`Plugin`] and the registry from the same entries.
macro_rules! plugins {
    ($($(#[$doc:meta])* $name:ident: $registration:expr,)+) => {
        /// A plugin, by its name.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Plugin {
            $($(#[$doc])* $name,)+
        }

        impl Plugin {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            pub const fn registration(self) -> &'static Registration {
                const REGISTRY: &[Registration] = &[$($registration,)+];
                &REGISTRY[self as usize]
            }
        }
    };
}

// In kube-scheduler's order: the first filter that rejects a Node supplies its reasons.
plugins! {
    SchedulingGates: Registration::required(&[PreEnqueue]),
    PrioritySort: Registration::required(&[QueueSort]),
    NodeUnschedulable: node_unschedulable::PLUGIN,
    NodeName: node_name::PLUGIN,
    TaintToleration: taint_toleration::PLUGIN,
    NodeAffinity: node_affinity::PLUGIN,
    /// The one that kube-scheduler does not have.
    Corridor: corridor::PLUGIN,
    NodePorts: node_ports::PLUGIN,
    NodeResourcesFit: node_resources_fit::PLUGIN,
    VolumeRestrictions: volume_restrictions::PLUGIN,
    NodeVolumeLimits: node_volume_limits::PLUGIN,
    VolumeBinding: volume_binding::PLUGIN,
    VolumeZone: volume_zone::PLUGIN,
    PodTopologySpread: pod_topology_spread::PLUGIN,
    InterPodAffinity: inter_pod_affinity::PLUGIN,
    DynamicResources: dynamic_resources::PLUGIN,
    DefaultPreemption: default_preemption::PLUGIN,
    NodeResourcesBalancedAllocation: node_resources_balanced_allocation::PLUGIN,
    ImageLocality: image_locality::PLUGIN,
    DefaultBinder: Registration::required(&[Bind]),
    NodeDeclaredFeatures: node_declared_features::PLUGIN,
}

// What plugins read besides Nodes and Pods, and what a change of it means to Pods.
cluster_objects! {
    /// The labels of each.
    namespaces: Namespace(Arc<str> => Labels), |_, _| ObjectEffect::Namespaces;
    budgets: PodDisruptionBudget(ObjectKey => PodDisruptionBudget),
        |before, after| ObjectEffect::Budgets { before, after };
    /// Those that have a selector: default spreading counts the Pods behind them.
    services: Service(ObjectKey => LabelSelector), selects;
    /// Controllers: default spreading counts the Pods of the same.
    replication_controllers: ReplicationController(ObjectKey => LabelSelector), selects;
    replica_sets: ReplicaSet(ObjectKey => LabelSelector), selects;
    stateful_sets: StatefulSet(ObjectKey => LabelSelector), selects;
    volumes: PersistentVolume(Arc<str> => Arc<PersistentVolume>), volume_effect;
    claims: PersistentVolumeClaim(ObjectKey => Arc<PersistentVolumeClaim>), claim_effect;
    storage_classes: StorageClass(Arc<str> => StorageClass),
        |_, _| ObjectEffect::Volumes(VolumeChange::Class);
    /// By the names of their Nodes.
    csi_nodes: CsiNode(Arc<str> => CsiNode), csi_node_effect;
    csi_drivers: CsiDriver(Arc<str> => CsiDriver), csi_driver_effect;
    capacities: CsiStorageCapacity(ObjectKey => CsiStorageCapacity),
        |before, after| ObjectEffect::Volumes(VolumeChange::Capacity { before, after });
    device_classes: DeviceClass(Arc<str> => Arc<DeviceClass>),
        |_, _| ObjectEffect::Devices(DeviceChange::Class);
    resource_slices: ResourceSlice(Arc<str> => Arc<ResourceSlice>), slice_effect;
    resource_claims: ResourceClaim(ObjectKey => Arc<ResourceClaim>), resource_claim_effect;
    attachments: VolumeAttachment(Arc<str> => VolumeAttachment),
        |before, after| ObjectEffect::Volumes(VolumeChange::Attachment { before, after });
}

fn csi_node_effect<'a>(
    before: Option<&'a CsiNode>,
    after: Option<&'a CsiNode>,
) -> ObjectEffect<'a> {
    let node = before.or(after);
    node.map_or(ObjectEffect::Unchanged, |it| {
        ObjectEffect::Volumes(VolumeChange::CsiNode(&it.name))
    })
}

fn csi_driver_effect<'a>(
    before: Option<&'a CsiDriver>,
    after: Option<&'a CsiDriver>,
) -> ObjectEffect<'a> {
    let driver = before.or(after);
    driver.map_or(ObjectEffect::Unchanged, |it| {
        ObjectEffect::Volumes(VolumeChange::CsiDriver(&it.name))
    })
}

/// Most updates change nothing that is read here.
fn volume_effect<'a>(
    before: Option<&'a Arc<PersistentVolume>>,
    after: Option<&'a Arc<PersistentVolume>>,
) -> ObjectEffect<'a> {
    match (before, after) {
        (Some(before), Some(after)) if after.is_but_newer_than(before) => ObjectEffect::Unchanged,
        _ => {
            let (before, after) = (before.map(|it| &**it), after.map(|it| &**it));
            ObjectEffect::Volumes(VolumeChange::Volume { before, after })
        }
    }
}

fn claim_effect<'a>(
    before: Option<&'a Arc<PersistentVolumeClaim>>,
    after: Option<&'a Arc<PersistentVolumeClaim>>,
) -> ObjectEffect<'a> {
    match (before, after) {
        (Some(before), Some(after)) if after.is_but_newer_than(before) => ObjectEffect::Unchanged,
        _ => {
            let (before, after) = (before.map(|it| &**it), after.map(|it| &**it));
            ObjectEffect::Volumes(VolumeChange::Claim { before, after })
        }
    }
}

fn slice_effect<'a>(
    before: Option<&'a Arc<ResourceSlice>>,
    after: Option<&'a Arc<ResourceSlice>>,
) -> ObjectEffect<'a> {
    let (before, after) = (before.map(|it| &**it), after.map(|it| &**it));
    ObjectEffect::Devices(DeviceChange::Slice { before, after })
}

fn resource_claim_effect<'a>(
    before: Option<&'a Arc<ResourceClaim>>,
    after: Option<&'a Arc<ResourceClaim>>,
) -> ObjectEffect<'a> {
    match (before, after) {
        (Some(before), Some(after)) if after.is_but_newer_than(before) => ObjectEffect::Unchanged,
        _ => {
            let (before, after) = (before.map(|it| &**it), after.map(|it| &**it));
            ObjectEffect::Devices(DeviceChange::Claim { before, after })
        }
    }
}

fn selects<'a>(
    before: Option<&'a LabelSelector>,
    after: Option<&'a LabelSelector>,
) -> ObjectEffect<'a> {
    ObjectEffect::Selectors { before, after }
}

impl Plugin {
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|plugin| plugin.name() == name)
    }

    /// Whether it scores Nodes here.
    pub fn scores(self) -> bool {
        self.registration().score.is_some()
    }

    /// Whether it rejects Nodes here.
    pub fn filters(self) -> bool {
        self.registration().filter.is_some()
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
