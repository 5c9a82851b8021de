//! memqosd: allocates free-form memory by its properties and watches over its bandwidth.

use std::mem;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, AllocationTypes, Allocator, Sample};
use crate::corrd::Lease;
use crate::error::Reply;
use crate::identity::{IdempotencyKey, Owner};
use crate::named::named;
use crate::reading;
use crate::telemetry::TelemetryPage;

/// The memory itself, as asked for and as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleSpec {
    /// 1 to 2^50.
    pub bytes: u64,
    /// Changed in place.
    pub latency_class: LatencyClass,
    /// The floor in GB/s, 1 to 100000. Changed in place.
    #[serde(rename = "floor_GBs")]
    pub floor_gbs: u32,
    #[serde(default)]
    pub persistence: Persistence,
    #[serde(default)]
    pub shareable: bool,
    #[serde(default)]
    pub security_domain: String,
    /// The attested device. Absent in a request: memqosd chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
}

/// Body of `POST /v1/ffm/alloc`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleRequest {
    pub owner: Owner,
    #[serde(flatten)]
    pub memory: BundleSpec,
    /// What attestd signed for this owner's object and this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

impl BundleRequest {
    /// The key to send with it: covers the fields whose change needs another bundle, so not the
    /// floor and the tier, and not the ticket, which is renewed.
    pub fn key(&self) -> IdempotencyKey {
        let BundleSpec {
            bytes,
            latency_class: _,
            floor_gbs: _,
            persistence,
            shareable,
            security_domain,
            device_id,
        } = &self.memory;
        let wish = (bytes, persistence, shareable, security_domain, device_id);
        IdempotencyKey::of(&self.owner, &wish)
    }
}

/// An allocated bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    pub ffm_handle: String,
    pub owner: Owner,
    /// The key it was allocated with.
    pub idempotency_key: IdempotencyKey,
    /// `floor_GBs` is the floor that memqosd confirms.
    #[serde(flatten)]
    pub memory: BundleSpec,
    #[serde(rename = "achieved_GBs", default, deserialize_with = "reading::amount")]
    pub achieved_gbs: f64,
    /// Pages moved between tiers since the allocation.
    #[serde(default, deserialize_with = "reading::count")]
    pub moved_pages: u64,
    /// The allocation is lost when its lease is not renewed for this long.
    pub policy_lease_ttl_s: u64,
    pub lease_expires_at: Timestamp,
    /// The lease ran out. Only a durable bundle outlives that: it keeps its bytes, but has no
    /// bandwidth until the lease is renewed.
    #[serde(default)]
    pub lapsed: bool,
    pub created_at: Timestamp,
}

/// Reply of `GET /v1/ffm`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BundleList {
    pub bundles: Vec<Bundle>,
}

/// Body of `PATCH /v1/ffm/{handle}/bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthChange {
    #[serde(rename = "floor_GBs")]
    pub floor_gbs: u32,
}

/// Body of `PATCH /v1/ffm/{handle}/latency_class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyClassChange {
    pub latency_class: LatencyClass,
}

/// Reply of `PATCH /v1/ffm/{handle}/latency_class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyClassChanged {
    pub latency_class: LatencyClass,
    /// Pages that this call moved; telemetry counts all since the allocation.
    #[serde(default, deserialize_with = "reading::count")]
    pub moved_pages: u64,
}

named! {
    /// Latency tier: T0 HBM, T1 DDR5, T2 CXL, T3 persistent.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
    )]
    pub enum LatencyClass {
        T0 = "T0",
        #[default]
        T1 = "T1",
        T2 = "T2",
        T3 = "T3",
    }
}

/// Whether the contents outlive a restart of the daemon without its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    #[default]
    None,
    Durable,
}

/// One sample of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleTelemetry {
    pub ffm_handle: String,
    pub owner: Owner,
    pub sampled_at: Timestamp,
    #[serde(rename = "achieved_GBs", default, deserialize_with = "reading::amount")]
    pub achieved_gbs: f64,
    /// The floor it is compared with.
    #[serde(rename = "floor_GBs", default)]
    pub floor_gbs: u32,
    #[serde(default)]
    pub latency_class: LatencyClass,
    /// Since the allocation.
    #[serde(default, deserialize_with = "reading::count")]
    pub moved_pages: u64,
    #[serde(default, deserialize_with = "reading::signal")]
    pub tail_p99_ms: Option<f64>,
    /// How often the bandwidth fell below the floor since the daemon started.
    #[serde(default, deserialize_with = "reading::count")]
    pub qos_violations: u64,
    #[serde(default)]
    pub lapsed: bool,
}

impl BundleTelemetry {
    pub fn is_below_floor(&self) -> bool {
        self.achieved_gbs < f64::from(self.floor_gbs)
    }
}

impl Allocation for Bundle {
    fn id(&self) -> &str {
        &self.ffm_handle
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn device(&self) -> Option<&str> {
        self.memory.device_id.as_deref()
    }

    fn lease(&self) -> (u64, Timestamp) {
        (self.policy_lease_ttl_s, self.lease_expires_at)
    }

    fn set_lease(&mut self, lease: Lease) {
        (self.policy_lease_ttl_s, self.lease_expires_at) =
            (lease.policy_lease_ttl_s, lease.lease_expires_at);
        // A bundle that had lapsed has its bandwidth back, or the renewal would have been refused.
        self.lapsed = false;
    }
}

impl AllocationTypes for Bundle {
    type Request = BundleRequest;
    type Sample = BundleTelemetry;

    fn key(request: &BundleRequest) -> IdempotencyKey {
        request.key()
    }

    fn with_ticket(request: BundleRequest, ticket: Option<String>) -> BundleRequest {
        BundleRequest { ticket, ..request }
    }

    fn samples(page: &mut TelemetryPage) -> Vec<BundleTelemetry> {
        mem::take(&mut page.bundles)
    }
}

impl Sample for BundleTelemetry {
    fn id(&self) -> &str {
        &self.ffm_handle
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }
}

/// What a controller needs of memqosd beside [`Allocator`].
pub trait Memqosd: Allocator<Bundle> {
    /// `PATCH /v1/ffm/{handle}/bandwidth`. Repeatable: the floor is set.
    fn set_bandwidth<'a>(
        &'a self,
        handle: &'a str,
        owner: &'a Owner,
        change: &'a BandwidthChange,
    ) -> Reply<'a, Bundle>;
    /// `PATCH /v1/ffm/{handle}/latency_class`. Repeatable: the second time moves nothing.
    fn set_latency_class<'a>(
        &'a self,
        handle: &'a str,
        owner: &'a Owner,
        change: &'a LatencyClassChange,
    ) -> Reply<'a, LatencyClassChanged>;
}
