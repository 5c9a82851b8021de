//! Every custom resource of CorridorOS, one file per kind.
//!
//! The types are what programs read and write; the schemas derived from them
//! are what the API server enforces. [`all`] is the only list of definitions:
//! a new kind is a new file and one line there, then
//! `cargo run -p crds --bin crdgen`.

#![expect(clippy::duplicated_attributes, reason = "two printcolumns may have the same type")]

pub mod annotations;
pub mod condition;
pub mod manifest;

mod attestation_policy;
mod corridor;
mod memory_bundle;
mod phase;
mod pod_use;
mod schedule;
mod schedule_floor;
mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use attestation_policy::{
    AttestationPolicy, AttestationPolicySpec, AttestationPolicyStatus, DeviceSelectors,
};
pub use corridor::{
    Corridor, CorridorMode, CorridorSpec, CorridorStatus, CorridorTelemetry, CorridorType, Qos,
    Recalibration,
};
pub use memory_bundle::{
    LatencyClass, MemoryBundle, MemoryBundleSpec, MemoryBundleStatus, Persistence,
};
pub use phase::Phase;
pub use pod_use::{IN_USE_BY_MAX, PodUse};
pub use schedule::{Day, Schedule, Window};
pub use schedule_floor::{floor_at, next_change, open_window};

/// The API group of every kind here, and the prefix of every annotation.
pub const GROUP: &str = "corridoros.io";
/// The one served version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every object here, and of our configuration.
pub const API_VERSION: &str = "corridoros.io/v1alpha1";

/// What a Pod puts into `spec.schedulerName` to be placed by us.
pub const SCHEDULER_NAME: &str = "corridor-scheduler";
/// Where the scheduler runs and where its Leases live.
pub const SYSTEM_NAMESPACE: &str = "corridor-system";

/// Released through corrd before a Corridor may disappear.
pub const CORRIDOR_FINALIZER: &str = "corridoros.io/corridor-finalizer";
/// Released through memqosd before a MemoryBundle may disappear.
pub const FFM_FINALIZER: &str = "corridoros.io/ffm-finalizer";

/// All finalizers. Only the controllers remove them.
pub const FINALIZERS: [&str; 2] = [CORRIDOR_FINALIZER, FFM_FINALIZER];

/// Field manager of the half that binds Pods: `inUse`, `inUseBy`, its conditions.
pub const DRIVER_MANAGER: &str = "corridor-driver";
/// Field manager of the controllers: every other status field.
pub const CONTROLLERS_MANAGER: &str = "corridor-controllers";

/// Leases in [`SYSTEM_NAMESPACE`] whose age says whether a daemon's telemetry
/// is fresh.
pub mod backend_lease {
    /// Freshness of every Corridor.
    pub const CORRD: &str = "corridor-backend-corrd";
    /// Freshness of every MemoryBundle.
    pub const MEMQOSD: &str = "corridor-backend-memqosd";
    /// Freshness of attestation.
    pub const ATTESTD: &str = "corridor-backend-attestd";
}

/// Every definition, in the order in which they are installed.
///
/// Use this rather than `Kind::crd()`: the schemas here have the finishing
/// touches that the derive cannot express.
pub fn all() -> Vec<CustomResourceDefinition> {
    [Corridor::crd(), MemoryBundle::crd(), AttestationPolicy::crd()].map(schema::finish).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn display_is_the_wire_form() {
        for value in [CorridorType::SiCorridor, CorridorType::CarbonCorridor] {
            assert_eq!(serde_json::to_value(value).unwrap(), value.to_string());
        }
    }

    #[test]
    fn values_have_their_names_on_the_wire() {
        let modes = [CorridorMode::Waveguide, CorridorMode::FreeSpace];
        assert_eq!(json!(modes), json!(["waveguide", "free-space"]));
        let tiers = [LatencyClass::T0, LatencyClass::T1, LatencyClass::T2, LatencyClass::T3];
        assert_eq!(json!(tiers), json!(["T0", "T1", "T2", "T3"]));
        assert_eq!(json!([Persistence::None, Persistence::Durable]), json!(["none", "durable"]));
        let days = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];
        assert_eq!(json!(days), json!(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]));
    }
}
