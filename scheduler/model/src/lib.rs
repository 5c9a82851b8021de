//! The words that the engine and the plain rules share.
//!
//! Everything here is plain data and pure functions: no clock, no I/O, no
//! Kubernetes client. The driver parses API objects into these types once, at
//! the edge; past that point there is no string left to interpret.

mod amount;
mod cluster;
mod devices;
mod disruption;
mod features;
mod hold;
mod host_port;
mod ids;
mod image;
mod node;
mod node_affinity;
mod object;
pub mod pairs;
mod pod;
mod pod_affinity;
mod quantity;
mod requests;
mod resources;
mod scheduling_spec;
mod selector;
mod taint;
mod time;
mod topology_spread;
mod volumes;

pub use amount::{Amount, AmountError};
pub use cluster::{ClusterNode, ClusterPod};
pub use devices::{
    AllocatedDevice, Allocation, Attribute, CapacityPolicy, CapacityValues, ClaimSpec, ClaimUser,
    ConfigSource, Constraint, CounterSet, CounterUse, Device, DeviceCapacity, DeviceClass,
    DeviceConfig, DeviceCount, DeviceId, DevicePlace, DeviceRequest, DeviceSelector, DeviceTaint,
    DeviceTaintEffect, DeviceToleration, DeviceType, PodClaim, PodClaimSource, RequestAlternatives,
    RequestConfig, ResourceClaim, ResourceSlice, SelectedNodes, SelectorVerdict, SubRequest,
    TemplateClaim,
};
pub use disruption::{Deletion, PodDisruptionBudget, PreemptionPolicy};
pub use features::{FeatureNames, FeatureUse};
pub use hold::Hold;
pub use host_port::HostPort;
pub use ids::{NodeName, ObjectKey, ObjectUid, PodUid};
pub use image::{NodeImage, listed_image_name};
pub use node::{Labels, Node};
pub use node_affinity::{
    NodeAffinity, NodeSelector, NodeSelectorTerm, PreferredNodeTerm, RawNodeTerm,
};
pub use object::{NotReady, ObjectKind, ObjectRef, Phase, Reservable, SECURITY_DOMAIN_LABEL};
pub use pod::{
    Assignment, DeclaredBy, DeclaredEnd, FailurePolicy, Grant, Granted, Need, Pod, PodSpec,
};
pub use pod_affinity::{AffinityTerms, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm};
pub use quantity::{Quantity, QuantityError};
pub use requests::{
    ContainerRequests, DeclaredRequests, InitContainerRequests, PodRequests, ResourceList,
    RunningResources, is_extended_resource, is_scalar_resource, resources,
};
pub use resources::{MemoryBytes, MilliCpu, Resources};
pub use scheduling_spec::{Owner, OwnerKind, Reach, SchedulingSpec};
pub use selector::{LabelSelector, RawRequirement, Reads, Requirement, SelectorError};
pub use taint::{Effect, Taint, Toleration, TolerationOperator, first_untolerated};
pub use time::Instant;
pub use topology_spread::{NodeInclusionPolicy, TopologySpreadConstraint, WhenUnsatisfiable};
pub use volumes::{
    AccessMode, AccessModes, BindingMode, ClaimRef, CsiDriver, CsiNode, CsiStorageCapacity,
    InTreeDisk, InTreePlugin, InlineDisk, PersistentVolume, PersistentVolumeClaim, PodVolume,
    PodVolumeBindings, StorageClass, TranslatedVolume, TranslationError, VolumeAttachment,
    VolumeMode, VolumePhase, VolumeSource,
};
