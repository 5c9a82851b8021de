//! What corrd and memqosd have in common: both allocate for an owner, and keep what is renewed.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;

use crate::corrd::Lease;
use crate::error::Reply;
use crate::identity::{IdempotencyKey, Owner};
use crate::telemetry::{Released, Revision, TelemetryPage};

/// An allocation as its daemon describes it.
pub trait Allocation: Clone + Debug + Send + Sync + 'static {
    fn id(&self) -> &str;
    fn owner(&self) -> &Owner;
    fn device(&self) -> Option<&str>;
    /// `policy_lease_ttl_s`, and when it runs out.
    fn lease(&self) -> (u64, Timestamp);
    fn set_lease(&mut self, lease: Lease);
}

/// An allocation with what is sent and read about it.
pub trait AllocationTypes: Allocation {
    type Request: Send + Sync + 'static;
    type Sample: Sample;

    fn key(request: &Self::Request) -> IdempotencyKey;
    fn with_ticket(request: Self::Request, ticket: Option<String>) -> Self::Request;
    /// The samples of this kind.
    fn samples(page: &mut TelemetryPage) -> Vec<Self::Sample>;
}

/// One reading of an allocation.
pub trait Sample: Clone + Debug + Send + Sync + 'static {
    /// Of the allocation.
    fn id(&self) -> &str;
    fn owner(&self) -> &Owner;
}

/// What a controller needs of every daemon that allocates. [`crate::Endpoint`] speaks it over HTTP; tests bring a
/// fake. `/v1/…` is `/v1/corridors` of corrd and `/v1/ffm` of memqosd.
pub trait Allocator<A: AllocationTypes>: Send + Sync + 'static {
    /// `POST /v1/corridors`, `POST /v1/ffm/alloc`. Repeatable: one key leads to one allocation.
    fn allocate<'a>(&'a self, key: &'a IdempotencyKey, ask: &'a A::Request) -> Reply<'a, A>;
    /// `GET /v1/…/{id}`. `None`: there is none.
    fn get<'a>(&'a self, id: &'a str) -> Reply<'a, Option<A>>;
    /// `GET /v1/…?owner_prefix=`: all of one owner, or of one cluster. It is a prefix: who acts on one owner's
    /// compares `owner` too.
    fn list<'a>(&'a self, owner_prefix: &'a str) -> Reply<'a, Vec<A>>;
    /// `DELETE /v1/…/{id}`. Repeatable.
    fn release<'a>(&'a self, id: &'a str, owner: &'a Owner) -> Reply<'a, Released>;
    /// `POST /v1/…/{id}/lease`: keeps it for another `policy_lease_ttl_s`.
    fn renew_lease<'a>(&'a self, id: &'a str, owner: &'a Owner) -> Reply<'a, Lease>;
    /// `GET /v1/…/{id}/telemetry`: one sample, taken now.
    fn telemetry<'a>(&'a self, id: &'a str) -> Reply<'a, Option<A::Sample>>;
    /// `GET /v1/telemetry`: what changed since, or after `wait` that nothing did.
    fn telemetry_since<'a>(
        &'a self,
        since: Option<&'a Revision>,
        wait: Duration,
    ) -> Reply<'a, TelemetryPage>;
}
