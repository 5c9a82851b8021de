//! Stories of Corridors and MemoryBundles whose state only the controllers write, with daemons that
//! are processes of their own.

mod attestation;
mod binding;
mod changes;
mod deletion;
mod events;
mod failure_policies;
mod faults;
mod flapping;
mod floors;
mod happy;
mod policies;
mod races;
mod tenants;
mod windows;

pub use attestation::{
    expired_ticket_denies_pods_and_updates, missing_claim_denies_allocation,
    release_needs_no_ticket, revoked_device_denies_new_pods,
};
pub use binding::bound_when_both_are_ready;
pub use changes::{
    changes_by_reallocation, changes_in_place, changes_that_are_refused,
    removed_fields_do_not_linger,
};
pub use deletion::{
    deletion_waits_for_users, force_release_does_not_wait, namespace_deletion_finishes,
};
pub use events::{lost_allocations_are_told, updates_in_vain_are_told};
pub use failure_policies::{fail_fast_by_annotation, fail_fast_by_configuration};
pub use faults::{
    daemons_away_and_back, durable_bundles_survive_a_restart, faulty_allocation_leaks_nothing,
    faulty_release_leaks_nothing, leases_are_renewed, orphans_are_swept,
    readings_that_are_no_numbers, reused_ids_are_not_ours,
};
pub use flapping::readings_alternate_around_the_floor;
pub use floors::{
    bundle_falls_below_its_floor, capacity_falls_and_returns, drift_is_met_by_recalibration,
    reach_and_latency_are_enforced, whole_spec_reaches_the_daemons,
};
pub use happy::{created_used_measured_and_deleted, creations_are_ready_soon};
pub use policies::{policies_choose_the_device, tenants_are_let_in_by_the_owner};
pub use races::bind_races_delete;
pub use tenants::a_tenant_uses_and_leaves;
pub use windows::windows_change_what_may_be_reserved;

use events::{ensure_told, ensure_told_once};

use std::env;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::objects::custom::{Custom, CustomKind};
use crate::objects::pods::PodTemplate;
use crate::site::{Site, SiteOptions};

/// The floor of [`corridor_spec`].
const CORRIDOR_GBPS: u32 = 100;
/// The floor of [`bundle_spec`].
const BUNDLE_GBS: u32 = 8;

/// A site with the namespace of most stories.
async fn site(cluster: &Cluster, options: SiteOptions) -> Result<Site> {
    cluster.ensure_namespace(TEAM).await?;
    Site::start(cluster, options).await
}

/// A Corridor that needs no attestation, so that a story is not about it.
fn corridor_spec() -> Value {
    json!({
        "lanes": 4,
        "lambdaNm": [1550, 1551],
        "minGbps": CORRIDOR_GBPS,
        "attestationRequired": false,
    })
}

/// A MemoryBundle that many Pods may share.
fn bundle_spec() -> Value {
    json!({
        "bytes": 1_u64 << 30,
        "latencyClass": "T2",
        "bandwidthFloorGBs": BUNDLE_GBS,
        "shareable": true,
    })
}

/// One of the two above with some fields changed.
fn with(mut spec: Value, changes: Value) -> Value {
    if let (Value::Object(spec), Value::Object(changes)) = (&mut spec, changes) {
        spec.extend(changes);
    }
    spec
}

async fn create_corridor(site: &Site, name: &str) -> Result<Custom> {
    site.create(CustomKind::Corridor, TEAM, name, corridor_spec()).await
}

async fn create_bundle(site: &Site, name: &str) -> Result<Custom> {
    site.create(CustomKind::MemoryBundle, TEAM, name, bundle_spec()).await
}

/// Creates a Pod that uses an object, and waits until it is bound.
async fn bind_user(site: &Site, object: &Custom, amount: &str, name: &str) -> Result<Pod> {
    let user = PodTemplate::small().refer(object, Some(amount));
    user.create(site.admin(), &object.namespace, name).await?;
    until_bound(&site.cluster, &object.namespace, name).await
}

/// How often a story repeats what it is about: from the environment, for longer runs than CI's.
pub(super) fn count_from(variable: &str, default: usize) -> Result<usize> {
    match env::var(variable) {
        Err(_) => Ok(default),
        Ok(text) => {
            let problem = |_| Error::malformed(format!("reading {variable}"), &text);
            text.parse().map_err(problem)
        }
    }
}
