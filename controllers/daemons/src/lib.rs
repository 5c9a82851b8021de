//! The REST contract of the CorridorOS daemons, clients for it, and daemons that simulate it.
//!
//! | Daemon | Gives | Trait | Client |
//! |---|---|---|---|
//! | corrd | photonic paths with a bandwidth floor | [`corrd::Corrd`], an [`Allocator`] | [`Endpoint`] |
//! | memqosd | free-form memory by bytes, tier and bandwidth floor | [`memqosd::Memqosd`], an [`Allocator`] | [`Endpoint`] |
//! | attestd | what devices prove about themselves, signed | [`attestd::Attestd`] | [`Endpoint`] |
//!
//! `openapi.yaml` beside this crate is the contract; tests hold the types and the routes to it.
//! [`conformance::run`] tries every rule on any daemon at a URL.
//!
//! # How nothing leaks
//!
//! A POST can succeed while its reply is lost, and a daemon can forget. So:
//!
//! - an allocation carries its [`Owner`]: cluster and custom resource. A list by owner finds it,
//!   and only its owner can release it;
//! - a POST carries an [`IdempotencyKey`]: the same wish leads to the same allocation, however
//!   often it is sent. The key hashes the fields whose change needs another allocation, so a
//!   changed floor is still the same wish;
//! - a release is repeatable, and says whether the id has another owner by now ([`Released`]).
//!   Only a daemon can say so: a 404 of a proxy is an error;
//! - an allocation has a lease. Who is gone for good loses it; bundles that are `durable` lose
//!   their bandwidth only.
//!
//! The order that uses this: store the intent, list by owner and adopt, else POST with the key,
//! then store the id. Before the finalizer goes: release until [`Released`].
//!
//! # How errors are read
//!
//! [`DaemonError::is_retryable`]: the same may succeed later. [`DaemonError::is_ambiguous`]: it may
//! have been carried out. A refusal has a [`RefusalReason`], each with its own place in the HTTP
//! codes: 422 never passes, 507 may.
//!
//! Every call has a deadline and a largest reply. The client tries what is repeatable up to three
//! times within the deadline; a recalibration, an attestation and a long poll only once, unless
//! nothing was sent. A bandwidth that is NaN, negative or missing reads as 0; a bit error rate that
//! is impossible reads as none, because 0 would call a broken path perfect.
//!
//! # How tickets are trusted
//!
//! attestd signs a ticket for one object, device, namespace and nonce. [`ticket::verify`] checks it
//! locally against keys from the configuration: ES256, or ML-DSA-65 where post-quantum signatures
//! are required. The key decides the algorithm, not the ticket.
//!
//! # Simulated daemons
//!
//! ```
//! use daemons::client::{Endpoint, Patience};
//! use daemons::corrd::{CorridorRequest, PathSpec};
//! use daemons::simulated::{SimulatedConfig, SimulatedDaemons};
//! use daemons::{Owner, Released};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let daemons = SimulatedDaemons::start(SimulatedConfig::default()).await?;
//! let endpoint = Endpoint::new(&daemons.url(), Patience::default())?;
//! let corrd = endpoint.as_corrd();
//! let owner = Owner::new("cluster-uid", "corridor-uid")?;
//! let path = PathSpec { lanes: 4, lambda_nm: vec![1550], min_gbps: 400, ..PathSpec::default() };
//! let wish = CorridorRequest { owner: owner.clone(), path, ticket: None };
//!
//! let corridor = corrd.allocate(&wish.key(), &wish).await?;
//! let again = corrd.allocate(&wish.key(), &wish).await?;
//! assert_eq!(corridor.corridor_id, again.corridor_id);
//! assert!(corridor.achievable_gbps >= 400.0);
//!
//! let done = corrd.release(&corridor.corridor_id, &owner).await?;
//! assert_eq!(done, Released::Gone);
//! daemons.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`simulated`] says what tests can do to them.

mod allocation;
pub mod attestd;
pub mod client;
pub mod conformance;
pub mod corrd;
mod error;
mod firmware;
mod identity;
pub mod limits;
pub mod memqosd;
mod named;
mod reading;
mod refusal;
pub mod simulated;
mod telemetry;
pub mod ticket;
mod traffic;
pub mod units;

pub use crate::allocation::{Allocation, AllocationTypes, Allocator, Sample};
pub use crate::client::Endpoint;
pub use crate::error::{DaemonError, Reply};
pub use crate::firmware::firmware_at_least;
pub use crate::identity::{
    IDEMPOTENCY_HEADER, IdempotencyKey, MalformedIdentity, OWNER_HEADER, Owner,
};
pub use crate::refusal::{Refusal, RefusalReason};
pub use crate::telemetry::{Released, Revision, TelemetryPage};
