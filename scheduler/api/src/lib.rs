//! The HTTP API as types: what `/api` takes and answers, for the server, for clients and for its OpenAPI
//! document. It knows nothing of the scheduler.
//!
//! Fields are only ever added. A client ignores fields that it does not know.

mod client;
mod estimate;
mod explanation;
mod failure;
mod openapi;
mod routes;
mod shadow;

pub use self::client::{Client, ClientError, Transport};
pub use self::estimate::{Confidence, Estimate};
pub use self::explanation::{
    BandwidthQueuePosition, Claim, ClaimState, ClaimVolumes, Dominant, Explanation, Nodes,
    Preemption, RejectedNodes, RejectedVolumes,
};
pub use self::failure::Failure;
pub use self::openapi::{OPENAPI_JSON, openapi};
pub use self::routes::{Body, ROUTES, Route};
pub use self::shadow::{Disagreement, OurDecision, Shadow, TheirDecision};
